//! The runs of plans in the registry of runs: every request in short, and some with their details.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anabranch_engine::{Graph as _, NodeId};
use serde_json::Value;

use super::Plans;
use super::describe::{kind_word, millis};
use super::run::EndedCall;
use super::version::Version;
use crate::runs::{EndedRun, GraphNode, RunDetail, RunGraph, RunId, RunKind, RunState, RunTimeline, Runs};

/// The details of at most so many failed and degraded runs per second are kept: an outage would fill the registry with
/// copies of one failure.
const FAILURES_PER_SECOND: u32 = 10;
/// The details of at most so many complete runs per second are kept.
const SAMPLES_PER_SECOND: u32 = 1;

/// The most bytes of a request that its run keeps.
const REQUEST_MOST: usize = 64 << 10;

/// How much was kept without being asked for.
#[derive(Default)]
pub(super) struct Kept {
    failures: Rate,
    samples: Rate,
}

/// How many runs were kept in the second that began then.
#[derive(Default)]
struct Rate(Mutex<(Option<Instant>, u32)>);

impl Rate {
    fn allows(&self, most: u32, now: Instant) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |began: Instant| now.saturating_duration_since(began) >= Duration::from_secs(1);
        if state.0.is_none_or(is_over) {
            *state = (Some(now), 0);
        }
        state.1 += 1;
        state.1 <= most
    }
}

impl Plans {
    /// Adds the run of a request to the registry; its id if its details are kept.
    pub(super) fn record(&self, ended: &EndedCall<'_>, runs: &Runs) -> Option<RunId> {
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
        let run = EndedRun {
            kind: RunKind::Plan,
            name: ended.entry.name.clone(),
            state,
            duration: ended.took,
            degraded: degraded as u32,
            failures,
            rows,
        };
        let id = runs.record(run, is_kept.then(|| self.detail(ended)));
        is_kept.then_some(id)
    }

    fn detail(&self, ended: &EndedCall<'_>) -> RunDetail {
        let (ledger, error) = match ended.answer {
            Ok(answer) => (&answer.ledger[..], None),
            Err(error) => (ended.failed_ledger, Some(error.to_string())),
        };
        let entry = |entry| serde_json::to_value(entry).expect("an entry of a ledger is JSON");
        let keeps_request = (ended.is_asked || self.0.keep_requests) && ended.text.len() <= REQUEST_MOST;
        let request = keeps_request.then(|| serde_json::from_slice::<Value>(ended.text).ok()).flatten();
        RunDetail {
            deadline_ms: ended.within.map(millis),
            error,
            request,
            ledger: ledger.iter().map(entry).collect(),
            graph: graph(ended.version),
            timeline: ended.trace.map(|trace| RunTimeline::from(trace.timeline())),
        }
    }
}

/// The stages of a plan, without those that only watch the time: timelines have none of these.
fn graph(version: &Version) -> RunGraph {
    let compiled = version.plan.compiled();
    let stages = &version.explanation().stages;
    let shown = stages.iter().position(|stage| stage.kind == anabranch_plan_inspect::explain::Kind::Timer);
    let count = shown.unwrap_or(stages.len()) as u32;
    let mut graph = RunGraph::default();
    for (node, stage) in (0..count).map(NodeId).zip(stages) {
        let (name, kind) = (stage.name.clone(), kind_word(stage.kind).to_owned());
        graph.nodes.push(GraphNode { id: RunGraph::id(node), name, kind });
        compiled.graph.inputs(node, |input, _| {
            graph.edges.extend((input.0 < count).then(|| [RunGraph::id(input), RunGraph::id(node)]));
        });
    }
    graph
}
