//! The runs of plans in the registry of runs: a summary of every request, and the details of some.

use anabranch_engine::{Graph as _, NodeId};
use anabranch_plan::LedgerEntry;
use serde_json::Value;

use super::Plans;
use super::describe::{kind_word, millis};
use super::run::EndedCall;
use super::version::Version;
use crate::runs::{
    EndedRun, GraphNode, LiveRun, Rate, RunDetail, RunEnd, RunGraph, RunId, RunKind, RunState, RunTimeline,
    Runs,
};

/// The most failed and degraded runs per second whose details are kept. Without it, an outage would fill the registry
/// with copies of one failure.
const FAILURES_PER_SECOND: u32 = 10;
/// The most complete runs per second whose details are kept.
const SAMPLES_PER_SECOND: u32 = 1;

/// The most bytes of a request that are kept with its run.
pub(super) const REQUEST_MOST: usize = 64 << 10;

/// The rates of runs whose details were kept without a request for them.
#[derive(Default)]
pub(super) struct DetailRates {
    failures: Rate,
    samples: Rate,
}

impl Plans {
    /// Adds the run of a request to the registry, or ends it there if it is listed. Returns its id if its details are
    /// kept.
    pub(super) fn record(&self, ended: &EndedCall<'_>, runs: &Runs, live: Option<LiveRun>) -> Option<RunId> {
        let (state, degraded, failures, rows) = match ended.answer {
            Ok(answer) => {
                let rows = answer.outputs.iter().map(|rows| rows.len() as u64).sum();
                let state = if answer.ledger.is_empty() { RunState::Complete } else { RunState::Degraded };
                (state, answer.ledger.len(), 0, Some(rows))
            }
            Err(_) => (RunState::Failed, ended.failed_ledger.len(), 1, None),
        };
        let now = || ended.version.plan.engine().runs().clock().now();
        let kept = &self.0.kept;
        let is_kept = ended.is_asked
            || match (state, ended.trace) {
                (RunState::Complete, None) => false,
                (RunState::Complete, Some(_)) => kept.samples.allows(SAMPLES_PER_SECOND, now()),
                _ => kept.failures.allows(FAILURES_PER_SECOND, now()),
            };
        let (degraded, detail) = (degraded as u32, is_kept.then(|| self.detail(ended)));
        let id = match live {
            Some(live) => {
                let id = live.id();
                ended
                    .ledger()
                    .iter()
                    .for_each(|entry| live.event("degraded", &shown_entry(entry, ended.version)));
                live.end(RunEnd { state, degraded, failures, rows }, detail);
                id
            }
            None => {
                let (kind, name, duration) = (RunKind::Plan, ended.entry.name.clone(), ended.took);
                runs.record(EndedRun { kind, name, state, duration, degraded, failures, rows }, detail)
            }
        };
        is_kept.then_some(id)
    }

    /// Whether the details of a run include its request.
    pub(super) fn keeps_request(&self, is_asked: bool) -> bool {
        is_asked || self.0.keep_requests
    }

    fn detail(&self, ended: &EndedCall<'_>) -> RunDetail {
        let error = ended.answer.as_ref().err().map(ToString::to_string);
        let entry = |entry| shown_entry(entry, ended.version);
        let keeps_request = self.keeps_request(ended.is_asked) && ended.text.len() <= REQUEST_MOST;
        let request = keeps_request.then(|| serde_json::from_slice::<Value>(ended.text).ok()).flatten();
        RunDetail {
            deadline_ms: ended.within.map(millis),
            request_id: Some(ended.id.as_str().to_owned()),
            trace_id: ended.trace_id.map(str::to_owned),
            error,
            request,
            result: None,
            ledger: ended.ledger().iter().map(entry).collect(),
            graph: graph(ended.version),
            timeline: ended.trace.map(|trace| RunTimeline::from(trace.timeline())),
        }
    }
}

impl EndedCall<'_> {
    fn ledger(&self) -> &[LedgerEntry] {
        match self.answer {
            Ok(answer) => &answer.ledger,
            Err(_) => self.failed_ledger,
        }
    }
}

/// A ledger entry as in a response, with the run graph's node that it is about: its id as `stage`, and its name as
/// `name`.
fn shown_entry(entry: &LedgerEntry, version: &Version) -> Value {
    let mut shown = serde_json::to_value(entry).expect("an entry of a ledger is JSON");
    let stages = &version.explanation().stages;
    let found = stages.iter().position(|stage| stage.nodes.contains(&entry.node));
    shown["stage"] = found.map(|number| RunGraph::id(NodeId(number as u32))).into();
    shown["name"] = found.map(|number| stages[number].name.clone()).into();
    shown
}

/// The stages of a plan without timers, which timelines do not have.
fn graph(version: &Version) -> RunGraph {
    let compiled = version.plan.compiled();
    let stages = &version.explanation().stages;
    let shown = stages.iter().position(|stage| stage.kind == anabranch_plan_inspect::explain::Kind::Timer);
    let count = shown.unwrap_or(stages.len()) as u32;
    let mut graph = RunGraph::default();
    for (node, stage) in (0..count).map(NodeId).zip(stages) {
        let (name, kind) = (stage.name.clone(), kind_word(stage.kind).to_owned());
        graph.nodes.push(GraphNode { id: RunGraph::id(node), name, kind, ..GraphNode::default() });
        compiled.graph.inputs(node, |input, _| {
            graph.edges.extend((input.0 < count).then(|| [RunGraph::id(input), RunGraph::id(node)]));
        });
    }
    graph
}
