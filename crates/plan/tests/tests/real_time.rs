//! Deadlines in real time, on a machine that may be busy: what must be ended early would take minutes, and what must
//! be punctual is measured beside a timer.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_plan::op::{
    Contract, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec, Takes,
};
use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{Answer, Config, Engine, Error, OpError, Plan, Reason, Request, RunOptions};
use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::naive::world::registries;

fn engine(delay: Duration) -> Engine {
    engine_with(delay, ChainedOp::default())
}

fn engine_with(delay: Duration, chained: ChainedOp) -> Engine {
    let data = MemoryData::from_json("data", r#"{"lists": {"follow:1": [2, 3], "media:1": [4]}}"#).unwrap();
    let fault = Fault { delay, ..Fault::default() };
    let memory = Memory::new("ep_0001", Arc::new(data), Arc::new(SystemClock)).with_fault("media:", fault);
    let source: Arc<dyn Source> = Arc::new(memory);
    let mut config = Config::new(registries(), vec![Arc::clone(&source), source]);
    // With one thread, a job that runs on after its time is in the way of all others.
    config.runs.cpu_threads = 1;
    config.ops.add(chained);
    Engine::load(config).unwrap()
}

fn plan(engine: &Engine, nodes: Value, output: &str) -> Plan {
    let plan = json!({"schema_version": 1, "plan_name": "now", "nodes": nodes, "outputs": [output]});
    engine.compile(&plan.to_string(), Path::new(".")).unwrap()
}

/// The tested work takes far less time, however busy the machine is.
const SOON: Duration = Duration::from_secs(60);

/// Deadlines that nothing meets, and work that must be ended before its time: both are over after `SOON`.
const FAR_MS: u64 = 120_000;
const LONG_MS: u64 = 300_000;

/// Runs a plan within so many milliseconds.
async fn run(plan: &Plan, deadline: u64) -> Result<Answer, Error> {
    let start = SystemClock.now();
    let deadline = Some(start + Duration::from_millis(deadline));
    let options = RunOptions { deadline, ..RunOptions::default() };
    let answer = plan.run_with(Request::new(1, plan.engine().registries()), &options).await;
    let took = SystemClock.now() - start;
    assert!(took < SOON, "it took {took:?}");
    answer
}

#[tokio::test]
async fn a_failure_beside_a_long_sleep_is_told_at_once() {
    let nodes = json!([
        {"node_id": "source", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
        {"node_id": "fails", "op": "test::sleep", "inputs": ["source"],
         "params": {"duration_ms": 5, "fail_after_sleep": true}},
        {"node_id": "sleeps", "op": "test::sleep", "inputs": ["source"], "params": {"duration_ms": LONG_MS}},
        {"node_id": "all", "op": "core::concat", "inputs": ["fails"], "params": {"rhs": "sleeps"}},
    ]);
    let plan = plan(&engine(Duration::ZERO), nodes, "all");
    let answer = run(&plan, FAR_MS).await;
    assert!(matches!(answer, Err(Error::Node { .. })), "{:?}", answer.err());
}

fn busy(guard: Value) -> Value {
    let mut busy = json!({"node_id": "busy", "op": "test::busy_cpu", "inputs": ["source"],
                          "params": {"busy_wait_ms": LONG_MS}});
    busy.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    json!([
        {"node_id": "source", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
        busy,
        {"node_id": "few", "op": "core::take", "inputs": ["busy"], "params": {"count": 2}},
    ])
}

#[tokio::test]
async fn a_busy_core_is_free_again_when_the_time_is_over() {
    let engine = engine(Duration::ZERO);
    let short = json!([
        {"node_id": "source", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
        {"node_id": "busy", "op": "test::busy_cpu", "inputs": ["source"], "params": {"busy_wait_ms": 2}},
    ]);
    let short = plan(&engine, short, "busy");
    let failing = plan(&engine, busy(json!({})), "few");
    let falling_back = plan(&engine, busy(json!({"timeout_ms": 50, "fallback": "pass"})), "few");
    for _ in 0..3 {
        let answer = run(&failing, 50).await;
        assert!(matches!(answer, Err(Error::Deadline { .. })), "{:?}", answer.err());
        // The one thread of the pool takes the next job, not minutes later.
        run(&short, FAR_MS).await.unwrap();
        let answer = run(&falling_back, FAR_MS).await.unwrap();
        let entry = &answer.ledger[0];
        assert_eq!(
            (entry.node.as_str(), entry.reason, entry.fallback.as_str()),
            ("busy", Reason::Timeout, "pass")
        );
        assert_eq!(answer.candidates().count(), 2);
        run(&short, FAR_MS).await.unwrap();
    }
}

/// An op that is busy for a while, in one go with those before and behind it.
#[derive(Default)]
struct ChainedOp {
    /// When each of them began.
    begun: Arc<Mutex<Vec<Instant>>>,
}

static CHAINED: Spec = Spec {
    name: "test::chained",
    doc: "The rows of its input, after so many milliseconds of work.",
    inputs: 1,
    params: &[ParamSpec::required("millis", ParamKind::Int(1, LONG_MS as i64), "how long")],
    writes: Effect::Keys(&[]),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: true,
};

impl Op for ChainedOp {
    fn spec(&self) -> &Spec {
        &CHAINED
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let time = Duration::from_millis(node.int("millis")? as u64);
        let begun = Arc::clone(&self.begun);
        Some(NodePlan::new(node.input(0).clone(), [Takes::passing([])], move |_, _| {
            Form::compute(1e6, move |inputs, _, check| {
                begun.lock().unwrap().push(SystemClock.now());
                let until = SystemClock.now() + time;
                while SystemClock.now() < until {
                    if check.should_stop() {
                        return Err(OpError::Stopped);
                    }
                }
                Ok(inputs[0].clone().unwrap())
            })
        }))
    }
}

/// The node that is named when a chain is late, if its second node began long before that.
async fn late_chain(timeout: u64) -> Option<Vec<String>> {
    let chained = ChainedOp::default();
    let begun = Arc::clone(&chained.begun);
    let nodes = json!([
        {"node_id": "source", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
        {"node_id": "short", "op": "test::chained", "inputs": ["source"], "params": {"millis": 1}},
        {"node_id": "long", "op": "test::chained", "inputs": ["short"], "params": {"millis": LONG_MS}},
        {"node_id": "few", "op": "core::take", "inputs": ["long"], "params": {"count": 2}},
        {"node_id": "region", "op": "core::timeout", "inputs": ["few"], "params": {}, "timeout_ms": timeout,
         "fallback": "empty"},
    ]);
    let plan = plan(&engine_with(Duration::ZERO, chained), nodes, "region");
    let start = SystemClock.now();
    let answer = run(&plan, FAR_MS).await.unwrap();
    let second = *begun.lock().unwrap().get(1)?;
    let in_time = second - start < Duration::from_millis(timeout / 2);
    in_time.then(|| answer.ledger.iter().map(|entry| entry.node.clone()).collect())
}

#[tokio::test]
async fn the_node_of_a_chain_that_is_late_is_named() {
    // On a busy machine the time may be over before the second node begins.
    for timeout in (0..9).map(|doubled| 100 << doubled) {
        if let Some(named) = late_chain(timeout).await {
            assert_eq!(named, ["long"]);
            return;
        }
    }
    panic!("the chain never came to its second node");
}

/// How late the answers of degraded requests are, and how late timers set to the same times are: the worst but one in
/// a thousand.
async fn lateness(plan: &Plan, rounds: usize, at_once: usize) -> (Duration, Duration) {
    let (mut answers, mut timers) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let each = |_| async {
            let due = SystemClock.now() + Duration::from_millis(20);
            let answer = async {
                let options = RunOptions { deadline: Some(due), ..RunOptions::default() };
                let request = Request::new(1, plan.engine().registries());
                match plan.run_with(request, &options).await {
                    Ok(answer) => assert_eq!(answer.ledger.len(), 1),
                    // The machine was too busy for what is left to do after the fallback.
                    Err(error) => assert!(matches!(error, Error::Deadline { .. }), "{error}"),
                }
                late(due)
            };
            let timer = async {
                SystemClock.sleep_until(due).await;
                late(due)
            };
            join(answer, timer).await
        };
        for (answer, timer) in join_all((0..at_once).map(each)).await {
            answers.push(answer);
            timers.push(timer);
        }
    }
    let worst = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() - 1 - times.len() / 1000]
    };
    (worst(answers), worst(timers))
}

fn late(due: Instant) -> Duration {
    SystemClock.now().saturating_duration_since(due)
}

#[tokio::test]
async fn degraded_answers_come_as_punctually_as_timers() {
    let nodes = json!([
        {"node_id": "source", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
        {"node_id": "followed", "op": "core::follow", "inputs": ["source"],
         "params": {"endpoint": "ep_0001", "fanout": 9}},
        {"node_id": "stalls", "op": "core::media", "inputs": ["source"], "fallback": "empty",
         "params": {"endpoint": "ep_0001", "fanout": 9}},
        {"node_id": "all", "op": "core::concat", "inputs": ["followed"], "params": {"rhs": "stalls"}},
        {"node_id": "few", "op": "core::take", "inputs": ["all"], "params": {"count": 5}},
    ]);
    let plan = plan(&engine(Duration::from_secs(60)), nodes, "few");
    let mut tries = Vec::new();
    let end = SystemClock.now() + 2 * SOON;
    while tries.len() < 5 || SystemClock.now() < end {
        let (answers, timers) = lateness(&plan, 40, 25).await;
        tries.push((answers, timers));
        if answers <= timers + Duration::from_millis(2) {
            return;
        }
    }
    panic!("answers and timers were late by {tries:?}");
}
