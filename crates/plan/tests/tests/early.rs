//! Reads that do not depend on each other run side by side, although the plan writes them one behind the other.

use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{Answer, Config, Engine, Plan, Registries, Request, RunOptions};
use anabranch_plan_inspect::explain;
use anabranch_testkit::Sim;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const KEYS: &str = r#"key = [
    { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
    { key_id = 2, name = "price", type = "float", nullable = true },
    { key_id = 3, name = "seller", type = "int", nullable = true },
    { key_id = 4, name = "rating", type = "float", nullable = true },
    { key_id = 5, name = "clicks", type = "int", nullable = true },
    { key_id = 6, name = "score", type = "float", nullable = true }]"#;

const ENDPOINTS: &str = r#"[[endpoint]]
endpoint_id = "ep_1"
name = "shop"
kind = "redis"
resolver = { type = "static", host = "127.0.0.1", port = 1 }"#;

const DATA: &str = r#"{"hashes": {
    "item:1": {"price": "5", "seller": "7"}, "item:2": {"price": "3"}, "item:3": {"seller": "8"},
    "clicks:1": {"clicks": "10"}, "clicks:3": {"clicks": "30"},
    "seller:7": {"rating": "0.5"}, "seller:8": {"rating": "0.9"}}}"#;

/// A plan whose reads take 10 ms each, those of clicks 12.
fn plan(sim: &Sim, nodes: &[Value]) -> Plan {
    let (registries, _) =
        Registries::parse([("keys.toml", KEYS), ("endpoints.dev.toml", ENDPOINTS)], Some("dev")).unwrap();
    let data = Arc::new(MemoryData::from_json("data", DATA).unwrap());
    let delay = |delay| Fault { delay: Duration::from_millis(delay), ..Fault::default() };
    let memory = Memory::new("shop", data, sim.clock());
    let memory =
        ["item:", "seller:"].iter().fold(memory, |memory, prefix| memory.with_fault(*prefix, delay(10)));
    let source: Arc<dyn Source> = Arc::new(memory.with_fault("clicks:", delay(12)));
    let engine =
        Engine::on(sim.engine(&anabranch_engine::Config::default()), Config::new(registries, vec![source]));
    let mut all = vec![json!({"node_id": "ids", "op": "core::candidates", "inputs": []})];
    all.extend_from_slice(nodes);
    let last = all[all.len() - 1]["node_id"].clone();
    let text = json!({
        "schema_version": 1, "plan_name": "shop", "nodes": all, "outputs": [last],
        "expr_table": {"e": {"op": "key_ref", "key": "price"}},
        "pred_table": {"p": {"op": "not_null", "x": {"op": "key_ref", "key": "price"}}},
    });
    engine.compile(&text.to_string(), ".".as_ref()).unwrap()
}

fn lookup(id: &str, input: &str, key: &str, fields: &[&str]) -> Value {
    json!({"node_id": id, "op": "core::lookup", "inputs": [input],
           "params": {"endpoint": "shop", "key": key, "fields": fields}})
}

fn run(sim: &Sim, plan: &Plan) -> (Answer, Duration) {
    let text = r#"{"user_id": 1, "candidates": [3, 1, 2]}"#;
    let request = Request::parse(text, plan.engine().registries()).unwrap();
    let clock = sim.clock();
    let began = clock.now();
    let answer = sim.block_on(plan.run_with(request, &RunOptions::default())).unwrap();
    (answer, clock.now() - began)
}

/// The time of a request, the nodes that read early, the rows and the ledger.
fn check(nodes: &[Value], expected: Expect) {
    let sim = Sim::new(1);
    let plan = plan(&sim, nodes);
    let (answer, took) = run(&sim, &plan);
    let early = explain(&plan).nodes.into_iter().filter_map(|node| Some((node.id, node.reads_with?)));
    let early: Vec<String> = early.map(|(node, with)| format!("{node} with {with}")).collect();
    let mut bytes = Vec::new();
    answer.write_json(&plan.engine().registries().keys, &mut bytes);
    let written: Value = serde_json::from_slice(&bytes).unwrap();
    let rows = written["candidates"].as_array().unwrap().iter();
    let rows: Vec<String> = rows.map(|row| format!("{} {}", row["id"], row["fields"])).collect();
    expected.assert_eq(&format!(
        "{took:?}, early: {}\n{}\n{}",
        early.join(", "),
        rows.join("\n"),
        written["ledger"]
    ));
}

#[test]
fn independent_lookups_take_the_time_of_the_longest() {
    check(
        &[
            lookup("items", "ids", "item:{id}", &["price", "seller"]),
            lookup("clicks", "items", "clicks:{id}", &["clicks"]),
        ],
        expect![[r#"
            12ms, early: clicks with ids
            3 {"clicks":30,"seller":8}
            1 {"clicks":10,"price":5.0,"seller":7}
            2 {"price":3.0}
            []"#]],
    );
}

#[test]
fn a_lookup_by_a_column_waits_for_the_node_that_makes_it() {
    check(
        &[
            lookup("items", "ids", "item:{id}", &["price", "seller"]),
            lookup("clicks", "items", "clicks:{id}", &["clicks"]),
            lookup("sellers", "clicks", "seller:{seller}", &["rating"]),
        ],
        expect![[r#"
            22ms, early: clicks with ids
            3 {"clicks":30,"rating":0.9,"seller":8}
            1 {"clicks":10,"price":5.0,"rating":0.5,"seller":7}
            2 {"price":3.0}
            []"#]],
    );
}

#[test]
fn nodes_that_choose_rows_are_not_passed() {
    check(
        &[
            lookup("items", "ids", "item:{id}", &["price"]),
            json!({"node_id": "priced", "op": "core::filter", "inputs": ["items"], "params": {"pred_id": "p"}}),
            lookup("clicks", "priced", "clicks:{id}", &["clicks"]),
        ],
        expect![[r#"
            22ms, early: 
            1 {"clicks":10,"price":5.0}
            2 {"price":3.0}
            []"#]],
    );
}

#[test]
fn nodes_that_compute_are_passed_and_keep_their_columns() {
    check(
        &[
            lookup("items", "ids", "item:{id}", &["price"]),
            json!({"node_id": "scored", "op": "core::vm", "inputs": ["items"],
                   "params": {"expr_id": "e", "out_key": "score"}}),
            lookup("clicks", "scored", "clicks:{id}", &["clicks"]),
            json!({"node_id": "best", "op": "core::sort", "inputs": ["clicks"],
                   "params": {"by": "score", "order": "desc"}}),
        ],
        expect![[r#"
            12ms, early: clicks with ids
            1 {"clicks":10,"price":5.0,"score":5.0}
            2 {"price":3.0,"score":3.0}
            3 {"clicks":30}
            []"#]],
    );
}

#[test]
fn a_late_read_falls_back_although_it_is_early() {
    let mut late = lookup("clicks", "items", "clicks:{id}", &["clicks"]);
    late["timeout_ms"] = json!(5);
    late["fallback"] = json!({"default": {"clicks": 1}});
    check(
        &[lookup("items", "ids", "item:{id}", &["price"]), late],
        expect![[r#"
        10ms, early: clicks with ids
        3 {"clicks":1}
        1 {"clicks":1,"price":5.0}
        2 {"clicks":1,"price":3.0}
        [{"fallback":"default","node":"clicks","reason":"timeout","rows":3,"waited_us":5000}]"#]],
    );
}

#[test]
fn a_fallback_that_has_other_rows_keeps_its_place() {
    let mut items = lookup("items", "ids", "item:{id}", &["price"]);
    items["timeout_ms"] = json!(5);
    items["fallback"] = json!("empty");
    check(
        &[items, lookup("clicks", "items", "clicks:{id}", &["clicks"])],
        expect![[r#"
        5ms, early: 

        [{"fallback":"empty","node":"items","reason":"timeout","rows":0,"waited_us":5000}]"#]],
    );
}
