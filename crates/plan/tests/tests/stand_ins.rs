//! Fallbacks of nodes, one scenario after the other, on the virtual clock.

mod moods;
mod random;
mod skipped;

use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{Answer, Config, Engine, Error, Plan, Reason, Request, RunOptions};
use anabranch_testkit::Sim;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::naive::world::registries;
use moods::Moods;

const DATA: &str = r#"{
    "hashes": {"trust:2": {"sure": "0.9"}, "trust:3": {"sure": "7"}},
    "lists": {"follow:1": [2, 3]}
}"#;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A plan on a source with this trouble, whose nodes have these moods.
fn plan(sim: &Sim, fault: Fault, moods: &Moods, nodes: &Value) -> Plan {
    let data = Arc::new(MemoryData::from_json("data", DATA).unwrap());
    let memory = Memory::new("ep_0001", data, sim.clock()).with_fault("trust:", fault);
    let source = Arc::new(memory) as Arc<dyn Source>;
    let mut config = Config::new(registries(), vec![Arc::clone(&source), source]);
    config.ops = moods.ops();
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    let last = nodes.as_array().unwrap().last().unwrap()["node_id"].clone();
    let text = json!({
        "schema_version": 1, "plan_name": "moody", "nodes": nodes, "outputs": [last],
        "expr_table": {"e": {"op": "key_ref", "key": "id"}},
    });
    engine.compile(&text.to_string(), std::path::Path::new(".")).unwrap()
}

fn follows() -> [Value; 2] {
    [
        json!({"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}}),
        json!({"node_id": "f", "op": "core::follow", "inputs": ["v"],
               "params": {"endpoint": "ep_0001", "fanout": 9}}),
    ]
}

/// The follows of the viewer, looked up by a node with this guard.
fn looked_up(guard: &Value) -> Value {
    let [viewer, follow] = follows();
    let mut lookup = json!({"node_id": "l", "op": "core::lookup", "inputs": ["f"],
                            "params": {"endpoint": "ep_0001", "key": "trust:{id}", "fields": ["sure"]}});
    lookup.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    json!([viewer, follow, lookup])
}

/// The answer within so many milliseconds, and how many it took.
fn ask(sim: &Sim, plan: &Plan, options: RunOptions, deadline: u64) -> (Result<Answer, Error>, Duration) {
    let start = sim.clock().now();
    let options = RunOptions { deadline: Some(start + millis(deadline)), ..options };
    let answer = sim.block_on(plan.run_with(Request::new(1, plan.engine().registries()), &options));
    let took = sim.clock().now() - start;
    let left = sim.settle();
    assert_eq!((left.tasks, left.jobs), (0, 0));
    (answer, took)
}

fn run(sim: &Sim, plan: &Plan, deadline: u64) -> (Result<Answer, Error>, Duration) {
    ask(sim, plan, RunOptions::default(), deadline)
}

fn pause(sim: &Sim, time: u64) {
    let clock = sim.clock();
    sim.block_on(clock.sleep_until(clock.now() + millis(time)));
}

/// Rows and ledger of an answer.
fn told(plan: &Plan, answer: &Answer, expected: Expect) {
    let mut json = Vec::new();
    answer.write_json(&plan.engine().registries().keys, &mut json);
    let json: Value = serde_json::from_slice(&json).unwrap();
    expected.assert_eq(&format!("{}\n{}", json["candidates"], json["ledger"]));
}

const FAILS_EVERY_SECOND: Fault = Fault { delay: Duration::ZERO, fail_every: 2, stall_after: None };

#[test]
fn stale_values_stand_in_until_they_are_too_old() {
    let sim = Sim::new(1);
    let guard = json!({"fallback": [{"stale": {"max_age_ms": 1000}}, {"default": {"sure": 0.25}}]});
    let plan = plan(&sim, FAILS_EVERY_SECOND, &Moods::default(), &looked_up(&guard));
    assert_eq!(run(&sim, &plan, 50).0.unwrap().ledger, []);
    pause(&sim, 300);
    told(
        &plan,
        &run(&sim, &plan, 50).0.unwrap(),
        expect![[r#"
            [{"fields":{"sure":0.9},"id":2},{"fields":{"sure":7.0},"id":3}]
            [{"age_us":300000,"asked_keys":2,"detail":"no connection to ep_0001: trip 2 was told to fail","fallback":"stale","known_keys":2,"node":"l","reason":"error","rows":2,"waited_us":0}]"#]],
    );
    assert_eq!(run(&sim, &plan, 50).0.unwrap().ledger, []);
    pause(&sim, 1001);
    told(
        &plan,
        &run(&sim, &plan, 50).0.unwrap(),
        expect![[r#"
        [{"fields":{"sure":0.25},"id":2},{"fields":{"sure":0.25},"id":3}]
        [{"detail":"no connection to ep_0001: trip 4 was told to fail","fallback":"default","node":"l","reason":"error","rows":2,"waited_us":0}]"#]],
    );
}

#[test]
fn what_is_out_of_range_does_not_stand_in() {
    let sim = Sim::new(1);
    let guard = json!({"range": {"sure": [0, 1]},
                       "fallback": [{"stale": {"max_age_ms": 1000}}, {"default": {"sure": 0.5}}]});
    let plan = plan(&sim, FAILS_EVERY_SECOND, &Moods::default(), &looked_up(&guard));
    assert_eq!(run(&sim, &plan, 50).0.unwrap().ledger, []);
    told(
        &plan,
        &run(&sim, &plan, 50).0.unwrap(),
        expect![[r#"
        [{"fields":{"sure":0.5},"id":2},{"fields":{"sure":0.5},"id":3}]
        [{"detail":"no connection to ep_0001: trip 2 was told to fail","fallback":"default","node":"l","reason":"error","rows":2,"waited_us":0}]"#]],
    );
}

#[test]
fn a_region_that_fails_says_why() {
    let sim = Sim::new(1);
    let mut nodes = looked_up(&json!({"fallback": {"stale": {"max_age_ms": 1000}}}));
    nodes.as_array_mut().unwrap().push(
        json!({"node_id": "r", "op": "core::timeout", "inputs": ["l"], "timeout_ms": 20, "fallback": "fail"}),
    );
    let fails = Fault { fail_every: 1, ..Fault::default() };
    let plan = plan(&sim, fails, &Moods::default(), &nodes);
    let error = run(&sim, &plan, 50).0.unwrap_err().to_string();
    expect!["node `r` (core::timeout): was not done in time; late: `l` (error: no connection to ep_0001: trip 1 was told to fail)"].assert_eq(&error);
}

#[test]
fn a_region_without_a_fallback_has_its_whole_time() {
    let sim = Sim::new(1);
    let moods = Moods::default();
    let [viewer, follow] = follows();
    let nodes = json!([viewer, follow,
        {"node_id": "s", "op": "core::vm", "inputs": ["f"], "params": {"out_key": 2001, "expr_id": "e"}},
        {"node_id": "r", "op": "core::timeout", "inputs": ["s"], "timeout_ms": 95}]);
    let plan = plan(&sim, Fault::default(), &moods, &nodes);
    moods.takes("s", millis(94));
    let (answer, took) = run(&sim, &plan, 100);
    assert_eq!((answer.unwrap().ledger.len(), took), (0, millis(94)));
    moods.takes("s", millis(200));
    let (answer, took) = run(&sim, &plan, 100);
    let error = answer.unwrap_err().to_string();
    assert_eq!(error, "node `r` (core::timeout): was not done in time; late: `s` (timeout)");
    assert_eq!(took, millis(95));
    let (answer, took) = run(&sim, &plan, 50);
    assert_eq!(answer.unwrap_err().to_string(), "the deadline passed; still to finish: s (vm)");
    assert_eq!(took, millis(50));
}

#[test]
fn what_stands_in_and_runs_anyway_is_waited_for_only_when_it_does() {
    let sim = Sim::new(1);
    let moods = Moods::default();
    let [viewer, follow] = follows();
    let slow = json!({"node_id": "slow", "op": "core::vm", "inputs": ["f"],
                      "params": {"out_key": 2002, "expr_id": "e"}});
    let nodes = json!([viewer, follow, slow,
        {"node_id": "s", "op": "core::vm", "inputs": ["f"], "params": {"out_key": 2001, "expr_id": "e"},
         "timeout_ms": 30, "fallback": {"node": "slow"}},
        {"node_id": "tail", "op": "core::take", "inputs": ["s"], "params": {"count": 5}},
        {"node_id": "all", "op": "core::concat", "inputs": ["tail"], "params": {"rhs": "slow"}}]);
    let plan = plan(&sim, Fault::default(), &moods, &nodes);
    let times = |node: &str, time: u64| moods.takes(node, millis(time));
    [("slow", 60), ("tail", 40), ("s", 20)].iter().for_each(|(node, time)| times(node, *time));
    let (answer, took) = run(&sim, &plan, 200);
    assert_eq!((answer.unwrap().ledger.len(), took), (0, millis(60)));
    times("s", 50);
    let (answer, took) = run(&sim, &plan, 200);
    let answer = answer.unwrap();
    assert_eq!(
        (answer.ledger[0].fallback.as_str(), answer.ledger[0].rows, took),
        ("node slow", 2, millis(100))
    );
}

#[test]
fn no_node_takes_longer_than_asked() {
    let sim = Sim::new(1);
    let moods = Moods::default();
    let scored = |guard: Value| {
        let [viewer, follow] = follows();
        let mut score = json!({"node_id": "s", "op": "core::vm", "inputs": ["f"],
                               "params": {"out_key": 2001, "expr_id": "e"}});
        score.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
        plan(&sim, Fault::default(), &moods, &json!([viewer, follow, score]))
    };
    moods.takes("s", millis(30));
    let strict = || RunOptions { node_timeout: Some(millis(10)), ..RunOptions::default() };
    let (answer, took) = ask(&sim, &scored(json!({})), strict(), 100);
    assert_eq!(took, millis(10));
    expect!["node `s` (core::vm): did not finish within its timeout of 10ms"]
        .assert_eq(&answer.unwrap_err().to_string());
    for (timeout, waited) in [(5, 5), (20, 10)] {
        let guarded = scored(json!({"timeout_ms": timeout, "fallback": "pass"}));
        let (answer, took) = ask(&sim, &guarded, strict(), 100);
        let answer = answer.unwrap();
        assert_eq!((took, answer.ledger[0].waited), (millis(waited), millis(waited)));
        assert_eq!((answer.ledger[0].reason, answer.ledger[0].rows), (Reason::Timeout, 2));
    }
    let longest = RunOptions { node_timeout: Some(Duration::MAX), ..RunOptions::default() };
    assert_eq!(ask(&sim, &scored(json!({})), longest, 100).0.unwrap().ledger, []);
}

/// A late node that can be stood in for, then one that must be waited for.
fn late_and_tail() -> Value {
    let [viewer, follow] = follows();
    json!([viewer, follow,
        {"node_id": "late", "op": "core::vm", "inputs": ["f"], "fallback": "pass",
         "params": {"out_key": 2001, "expr_id": "e"}},
        {"node_id": "tail", "op": "core::sort", "inputs": ["late"], "params": {"by": 2001, "order": "desc"}}])
}

#[test]
fn late_nodes_leave_what_the_rest_lately_took() {
    let sim = Sim::new(1);
    let moods = Moods::default();
    let plan = plan(&sim, Fault::default(), &moods, &late_and_tail());
    moods.takes("tail", millis(15));
    moods.takes("late", millis(500));
    // Nothing is known, so a tenth is left, which is not enough.
    let (answer, _) = run(&sim, &plan, 100);
    assert!(answer.unwrap_err().is_late());
    moods.takes("late", millis(5));
    (0..64).for_each(|_| assert_eq!(run(&sim, &plan, 100).0.unwrap().ledger, []));
    moods.takes("late", millis(500));
    for _ in 0..20 {
        let (answer, took) = run(&sim, &plan, 100);
        assert_eq!(answer.unwrap().ledger[0].node, "late");
        assert!(took <= millis(100) && took > millis(90), "{took:?}");
    }
}

#[test]
fn what_never_took_so_little_is_not_begun_until_it_does() {
    let sim = Sim::new(1);
    let moods = Moods::default();
    let plan = plan(&sim, Fault::default(), &moods, &late_and_tail());
    moods.takes("late", millis(30));
    (0..65).for_each(|_| assert_eq!(run(&sim, &plan, 100).0.unwrap().ledger, []));
    for _ in 0..15 {
        let (answer, took) = run(&sim, &plan, 20);
        let ledger = answer.unwrap().ledger;
        assert_eq!(
            (ledger[0].reason, ledger[0].waited, took),
            (Reason::Shed, Duration::ZERO, Duration::ZERO)
        );
    }
    moods.takes("late", millis(5));
    // Now and then it is begun all the same, and so it is found out.
    let shed = (0..600).filter(|_| !run(&sim, &plan, 20).0.unwrap().ledger.is_empty()).count();
    assert!(shed > 200 && shed < 400, "{shed}");
}
