//! Answers by their deadline: ten nodes in two branches with the latencies of a known timeline, on the virtual clock.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_plan::call::Call;
use anabranch_plan::op::{
    Compute, Contract, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec, Takes,
};
use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{
    Answer, Config, Engine, Error, LedgerEntry, OpError, Plan, Reason, Request, RunOptions,
};
use anabranch_rows::Rows;
use anabranch_testkit::{Sim, spend};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::naive::world::registries;

const DATA: &str = r#"{
    "hashes": {"user:1": {"country": "NO"}},
    "lists": {"follow:1": [11, 12], "recommendation:NO:1": [21, 22],
              "media:11": [101, 102], "media:12": [103], "media:21": [201], "media:22": [202, 203]}
}"#;

/// How long trips take: where the viewer and the followed branch read, and where the other does.
const HERE: [(&str, u64); 3] = [("user:", 9), ("follow:", 14), ("media:", 19)];
const THERE: [(&str, u64); 2] = [("recommendation:", 19), ("media:", 24)];

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An op that takes virtual time on a thread of the simulator's pool.
struct Spend;

static SPEND: Spec = Spec {
    name: "test::spend",
    doc: "The rows of its input, after so many milliseconds of virtual time.",
    inputs: 1,
    params: &[ParamSpec::required("millis", ParamKind::Int(1, 60_000), "how long")],
    writes: Effect::Keys(&[]),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: true,
};

impl Op for Spend {
    fn spec(&self) -> &Spec {
        &SPEND
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let time = millis(node.int("millis")? as u64);
        Some(NodePlan::new(node.input(0).clone(), [Takes::passing([])], move |_, _| {
            Form::Compute(Arc::new(Spends(time)))
        }))
    }
}

/// Takes this much virtual time, however few the rows are.
struct Spends(Duration);

impl Compute for Spends {
    fn cost(&self, _rows: usize) -> Duration {
        self.0
    }

    fn run(&self, inputs: &Inputs, _: &Call, _: &Check<'_>) -> Result<Rows, OpError> {
        spend(self.0);
        Ok(inputs[0].clone().unwrap())
    }
}

fn engine(sim: &Sim) -> Engine {
    let data = Arc::new(MemoryData::from_json("data", DATA).unwrap());
    let source = |endpoint: &str, delays: &[(&str, u64)]| {
        let memory = Memory::new(endpoint, Arc::clone(&data), sim.clock());
        let slow = |memory: Memory, (prefix, delay): &(&str, u64)| {
            memory.with_fault(*prefix, Fault { delay: millis(*delay), ..Fault::default() })
        };
        Arc::new(delays.iter().fold(memory, slow)) as Arc<dyn Source>
    };
    let mut config = Config::new(registries(), vec![source("ep_0001", &HERE), source("ep_0002", &THERE)]);
    config.ops.add(Spend);
    Engine::on(sim.engine(&anabranch_engine::Config::default()), config)
}

/// The plan, with what some nodes are allowed and what stands in for them.
fn plan(engine: &Engine, guards: &[(&str, Value)]) -> Plan {
    engine.compile(&document(guards, &json!([])).to_string(), Path::new(".")).unwrap()
}

fn document(guards: &[(&str, Value)], more: &Value) -> Value {
    let reads = |from: &str| json!({"endpoint": from, "fanout": 10});
    let score = json!({"out_key": 2001, "expr_id": "score"});
    let mut nodes = json!([
        {"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
        {"node_id": "follow", "op": "core::follow", "inputs": ["v"], "params": reads("ep_0001")},
        {"node_id": "media_f", "op": "core::media", "inputs": ["follow"], "params": reads("ep_0001")},
        {"node_id": "busy_f", "op": "test::spend", "inputs": ["media_f"], "params": {"millis": 4}},
        {"node_id": "vm_f", "op": "core::vm", "inputs": ["busy_f"], "params": score},
        {"node_id": "recs", "op": "core::fanout", "inputs": ["v"],
         "params": {"endpoint": "ep_0002", "key": "recommendation:{country}:{id}", "limit": 10}},
        {"node_id": "media_r", "op": "core::media", "inputs": ["recs"], "params": reads("ep_0002")},
        {"node_id": "busy_r", "op": "test::spend", "inputs": ["media_r"], "params": {"millis": 4}},
        {"node_id": "vm_r", "op": "core::vm", "inputs": ["busy_r"], "params": score},
        {"node_id": "merge", "op": "core::concat", "inputs": ["vm_f"], "params": {"rhs": "vm_r"}},
        {"node_id": "sort", "op": "core::sort", "inputs": ["merge"], "params": {"by": 2001, "order": "desc"}},
        {"node_id": "take", "op": "core::take", "inputs": ["sort"], "params": {"count": 50}},
    ]);
    let list = nodes.as_array_mut().unwrap();
    list.extend(more.as_array().unwrap().clone());
    for (id, guard) in guards {
        let node = list.iter_mut().find(|node| node["node_id"] == *id).unwrap();
        node.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    }
    json!({
        "schema_version": 1, "plan_name": "complex_dag", "nodes": nodes, "outputs": ["take"],
        "expr_table": {"score": {"op": "mul", "a": {"op": "key_ref", "key": "id"},
                                 "b": {"op": "const_number", "value": 0.1}}},
    })
}

/// Runs a plan within `deadline` milliseconds; the answer and how long it took. Nothing may be left running.
fn run(sim: &Sim, plan: &Plan, deadline: u64) -> (Result<Answer, Error>, Duration) {
    let start = sim.clock().now();
    let options = RunOptions { deadline: Some(start + millis(deadline)), ..RunOptions::default() };
    let answer = sim.block_on(plan.run_with(Request::new(1, plan.engine().registries()), &options));
    let took = sim.clock().now() - start;
    let left = sim.settle();
    assert_eq!((left.tasks, left.jobs), (0, 0));
    (answer, took)
}

fn ids(answer: &Answer) -> Vec<i64> {
    answer.candidates().map(|row| row.id).collect()
}

fn told(ledger: &[LedgerEntry], expected: Expect) {
    let lines = ledger.iter().map(|entry| format!("{}\n", serde_json::to_string(entry).unwrap()));
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn with_time_enough_the_answer_is_whole() {
    let sim = Sim::new(1);
    let engine = engine(&sim);
    for guards in [&[][..], &[("media_r", json!({"fallback": "empty"}))]] {
        let (answer, took) = run(&sim, &plan(&engine, guards), 100);
        let answer = answer.unwrap();
        assert_eq!(ids(&answer), [203, 202, 201, 103, 102, 101]);
        assert_eq!(answer.ledger, []);
        assert_eq!(took, millis(9 + 19 + 24 + 4));
    }
}

#[test]
fn without_fallbacks_the_late_node_is_named() {
    let sim = Sim::new(1);
    let (answer, took) = run(&sim, &plan(&engine(&sim), &[]), 50);
    let error = answer.unwrap_err().to_string();
    assert_eq!(error, "the deadline passed; still to finish: media_r (media)");
    assert_eq!(took, millis(50));
}

#[test]
fn late_nodes_are_stood_in_for() {
    let sim = Sim::new(1);
    let plan = plan(&engine(&sim), &[("media_r", json!({"fallback": "empty"}))]);
    let (answer, took) = run(&sim, &plan, 50);
    let answer = answer.unwrap();
    assert_eq!(ids(&answer), [103, 102, 101]);
    // A tenth of the deadline is kept for the rest, of which 4 ms are used.
    assert_eq!(took, millis(49));
    told(
        &answer.ledger,
        expect![[r#"
        {"node":"media_r","reason":"timeout","fallback":"empty","waited_us":17000,"rows":0}
    "#]],
    );
}

#[test]
fn a_region_is_stood_in_for_as_a_whole() {
    let sim = Sim::new(1);
    let engine = engine(&sim);
    let region = json!([{"node_id": "suggested", "op": "core::timeout", "inputs": ["vm_r"],
                         "timeout_ms": 30, "fallback": "empty"}]);
    let mut text = document(&[], &region);
    text["nodes"][9]["params"]["rhs"] = json!("suggested");
    let plan = engine.compile(&text.to_string(), Path::new(".")).unwrap();
    let (answer, took) = run(&sim, &plan, 100);
    let answer = answer.unwrap();
    assert_eq!(ids(&answer), [103, 102, 101]);
    // Its time runs from when the viewer is there; the other branch needs 46 ms anyway.
    assert_eq!(took, millis(46));
    told(
        &answer.ledger,
        expect![[r#"
        {"node":"media_r","region":"suggested","reason":"timeout","fallback":"empty","waited_us":11000,"rows":0}
    "#]],
    );
    text["nodes"][12].as_object_mut().unwrap().remove("fallback");
    let plan = engine.compile(&text.to_string(), Path::new(".")).unwrap();
    let (answer, took) = run(&sim, &plan, 100);
    let error = answer.unwrap_err().to_string();
    assert_eq!(error, "node `suggested` (core::timeout): was not done in time; late: `media_r` (timeout)");
    assert_eq!(took, millis(9 + 30));
}

#[test]
fn another_node_may_stand_in_and_runs_only_then() {
    let sim = Sim::new(1);
    let engine = engine(&sim);
    let cheap = json!([{"node_id": "cheap", "op": "core::media", "inputs": ["follow"],
                        "params": {"endpoint": "ep_0001", "fanout": 1}}]);
    let compile = |timeout: u64| {
        let guard = json!({"timeout_ms": timeout, "fallback": {"node": "cheap"}});
        let text = document(&[("media_r", guard)], &cheap).to_string();
        engine.compile(&text, Path::new(".")).unwrap()
    };
    let (answer, took) = run(&sim, &compile(30), 100);
    let answer = answer.unwrap();
    assert_eq!((answer.ledger.len(), answer.stats.trips, took), (0, 5, millis(56)));
    let (answer, took) = run(&sim, &compile(10), 100);
    let answer = answer.unwrap();
    assert_eq!(ids(&answer), [103, 103, 102, 101, 101]);
    assert_eq!(took, millis(9 + 19 + 10 + 19 + 4));
    told(
        &answer.ledger,
        expect![[r#"
        {"node":"media_r","reason":"timeout","fallback":"node cheap","waited_us":10000,"rows":2}
    "#]],
    );
    assert_eq!(answer.ledger[0].reason, Reason::Timeout);
}
