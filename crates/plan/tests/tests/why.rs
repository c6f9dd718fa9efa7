//! Why rows are where they are when nodes are late, when ops do not say, and when an `if` goes the other way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::op::{Contract, Effect, Form, Mark, Node, NodePlan, Op, Spec, Takes};
use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{Config, Engine, Request, RunOptions};
use anabranch_plan_inspect::why::{Cause, End, Verdict, Why};
use anabranch_testkit::Sim;
use serde_json::{Value, json};

use crate::naive::world::registries;

/// `mine::odd`: every other row, without a word about it.
struct Odd;

static SPEC: Spec = Spec {
    name: "mine::odd",
    doc: "Every other row.",
    inputs: 1,
    params: &[],
    writes: Effect::Keys(&[]),
    contract: Contract::Subsequence,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Odd {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        Some(NodePlan::new(node.input(0).clone(), [Takes::passing([])], |_, _| {
            Form::compute(1.0, |inputs, _, _| {
                let rows = inputs[0].as_ref().unwrap();
                Ok(rows.with_active(rows.iter().step_by(2).map(|row| row as u32).collect::<Vec<_>>()))
            })
        }))
    }
}

/// Asks why of a row, where fields of users take 50 ms; what is left running afterwards is nothing.
fn why(nodes: &Value, outputs: &Value, row: i64) -> Why {
    let sim = Sim::new(1);
    let data = r#"{"hashes": {"user:1": {"country": "NO"}, "user:2": {"country": "US"}}, "lists": {"near:1": [5, 6]}, "zsets": {}}"#;
    let data = Arc::new(MemoryData::from_json("data", data).unwrap());
    let slow = Fault { delay: Duration::from_millis(50), ..Fault::default() };
    let source = |id: &str| -> Arc<dyn Source> {
        Arc::new(Memory::new(id, Arc::clone(&data), sim.clock()).with_fault("user:", slow))
    };
    let mut config = Config::new(registries(), vec![source("ep_0001"), source("ep_0002")]);
    config.ops.add(Odd);
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    let weight = json!({"op": "param_ref", "param_id": 1});
    let half = json!({"op": "const_number", "value": 0.5});
    let plan = json!({
        "schema_version": 1, "plan_name": "small", "nodes": nodes, "outputs": outputs,
        "pred_table": {"light": {"op": "cmp", "cmp": "<", "a": weight, "b": half}},
    });
    let plan = engine.compile(&plan.to_string(), Path::new(".")).unwrap();
    let why = sim
        .block_on(anabranch_plan_inspect::why(
            &plan,
            Request::new(1, engine.registries()),
            &RunOptions::default(),
            row,
        ))
        .unwrap();
    let left = sim.settle();
    assert_eq!((left.tasks, left.jobs), (0, 0));
    why
}

fn rows(count: u32) -> Value {
    json!({"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": count}})
}

fn late(fallback: &str) -> Value {
    let params = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["country"]});
    json!({"node_id": "fields", "op": "core::lookup", "inputs": ["rows"], "params": params,
           "timeout_ms": 10, "fallback": fallback})
}

fn cause(why: &Why) -> &Cause {
    match &why.ways[0].end {
        End::Dropped { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn dropped_with_all_rows_of_a_late_node() {
    let why = why(&json!([rows(3), late("empty")]), &json!(["fields"]), 2);
    assert_eq!(why.verdict, Verdict::Dropped { node: "fields".to_owned() });
    let expected = Cause::Degraded { reason: "timeout".to_owned(), fallback: "empty".to_owned() };
    assert_eq!(cause(&why), &expected);
    assert!(why.text().contains("fields: timeout after 10.0 ms, empty instead"), "{}", why.text());
}

#[test]
fn lists_of_a_late_node_brought_nothing() {
    let params = json!({"endpoint": "ep_0001", "key": "near:{id}", "limit": 5, "fields": ["country"],
                        "fields_key": "user:{id}"});
    let near = json!({"node_id": "near", "op": "core::fanout", "inputs": ["rows"], "params": params,
                      "timeout_ms": 10, "fallback": "empty"});
    // Its list came in time, the fields of what is on it did not.
    let why = why(&json!([rows(1), near]), &json!(["near"]), 6);
    let near = why.looked.iter().find(|looked| looked.node == "near").unwrap();
    assert_eq!((&why.verdict, near.rows, &near.lists), (&Verdict::Absent, 0, &None), "{}", why.text());
}

#[test]
fn passed_on_by_a_late_node() {
    let why = why(&json!([rows(3), late("pass")]), &json!(["fields"]), 2);
    assert_eq!(why.verdict, Verdict::Answered { places: vec![2] });
    let nodes: Vec<&str> = why.ways[0].steps.iter().map(|step| step.node.as_str()).collect();
    assert_eq!((nodes, why.degraded.len()), (vec!["rows", "fields"], 1));
}

#[test]
fn ops_that_do_not_say() {
    let odd = json!({"node_id": "odd", "op": "mine::odd", "inputs": ["rows"]});
    let why = why(&json!([rows(4), odd]), &json!(["odd"]), 2);
    assert_eq!((cause(&why), &why.verdict), (&Cause::Unknown, &Verdict::Dropped { node: "odd".to_owned() }));
    assert!(why.text().contains("odd (mine::odd) did not pass it on"), "{}", why.text());
}

#[test]
fn the_other_side_of_an_if() {
    let take = json!({"node_id": "two", "op": "core::take", "inputs": ["rows"], "params": {"count": 2}});
    let params = json!({"pred_id": "light", "then": "two"});
    let choice = json!({"node_id": "choice", "op": "core::if", "inputs": ["rows"], "params": params});
    // No weight is given, so it is not light.
    let why = why(&json!([rows(4), take, choice]), &json!(["choice"]), 1);
    assert_eq!((&why.verdict, why.idle), (&Verdict::Answered { places: vec![1] }, vec!["two".to_owned()]));
}

#[test]
fn what_nobody_wanted_is_not_looked_up() {
    let sort = json!({"node_id": "sort", "op": "core::sort", "inputs": ["rows"],
                      "params": {"by": 1, "order": "desc"}});
    let params = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["country"]});
    let fields = json!({"node_id": "fields", "op": "core::lookup", "inputs": ["sort"], "params": params});
    let take = json!({"node_id": "two", "op": "core::take", "inputs": ["fields"], "params": {"count": 2}});
    let why = why(&json!([rows(9), sort, fields, take]), &json!(["two"]), 4);
    assert_eq!(cause(&why), &Cause::Unasked { place: 6, first: 2, by: Some("two".to_owned()) });
}

/// Each row is looked at a few times, not once for each other one.
#[test]
fn one_of_very_many_rows() {
    let sort = json!({"node_id": "sort", "op": "core::sort", "inputs": ["rows"],
                      "params": {"by": 1, "order": "desc"}});
    let take =
        json!({"node_id": "most", "op": "core::take", "inputs": ["sort"], "params": {"count": 99_999}});
    let why = why(&json!([rows(100_000), sort, take]), &json!(["most"]), 2);
    assert_eq!(why.verdict, Verdict::Answered { places: vec![99_999] });
}
