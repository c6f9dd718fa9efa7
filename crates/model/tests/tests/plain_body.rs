//! Bodies of requests without extra fields and schema are written in a way of their own, with the bytes of the general way.

use std::sync::{Mutex, mpsc};

use anabranch_model::{ChatRequest, Format, Message, ProviderKind, Role, Sampling};
use anabranch_testkit::FakeServer;
use anabranch_value::{Map, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::remote::Setup;

/// Numbers of all magnitudes, and those that JSON cannot hold.
fn numbers() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop_oneof![any::<f64>(), 0.0..2.0, Just(1.0), Just(-0.0), Just(f64::NAN)])
}

fn requests() -> impl Strategy<Value = ChatRequest> {
    let text = prop_oneof![any::<String>(), "[\"\\\\/\\x00-\\x20\\x7f\u{2028}é😀]{0,20}"];
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant)];
    let message = (role, text).prop_map(|(role, text)| Message { role, text: text.into() });
    let sampling = (numbers(), numbers(), any::<Option<u32>>());
    let format = prop::option::weighted(0.2, "[a-z ]{0,3}");
    (prop::collection::vec(message, 0..4), sampling, format).prop_map(|(messages, sampling, format)| {
        let (temperature, top_p, max_tokens) = sampling;
        let schema = || Value::map([("type", Value::from("object"))]);
        ChatRequest {
            sampling: Sampling { temperature, top_p, max_tokens },
            format: format.map(|name| Format { name: name.into(), schema: schema() }),
            ..ChatRequest::new(messages)
        }
    })
}

/// Refuses the name `max_tokens` and schemas as `refusal` says, and compares the bodies of the two ways.
fn check(refusal: fn(&str) -> Option<&'static str>) {
    let (bodies, sent) = mpsc::channel();
    let bodies = Mutex::new(bodies);
    let server = FakeServer::start(move |connection| {
        while let Some(body) = connection.http_request() {
            let (status, reply) = match refusal(&body) {
                Some(refusal) => ("400 Bad", refusal),
                None => ("200 OK", r#"{"choices":[{"message":{"content":"hi"}}]}"#),
            };
            bodies.lock().unwrap().send(body).unwrap();
            if !connection.http_reply(status, reply) {
                break;
            }
        }
    });
    let mut setup = Setup::new(&format!("http://127.0.0.1:{}/v1", server.port()), ProviderKind::OpenAi);
    let plain = setup.model().unwrap();
    // An extra field that is never sent asks for the general way.
    setup.config.params.extra_body = Map::from_iter([("n".into(), Value::Int(2))]);
    let general = setup.model().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(300));
    let outcome = runner.run(&requests(), |request| {
        let bodies = [&plain, &general].map(|model| {
            runtime.block_on(model.chat(request.clone())).unwrap();
            sent.try_iter().collect::<Vec<String>>()
        });
        prop_assert_eq!(&bodies[0], &bodies[1]);
        prop_assert!(!bodies[0].is_empty());
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn the_bytes_are_those_of_the_general_way() {
    check(|_| None);
    check(|body| body.contains("\"max_tokens\":").then_some("use max_completion_tokens"));
    check(|body| body.contains("\"response_format\":").then_some("no response_format"));
}
