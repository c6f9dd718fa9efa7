//! The budget of a request: plans that make more rows or bytes than it may are refused before they do.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::clock::SystemClock;
use anabranch_plan::source::{Http, HttpConfig, Memory, MemoryData, Redis, Source, seed};
use anabranch_plan::{Config, Engine, Registries, Request};
use anabranch_testkit::{FakeServer, RedisServer};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::sources::{HANGS, clock, config};

const KEYS: &str = r#"
key = [
    { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
    { key_id = 10, name = "score", type = "float", nullable = true },
    { key_id = 11, name = "country", type = "string", nullable = true },
    { key_id = 12, name = "parent", type = "int", nullable = true },
]
"#;

const ENDPOINTS: &str = r#"
version = 1
[[endpoint]]
endpoint_id = "ep_0001"
name = "store"
kind = "redis"
resolver = { type = "static", host = "localhost", port = 6379 }
"#;

fn registries(validation: &str) -> Registries {
    let files = [("keys.toml", KEYS), ("endpoints.dev.toml", ENDPOINTS), ("validation.toml", validation)];
    Registries::parse(files, None).unwrap_or_else(|problems| panic!("{problems}")).0
}

/// Each of the users 1 to 100 has a list of all of them.
fn data() -> MemoryData {
    let all: Vec<String> = (1..=100).map(|id| id.to_string()).collect();
    let lists: serde_json::Map<String, Value> =
        (1..=100).map(|id| (format!("follow:{id}"), json!(all))).collect();
    let hashes: serde_json::Map<String, Value> =
        (1..=100).map(|id| (format!("user:{id}"), json!({"country": "CH"}))).collect();
    let data = json!({"lists": lists, "hashes": hashes});
    MemoryData::from_json("data", &data.to_string()).unwrap()
}

fn engine(validation: &str) -> Engine {
    let memory = Memory::new("store", Arc::new(data()), Arc::new(SystemClock));
    Engine::load(Config::new(registries(validation), vec![Arc::new(memory)])).unwrap()
}

#[allow(clippy::needless_pass_by_value, reason = "a node reads best with its parameters in place")]
fn node(id: &str, op: &str, inputs: &[&str], params: Value) -> Value {
    json!({"node_id": id, "op": op, "inputs": inputs, "params": params})
}

fn viewer() -> Value {
    node("viewer", "core::viewer", &[], json!({"endpoint": "ep_0001"}))
}

fn fan(id: &str, input: &str) -> Value {
    let params = json!({"endpoint": "ep_0001", "key": "follow:{id}", "limit": 100, "parent_key": 12});
    node(id, "core::fanout", &[input], params)
}

/// The number of rows of the last node, or the error.
fn check(limits: &str, nodes: &[Value], expected: Expect) {
    let engine = engine(&format!("[limits]\n{limits}\n"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    expected.assert_eq(&runtime.block_on(told(&engine, nodes)));
}

/// The number of rows of the last node, or the error.
async fn told(engine: &Engine, nodes: &[Value]) -> String {
    let output = &nodes.last().unwrap()["node_id"];
    let id = json!({"op": "key_ref", "key_id": 1});
    let plan = json!({
        "schema_version": 1, "plan_name": "test", "nodes": nodes, "outputs": [output],
        "expr_table": {"e": {"op": "mul", "a": id, "b": {"op": "const_number", "value": 0.5}}}, "pred_table": {},
    });
    let plan = engine.compile(&plan.to_string(), Path::new("")).unwrap_or_else(|error| panic!("{error}"));
    match plan.run(Request::new(1, engine.registries())).await {
        Ok(answer) => format!("{} rows", answer.outputs[0].len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn fan_outs_of_fan_outs_are_refused_at_the_one_that_is_too_many() {
    let nodes = [viewer(), fan("first", "viewer"), fan("second", "first"), fan("third", "second")];
    check("max_rows = 10100", &nodes[..3], expect![[r#"10000 rows"#]]);
    check(
        "max_rows = 10099",
        &nodes[..3],
        expect![
            "node `second` (core::fanout): the request would make at least 10100 rows, and 10099 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
    check("", &nodes[..3], expect![[r#"10000 rows"#]]);
    check(
        "max_rows = 500000",
        &nodes,
        expect![
            "node `third` (core::fanout): the request would make at least 1010100 rows, and 500000 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
    check(
        "",
        &nodes,
        expect![
            "node `third` (core::fanout): the request would make at least 1010100 rows, and 1000000 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
}

#[test]
fn rows_of_unions_concats_and_joins_are_counted() {
    let concat = |id: &str, input: &str| node(id, "core::concat", &[input], json!({"rhs": input}));
    let doubled = [viewer(), fan("first", "viewer"), concat("two", "first"), concat("four", "two")];
    check("max_rows = 700", &doubled, expect![[r#"400 rows"#]]);
    check(
        "max_rows = 699",
        &doubled,
        expect![
            "node `four` (core::concat): the request would make at least 700 rows, and 699 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
    let union =
        |id: &str, with: &str| node(id, "core::union", &["first"], json!({"with": [with], "dedupe": false}));
    check(
        "max_rows = 299",
        &[viewer(), fan("first", "viewer"), union("both", "first")],
        expect![
            "node `both` (core::union): the request would make at least 300 rows, and 299 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
    let join =
        node("join", "core::join", &["second"], json!({"with": "second", "kind": "inner", "columns": []}));
    let nodes = [viewer(), fan("first", "viewer"), fan("second", "first"), join];
    check(
        "max_rows = 20000",
        &nodes,
        expect![
            "node `join` (core::join): the request would make at least 20001 rows, and 20000 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
}

#[test]
fn bytes_of_columns_and_reads_are_counted() {
    let vm = node("vm", "core::vm", &["first"], json!({"out_key": 10, "expr_id": "e"}));
    let lookup = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["country"]});
    let nodes = [viewer(), fan("first", "viewer"), vm];
    check("max_bytes = 4000", &nodes, expect![[r#"100 rows"#]]);
    check(
        "max_bytes = \"1KiB\"",
        &nodes,
        expect![
            "node `first` (core::fanout): the request would make at least 1.6 KiB of rows and columns, and 1 KiB are allowed; let the plan make less, or raise `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
    let nodes = [viewer(), fan("first", "viewer"), node("countries", "core::lookup", &["first"], lookup)];
    check(
        "max_bytes = \"2KiB\"",
        &nodes,
        expect![
            "node `countries` (core::lookup): the request would make at least 3.1 KiB of rows and columns, and 2 KiB are allowed; let the plan make less, or raise `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)"
        ],
    );
}

/// The plans of the tests of replies: two fan-outs, and the countries of the users of the first.
fn plans() -> [Vec<Value>; 2] {
    let lookup = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["country"]});
    let countries = node("countries", "core::lookup", &["first"], lookup);
    let fans = vec![viewer(), fan("first", "viewer"), fan("second", "first")];
    [fans, vec![viewer(), fan("first", "viewer"), countries]]
}

/// The second fan-out within rows, within bytes, and the countries within bytes.
async fn check_replies(source: &Arc<dyn Source>, port: u16, expected: Expect) {
    let [fans, countries] = plans();
    let mut lines = Vec::new();
    for (limits, nodes) in [
        ("max_rows = 10100", &fans),
        ("max_rows = 9999", &fans),
        ("max_bytes = \"64KiB\"", &fans),
        ("max_bytes = 4000", &countries),
        ("max_bytes = 3300", &countries),
    ] {
        let registries = registries(&format!("[limits]\n{limits}\n"));
        let engine = Engine::load(Config::new(registries, vec![Arc::clone(source)])).unwrap();
        lines.push(told(&engine, nodes).await);
    }
    let told = lines.join("\n");
    expected.assert_eq(&told.replace(&port.to_string(), "PORT"));
}

#[tokio::test]
async fn replies_of_a_redis_are_counted_while_they_are_decoded() {
    let server = RedisServer::start();
    let redis = Redis::new(config(server.port()), clock());
    seed(&data(), &redis).await.unwrap();
    let redis: Arc<dyn Source> = Arc::new(redis);
    check_replies(&redis, server.port(), expect![[r#"
        10000 rows
        node `second` (core::fanout): the reply to `LRANGE follow:100` of ep_test is too long: the request would make at least 10000 rows, and 9999 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)
        node `second` (core::fanout): the reply to `LRANGE follow:85` of ep_test is too long: the request would make at least 67.2 KiB of rows and columns, and 64 KiB are allowed; let the plan make less, or raise `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)
        100 rows
        node `countries` (core::lookup): the request would make at least 3.1 KiB of rows and columns, and 2.4 KiB are allowed; let the plan make less, or raise `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)"#]]).await;
}

/// A server that answers each list with the users 1 to 100, and fields with a country of 20 letters.
#[tokio::test]
async fn replies_over_http_are_counted_while_they_are_decoded() {
    let server = FakeServer::start(|talk| {
        while let Some(asked) = talk.http_request() {
            let asked: Value = serde_json::from_str(&asked).unwrap();
            let keys = asked["keys"].as_array().unwrap();
            let ids: Vec<u32> = (1..=100).collect();
            let reply = match asked["read"].as_str() {
                Some("list") => json!({"lists": keys.iter().map(|_| &ids).collect::<Vec<_>>()}),
                _ => json!({"rows": keys.iter().map(|key| json!({"country": key})).collect::<Vec<_>>()}),
            };
            talk.http_reply("200 OK", &reply.to_string());
        }
    });
    let url = format!("http://127.0.0.1:{}/read", server.port());
    let config = HttpConfig { endpoint: "ep_http".into(), response_timeout: HANGS, ..HttpConfig::new(url) };
    let http: Arc<dyn Source> = Arc::new(Http::new(config, clock()));
    check_replies(&http, server.port(), expect![[r#"
        10000 rows
        node `second` (core::fanout): the reply to `POST http://127.0.0.1:PORT/read` of ep_http is too long: the request would make at least 10000 rows, and 9999 are allowed; let the plan make fewer, or raise `max_rows` (under [limits] of validation.toml or [plan] of anabranch.toml)
        node `second` (core::fanout): the reply to `POST http://127.0.0.1:PORT/read` of ep_http is too long: the request would make at least 65.6 KiB of rows and columns, and 64 KiB are allowed; let the plan make less, or raise `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)
        100 rows
        node `countries` (core::lookup): the request would make at least 3.1 KiB of rows and columns, and 2.4 KiB are allowed; let the plan make less, or raise `max_bytes` (under [limits] of validation.toml or [plan] of anabranch.toml)"#]]).await;
}
