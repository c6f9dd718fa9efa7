//! The demo model.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::SystemClock;
use anabranch_model::{
    ChatReply, ChatRequest, Demo, EmbedRequest, Message, Model, Schema, Simulation, conversation, judge,
    reply,
};
use anabranch_value::Value;
use expect_test::expect;
use proptest::prelude::*;

use crate::block_on;

fn ask(request: ChatRequest) -> ChatReply {
    block_on(Demo::new().chat(request)).unwrap()
}

fn ask_text(prompt: &str, sample: u64) -> String {
    let request = ChatRequest { sample, ..ChatRequest::new([Message::user(prompt)]) };
    ask(request).text.to_string()
}

#[test]
fn replies_depend_on_the_request_the_sample_and_the_attempt_alone() {
    let prompt = "Write about the history of lighthouses.";
    assert_eq!(ask_text(prompt, 1), ask_text(prompt, 1));
    assert_ne!(ask_text(prompt, 1), ask_text(prompt, 2));
    assert_ne!(ask_text(prompt, 1), ask_text("Write about trains.", 1));
    expect!["In brief, about history lighthouses. It took a few attempts to get this right. The first thing that stands out is how small details change the whole picture. Most people notice it only when something is missing. Please note that this is demo text and not a model's answer."].assert_eq(&ask_text(prompt, 1));
    let attempt = |attempt, sample| {
        ask(ChatRequest { attempt, sample, ..ChatRequest::new([Message::user(prompt)]) }).text.to_string()
    };
    assert_eq!(attempt(3, 1), ask_text(prompt, 1 ^ (3 << 56)));
    assert_ne!(attempt(256, 1), ask_text(prompt, 1));
    let reply = ask(ChatRequest::new([Message::user(prompt)]));
    assert!(reply.demo && reply.text.contains("demo text") && reply.usage.output_tokens > 0);
}

#[test]
fn code_is_fenced_in_the_language_asked_for() {
    let languages = [
        "bash",
        "c",
        "cobol",
        "cpp",
        "csharp",
        "go",
        "java",
        "javascript",
        "kotlin",
        "python",
        "ruby",
        "rust",
        "scala",
        "swift",
        "typescript",
        "sql:sqlite",
        "sql:tsql",
        "sql:bigquery",
        "sql:mysql",
        "sql:postgres",
        "sql:ansi",
    ];
    for language in languages {
        let text = ask_text(&format!("Sum numbers.{}", conversation::code_suffix(language)), 3);
        let code =
            reply::code(&text, language).unwrap_or_else(|problem| panic!("{language}: {problem}: {text}"));
        assert!(code.len() > 20, "{language}: {code}");
        if language.starts_with("sql:") {
            assert!(code.contains("CREATE TABLE") && code.contains("SELECT"), "{code}");
        }
    }
}

#[test]
fn judges_get_one_of_the_options() {
    let scores = [judge::Score {
        name: "Quality".to_owned(),
        description: "How good.".to_owned(),
        options: vec![(Value::Int(0), "bad".to_owned()), (Value::Int(1), "good".to_owned())],
    }];
    let schema = judge::schema(&scores);
    for sample in 0..20 {
        let text = ask_text(&format!("Judge this.{}", conversation::judge_suffix(&scores, &schema)), sample);
        judge::read(&scores, &reply::json(&text).unwrap()).unwrap();
    }
}

#[test]
fn vectors_have_length_one() {
    let request = EmbedRequest { texts: Arc::from(["a".into(), "b".into(), "a".into()]), sample: 0 };
    let reply = block_on(Demo::new().embed(request)).unwrap();
    assert_eq!(reply.vectors[0], reply.vectors[2]);
    assert_ne!(reply.vectors[0], reply.vectors[1]);
    for vector in &reply.vectors {
        assert_eq!(vector.len(), 64);
        assert!((vector.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_simulation_fails_now_and_then() {
    let simulation =
        Simulation { clock: Arc::new(SystemClock), latency: Duration::from_micros(10), failure_rate: 0.5 };
    let demo = Demo::new().with_simulation(simulation);
    let outcomes: Vec<bool> = block_on(async {
        let mut outcomes = Vec::new();
        for _ in 0..20 {
            outcomes.push(demo.chat(ChatRequest::new([Message::user("x")])).await.is_ok());
        }
        outcomes
    });
    assert!(outcomes.contains(&true) && outcomes.contains(&false));
}

#[test]
fn hard_schemas_are_satisfied() {
    let schemas = [
        r#"{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"}"#,
        r#"{"type":"string","pattern":"^(red|green)(ish)?$"}"#,
        r#"{"type":"string","minLength":50,"maxLength":60}"#,
        r#"{"type":"string","format":"uuid","pattern":"^[0-9a-f-]{36}$"}"#,
        r#"{"type":"integer","minimum":10,"exclusiveMaximum":12}"#,
        r#"{"type":"number","exclusiveMinimum":0,"maximum":0.5}"#,
        r#"{"type":"integer","multipleOf":7,"minimum":20}"#,
        r#"{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":3}"#,
        r#"{"type":"array","prefixItems":[{"type":"string"},{"type":"boolean"}],"items":false,"minItems":2}"#,
        r#"{"type":"object","additionalProperties":{"type":"integer"},"minProperties":3}"#,
        r##"{"$defs":{"T":{"type":"object","properties":{"v":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/T"}}},"required":["v","kids"]}},"$ref":"#/$defs/T"}"##,
        r##"{"$defs":{"N":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]}},"required":["next"]}},"$ref":"#/$defs/N"}"##,
        r#"{"allOf":[{"properties":{"a":{"minimum":5}},"required":["a"]},{"properties":{"a":{"type":"integer","maximum":6}}}]}"#,
        r#"{"type":"object","properties":{"k":{"enum":["x","y"]}},"required":["k"],"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["m"],"properties":{"m":{"type":"integer"}}}}"#,
        r#"{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k","n"]}]}"#,
        r#"{"type":["integer","null"]}"#,
        "true",
        "{}",
    ];
    for schema in schemas {
        for sample in 0..10 {
            satisfies(&Value::from_json(schema).unwrap(), sample);
        }
    }
}

fn satisfies(schema: &Value, sample: u64) {
    let request = ChatRequest { sample, ..ChatRequest::new([Message::user("x")]) };
    let text = ask(request.with_format("thing", schema.clone())).text;
    let value = reply::json(&text).unwrap();
    let fitted = Schema::new(schema).unwrap().fit(value.clone());
    let problems = |problems: &Vec<_>| format!("{schema:?}\n{}\n{problems:?}", value.to_json());
    assert_eq!(fitted.as_ref().map_err(problems), Ok(&value));
}

/// Schemas of all kinds that some value satisfies.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(r#"{"type":"boolean"}"#.to_owned()),
        Just(r#"{"type":"null"}"#.to_owned()),
        (0..50_i64, 0..50_i64).prop_map(|(low, more)| format!(
            r#"{{"type":"integer","minimum":{low},"maximum":{}}}"#,
            low + more
        )),
        (0..50_i64).prop_map(|low| format!(r#"{{"type":"number","exclusiveMinimum":{low}}}"#)),
        (0..30_usize, 0..30_usize).prop_map(|(low, more)| format!(
            r#"{{"type":"string","minLength":{low},"maxLength":{}}}"#,
            low + more
        )),
        Just(r#"{"type":"string","format":"date"}"#.to_owned()),
        Just(r#"{"type":"string","pattern":"^[a-z]+@[a-z]+\\.com$"}"#.to_owned()),
        Just(r#"{"enum":["a",2,null]}"#.to_owned()),
    ];
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..3_usize)
                .prop_map(|(items, min)| format!(r#"{{"type":"array","items":{items},"minItems":{min}}}"#)),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| {
                let properties: Vec<String> =
                    parts.iter().enumerate().map(|(at, part)| format!(r#""p{at}":{part}"#)).collect();
                format!(r#"{{"type":"object","properties":{{{}}},"required":["p0"]}}"#, properties.join(","))
            }),
            prop::collection::vec(inner, 1..3)
                .prop_map(|parts| format!(r#"{{"anyOf":[{}]}}"#, parts.join(","))),
        ]
    });
    nested.prop_map(|json| Value::from_json(&json).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_schema_is_satisfied(schema in schemas(), sample in 0..1000_u64) {
        satisfies(&schema, sample);
    }
}

/// The configuration of a dataset may be a stranger's, and its replies are made on the threads of a server.
#[test]
fn replies_to_hostile_schemas_are_bounded() {
    let long = "x".repeat(20_000);
    let chain: Vec<String> = (0..20)
        .map(|at| {
            format!(r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, at + 1)
        })
        .collect();
    for schema in [
        r#"{"type":"array","minItems":3000,"items":{"type":"array","minItems":3000}}"#,
        r##"{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}},"required":["a","b"]}"##,
        &format!(r##"{{"$defs":{{{},"d20":{{"type":"string"}}}},"$ref":"#/$defs/d0"}}"##, chain.join(",")),
        &format!(r#"{{"type":"array","minItems":10000,"items":{{"const":"{long}"}}}}"#),
        &format!(r#"{{"type":"array","minItems":10000,"items":{{"enum":[["{long}"]]}}}}"#),
        &format!(r#"{{"type":"array","minItems":10000,"items":{{"required":["{long}"]}}}}"#),
        r#"{"type":"array","minItems":10000,"items":{"minLength":20000}}"#,
        r#"{"type":"array","minItems":10000,"items":{"pattern":"a*","minLength":1000000}}"#,
        &format!(r#"{{"pattern":"{}"}}"#, r"\\pL".repeat(20_000)),
    ] {
        let text = ask_text(&format!("<response_schema>{schema}</response_schema>"), 1);
        let begin: String = schema.chars().take(100).collect();
        assert!(text.len() < 8 << 20, "{} MiB: {begin}", text.len() >> 20);
        assert!(text.len() < 100 || !schema.contains("pL"), "a pattern of such a length is left out");
    }
}
