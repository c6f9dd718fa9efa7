//! Replies of the usual form are read in a way of their own, with the outcome of the general way.

use std::sync::{Arc, Mutex};

use anabranch_engine::clock::SystemClock;
use anabranch_model::{HttpClient, HttpSettings, Model, ProviderKind, connect};
use anabranch_testkit::FakeServer;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use crate::remote::{Setup, hello};

/// The part of a body that a client reads: the reply, or the class of the error.
async fn read(model: &dyn Model, body: &Mutex<String>, json: String) -> String {
    *body.lock().unwrap() = json;
    match model.chat(hello()).await {
        Ok(reply) => format!("{:?} {:?} {:?} {:?}", reply.text, reply.reasoning, reply.finish, reply.usage),
        Err(error) if error.class() == "refused" => error.to_string(),
        Err(error) => error.class().to_owned(),
    }
}

/// A field of this name with one of the values, or none.
fn field(name: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.7, select(values).prop_map(move |value| format!("\"{name}\":{value}")))
}

/// Objects with some of the fields. A name in the list may come twice, in an object too.
fn object(fields: Vec<BoxedStrategy<Option<String>>>) -> BoxedStrategy<String> {
    fields
        .prop_map(|fields| format!("{{{}}}", fields.into_iter().flatten().collect::<Vec<_>>().join(",")))
        .boxed()
}

const TEXTS: &[&str] = &[
    "null",
    "\"\"",
    "\" \"",
    "\"a b\"",
    "\"\\u00e9\\n\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "7",
    "[]",
    "{}",
];
const CONTENTS: &[&str] =
    &["\"hi\"", "[{\"text\":\"a\"},\"b\",{\"text\":3}]", "[\"\\ud83d\"]", "{\"text\":\"a\"}"];
const FINISHES: &[&str] =
    &["null", "\"stop\"", "\"length\"", "\"content_filter\"", "\"tool\\u0020calls\"", "1"];
const COUNTS: &[&str] = &[
    "null",
    "0",
    "12",
    "-3",
    "-0",
    "2.5",
    "1e3",
    "9007199254740993",
    "18446744073709551615",
    "1e400",
    "\"4\"",
];
/// Values that no one reads, but that may make a text not JSON.
const OTHERS: &[&str] =
    &["null", "1", "[1,{\"a\":[]}]", "{\"\\ud83d\":1}", "\"\\udc00\"", "1e999", "tru", "\"\t\"", "[1,]"];

fn replies() -> impl Strategy<Value = (String, Vec<String>)> {
    let boxed = |name, values| field(name, values).boxed();
    let named = |name: &'static str, object: BoxedStrategy<String>| {
        object.prop_map(move |object| Some(format!("\"{name}\":{object}"))).boxed()
    };
    let message = object(vec![
        boxed("role", &["\"assistant\""]),
        boxed("content", TEXTS),
        boxed("content", CONTENTS),
        boxed("refusal", TEXTS),
        boxed("reasoning", TEXTS),
        boxed("reasoning_content", TEXTS),
        boxed("reasoning\\u005fcontent", TEXTS),
    ]);
    let plain = object(vec![boxed("content", CONTENTS), boxed("refusal", &["null"])]);
    let message =
        prop_oneof![3 => plain, 3 => message, 1 => select(&["null", "3", "[]"][..]).prop_map(str::to_owned)];
    let choice = object(vec![
        boxed("index", &["0"]),
        named("message", message.boxed()),
        boxed("finish_reason", FINISHES),
    ]);
    let choices = prop_oneof![
        6 => choice.clone().prop_map(|choice| format!("[{choice}]")),
        1 => (choice, select(OTHERS)).prop_map(|(choice, other)| format!("[{choice},{other}]")),
        1 => select(&["null", "[]", "{}", "[null]", "[[]]"][..]).prop_map(str::to_owned),
    ];
    let details = object(vec![boxed("cached_tokens", COUNTS), boxed("audio_tokens", OTHERS)]);
    let usage = object(vec![
        boxed("prompt_tokens", COUNTS),
        boxed("completion_tokens", COUNTS),
        boxed("prompt_tokens_details", &["null", "1"]),
        named("prompt_tokens_details", details),
    ]);
    let other = prop_oneof![Just(None), field("other", OTHERS)].boxed();
    let error =
        prop_oneof![3 => Just(None), 1 => field("error", &["null", "\"no\"", "{\"message\":\"no\"}", "[]"])];
    (choices, vec![other, named("usage", usage), error.boxed()])
        .prop_map(|(choices, rest)| (choices, rest.into_iter().flatten().collect()))
}

#[test]
fn the_usual_form_is_read_as_any_other() {
    let body = Arc::new(Mutex::new(String::new()));
    let sent = Arc::clone(&body);
    let server = FakeServer::start(move |connection| {
        while connection.http_request().is_some() && connection.http_reply("200 OK", &sent.lock().unwrap()) {}
    });
    let setup = Setup::new(&format!("http://127.0.0.1:{}/v1", server.port()), ProviderKind::OpenAi);
    let client = HttpClient::new(&HttpSettings::default(), Arc::new(SystemClock)).unwrap();
    let model = connect(&setup.provider, &setup.config, client, |_| None).unwrap();
    let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    // One runtime for all cases, so that they share a connection.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let check = |choices: &str, rest: &[String]| {
        let reply = [&[format!("\"choices\":{choices}")], rest].concat().join(",");
        let usual = runtime.block_on(read(&*model, &body, format!("{{{reply}}}")));
        // A field that comes twice is not of the usual form; the last one counts.
        let general = runtime.block_on(read(&*model, &body, format!("{{\"choices\":[{{}}],{reply}}}")));
        assert_eq!(usual, general, "{reply}");
    };
    for depth in [120, 125, 126, 127, 128, 129, 5000] {
        check("[{\"message\":{\"content\":\"hi\"}}]", &[format!("\"other\":{}", deep(depth))]);
    }
    let mut runner = TestRunner::new(ProptestConfig::with_cases(1500));
    let outcome = runner.run(&replies(), |(choices, rest)| {
        check(&choices, &rest);
        Ok(())
    });
    outcome.unwrap();
}
