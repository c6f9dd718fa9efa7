//! Ops in whole plans: which of them run, and what they cost in trips.

use std::path::Path;
use std::sync::Arc;

use anabranch_engine::clock::SystemClock;
use anabranch_plan::source::{Fault, Memory, MemoryData};
use anabranch_plan::{Config, Engine, Registries, Request};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const KEYS: &str = r#"
key = [
    { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
    { key_id = 2001, name = "final_score", type = "float", nullable = false, default = 0.0 },
    { key_id = 2002, name = "age", type = "int", nullable = true },
    { key_id = 3001, name = "country", type = "string", nullable = true },
]
"#;

const PARAMS: &str = r#"
param = [{ param_id = 1, name = "weight", type = "float", nullable = true }]
"#;

const ENDPOINTS: &str = r#"
version = 1
[[endpoint]]
endpoint_id = "ep_0001"
name = "store"
kind = "redis"
resolver = { type = "static", host = "localhost", port = 6379 }
"#;

/// A store in which everything under `recommendation:` fails.
fn engine() -> Engine {
    let files = [("keys.toml", KEYS), ("params.toml", PARAMS), ("endpoints.dev.toml", ENDPOINTS)];
    let (registries, _) = Registries::parse(files, None).unwrap();
    let data = json!({
        "hashes": {"user:1": {"country": "US", "age": "31"}, "user:2": {"country": "CA"}, "user:3": {"age": "33"}},
        "lists": {
            "follow:1": ["1", "2", "3"], "media:1": ["11", "12"], "media:3": ["31"], "recommendation:1": ["2"],
        },
    });
    let data = MemoryData::from_json("data", &data.to_string()).unwrap();
    let memory = Memory::new("store", Arc::new(data), Arc::new(SystemClock))
        .with_fault("recommendation:", Fault { fail_every: 1, ..Fault::default() });
    Engine::load(Config::new(registries, vec![Arc::new(memory)])).unwrap()
}

#[allow(clippy::needless_pass_by_value, reason = "a node reads best with its parameters in place")]
fn node(id: &str, op: &str, input: &str, params: Value) -> Value {
    let inputs: Vec<&str> = input.split_terminator(' ').collect();
    json!({"node_id": id, "op": op, "inputs": inputs, "params": params})
}

fn viewer() -> Value {
    node("viewer", "core::viewer", "", json!({"endpoint": "ep_0001"}))
}

fn follow(op: &str, fanout: u32) -> Value {
    node("follow", op, "viewer", json!({"endpoint": "ep_0001", "fanout": fanout}))
}

/// The rows, or the error, and the trips and commands it took.
async fn check(nodes: &[Value], weight: Option<f64>, expected: Expect) {
    let engine = engine();
    let weight_above = json!({"op": "cmp", "cmp": ">", "a": {"op": "param_ref", "param_id": 1},
        "b": {"op": "const_number", "value": 0.5}});
    let plan = json!({
        "schema_version": 1, "plan_name": "test", "nodes": nodes,
        "outputs": [nodes.last().unwrap()["node_id"]],
        "expr_table": {
            "null": {"op": "const_null"},
            "id": {"op": "key_ref", "key_id": 1},
        },
        "pred_table": {"weight": weight_above, "score": {"op": "cmp", "cmp": ">",
            "a": {"op": "key_ref", "key_id": 2001}, "b": {"op": "const_number", "value": 1.0}}},
    });
    let plan = engine.compile(&plan.to_string(), Path::new("")).unwrap_or_else(|error| panic!("{error}"));
    let overrides = weight.map_or(json!({}), |weight| json!({"weight": weight}));
    let request = json!({"user_id": 1, "request_id": "r", "param_overrides": overrides});
    let request = Request::parse(request.to_string(), engine.registries()).unwrap();
    let text = match plan.run(request).await {
        Err(error) => error.to_string(),
        Ok(answer) => {
            let mut bytes = Vec::new();
            answer.write_json(&engine.registries().keys, &mut bytes);
            let json: Value = serde_json::from_slice(&bytes).unwrap();
            let rows = json["candidates"].as_array().unwrap();
            let mut lines: Vec<String> =
                rows.iter().map(|row| format!("{} {}", row["id"], row["fields"])).collect();
            lines.push(format!("{} trips, {} commands", answer.stats.trips, answer.stats.commands));
            lines.join("\n")
        }
    };
    expected.assert_eq(&text);
}

#[tokio::test]
async fn fields_that_nobody_reads_are_not_fetched() {
    check(
        &[viewer(), follow("core::follow", 10)],
        None,
        expect![[r#"
        1 {"country":"US"}
        2 {"country":"CA"}
        3 {}
        2 trips, 4 commands"#]],
    )
    .await;
    let media = node("media", "core::media", "follow", json!({"endpoint": "ep_0001", "fanout": 1}));
    check(
        &[viewer(), follow("core::follow", 10), media],
        None,
        expect![[r#"
        11 {}
        31 {}
        2 trips, 4 commands"#]],
    )
    .await;
}

#[tokio::test]
async fn a_take_limits_what_is_read_before_it() {
    let take = node("take", "core::take", "follow", json!({"count": 1}));
    check(
        &[viewer(), follow("core::follow", 10), take],
        None,
        expect![[r#"
        1 {"country":"US"}
        2 trips, 2 commands"#]],
    )
    .await;
}

#[tokio::test]
async fn only_the_chosen_side_of_an_if_runs() {
    let choose = node("if", "core::if", "viewer", json!({"pred_id": "weight", "then": "follow"}));
    let nodes = [viewer(), follow("core::recommendation", 10), choose];
    check(
        &nodes,
        Some(0.9),
        expect!["node `follow` (core::recommendation): no connection to store: trip 1 was told to fail"],
    )
    .await;
    check(
        &nodes,
        Some(0.1),
        expect![[r#"
        1 {"country":"US"}
        1 trips, 1 commands"#]],
    )
    .await;
    check(
        &nodes,
        None,
        expect![[r#"
        1 {"country":"US"}
        1 trips, 1 commands"#]],
    )
    .await;
}

#[tokio::test]
async fn a_vm_whose_column_nobody_reads_does_not_run() {
    let bad = node("bad", "core::vm", "viewer", json!({"out_key": 2001, "expr_id": "null"}));
    let again = node("again", "core::vm", "bad", json!({"out_key": 2001, "expr_id": "id"}));
    check(&[viewer(), bad.clone()], None, expect!["node `bad` (core::vm): null for key `final_score`, which is not nullable, at row 0 (id 1); a `coalesce` would give it a value"]).await;
    check(
        &[viewer(), bad, again],
        None,
        expect![[r#"
        1 {"country":"US","final_score":1.0}
        1 trips, 1 commands"#]],
    )
    .await;
}

#[tokio::test]
async fn lookup_fill_and_boost_work_on_what_fan_outs_bring() {
    let fanout = json!({"endpoint": "ep_0001", "key": "follow:{id}", "limit": 5});
    let lookup = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["age", {"name": "country"}]});
    let nodes = [
        viewer(),
        node("fanout", "core::fanout", "viewer", fanout),
        node("lookup", "core::lookup", "fanout", lookup),
        node("fill", "core::fill", "lookup", json!({"keys": ["country"], "value": "?"})),
        node("score", "core::vm", "fill", json!({"out_key": 2001, "expr_id": "id"})),
        node("boost", "core::boost", "score", json!({"out_key": 2001, "pred_id": "score", "factor": 10})),
        node("sort", "core::sort", "boost", json!({"by": 2001, "order": "desc"})),
    ];
    check(
        &nodes,
        None,
        expect![[r#"
        3 {"age":33,"country":"?","final_score":30.0}
        2 {"country":"CA","final_score":20.0}
        1 {"age":31,"country":"US","final_score":1.0}
        2 trips, 4 commands"#]],
    )
    .await;
}
