//! Gets in the registry of runs: the slow and the failed ones, with the recipes that were computed for them. A slow get is
//! listed while it runs, and can be cancelled.

use std::pin::pin;
use std::time::{Duration, Instant};

use anabranch_content::Address;
use anabranch_recipe::{Error, FetchedValue, Get, Source, Trace, TracedOutcome, TracedRecipe, TracedValue};
use serde_json::{Value, json};
use tonic::Code;

use crate::failure::Failure;
use crate::runs::{
    EndedRun, GraphNode, LiveRun, RunDetail, RunEnd, RunGraph, RunKind, RunState, RunTimeline,
};
use crate::service::Shared;

/// Faster gets are not listed.
const LONG_GET: Duration = Duration::from_millis(50);
/// The most gets per second whose details are kept.
const DETAILS_PER_SECOND: u32 = 10;
/// The digits of an address that label a value in a graph.
const SHORT: usize = 12;

/// One get, for its run.
struct EndedGet<'a> {
    name: &'a str,
    address: &'a Address,
    within: Option<Duration>,
    got: &'a Result<FetchedValue, Error>,
    trace: &'a Trace,
}

impl Shared {
    /// The value of an address that the caller knows as `name`. A slow or failed get is listed as a run.
    pub(crate) async fn value(
        &self,
        name: &str,
        address: &Address,
        terms: &Get,
    ) -> Result<FetchedValue, Failure> {
        let clock = self.executor.engine().clock();
        let started = clock.now();
        let mut trace = Trace::default();
        let (got, live) = self.got(name, address, terms, &mut trace, started).await;
        let now = clock.now();
        let took = now.saturating_duration_since(started);
        let is_absent = matches!(got, Err(Error::NotFound { .. } | Error::NoSuchName { .. }));
        let is_cancelled = live.as_ref().is_some_and(LiveRun::is_cancelled) && got.is_err();
        if live.is_some() || (!is_absent && (got.is_err() || took >= LONG_GET)) {
            let within = terms.deadline.map(|end| end.saturating_duration_since(started));
            self.record(&EndedGet { name, address, within, got: &got, trace: &trace }, live, took, now);
        }
        match is_cancelled {
            true => Err(Failure::new(Code::Cancelled, "the run of this request was cancelled")),
            false => Ok(got?),
        }
    }

    /// The value, and its run if it took long.
    async fn got(
        &self,
        name: &str,
        address: &Address,
        terms: &Get,
        trace: &mut Trace,
        started: Instant,
    ) -> (Result<FetchedValue, Error>, Option<LiveRun>) {
        let clock = self.executor.engine().clock();
        let mut get = pin!(self.executor.get_traced(address, terms, trace));
        tokio::select! {
            biased;
            got = &mut get => return (got, None),
            // The timer is made only if the value is not there at once.
            () = async { clock.sleep_until(started + LONG_GET).await } => {}
        }
        let live = self.runs.begin_late(RunKind::Recipe, name, started);
        live.event("start", &json!({ "target": name, "address": address.to_string() }));
        let cancelled = live.cancelled();
        let got = tokio::select! {
            biased;
            got = &mut get => got,
            () = cancelled => Err(Error::Stopped),
        };
        (got, Some(live))
    }

    fn record(&self, kept: &EndedGet<'_>, live: Option<LiveRun>, took: Duration, now: Instant) {
        let is_cancelled = live.as_ref().is_some_and(LiveRun::is_cancelled);
        let state = match kept.got {
            Ok(_) => RunState::Complete,
            Err(Error::Stopped) if is_cancelled => RunState::Stopped,
            Err(_) => RunState::Failed,
        };
        let failures = u32::from(state == RunState::Failed);
        let is_detailed = self.kept_gets.allows(DETAILS_PER_SECOND, now);
        let detail = is_detailed.then(|| kept.detail());
        match live {
            Some(live) => live.end(RunEnd { state, degraded: 0, failures, rows: None }, detail),
            None => {
                let (kind, name) = (RunKind::Recipe, kept.name.into());
                let run = EndedRun { kind, name, state, duration: took, degraded: 0, failures, rows: None };
                self.runs.record(run, detail);
            }
        }
    }
}

impl EndedGet<'_> {
    fn detail(&self) -> RunDetail {
        RunDetail {
            request_id: None,
            trace_id: None,
            deadline_ms: self.within.map(|within| within.as_secs_f64() * 1e3),
            error: self.got.as_ref().err().map(ToString::to_string),
            request: Some(json!({ "target": self.name, "address": self.address.to_string() })),
            result: self.got.as_ref().ok().map(result),
            ledger: Vec::new(),
            graph: graph(self.trace),
            timeline: self.trace.timeline().as_ref().map(RunTimeline::from),
        }
    }
}

/// The origin of a value, as JSON.
fn result(got: &FetchedValue) -> Value {
    let (source, computed) = match got.source {
        Source::Blob => ("blob", 0),
        Source::Memo => ("memo", 0),
        Source::Computed(recipes) => ("computed", recipes),
    };
    json!({ "source": source, "computed": computed, "cut_off": got.cut_off, "size": got.size })
}

/// The recipes in order of their numbers, then the values that they read.
fn graph(trace: &Trace) -> RunGraph {
    let recipes = trace.recipes.iter().zip(0..).map(|(recipe, number)| of_recipe(number, recipe));
    let values = trace.values.iter().zip(0..).map(|(value, number)| of_value(number, value));
    let read = trace.edges().map(|(from, to)| [recipe_id(from), recipe_id(to)]);
    let given =
        trace.recipes.iter().zip(0..).flat_map(|(recipe, to)| {
            recipe.values.iter().map(move |value| [value_id(*value), recipe_id(to)])
        });
    RunGraph { nodes: recipes.chain(values).collect(), edges: read.chain(given).collect() }
}

fn recipe_id(number: u32) -> String {
    RunGraph::id(anabranch_engine::NodeId(number))
}

fn value_id(number: u32) -> String {
    format!("v{number}")
}

fn of_recipe(number: u32, recipe: &TracedRecipe) -> GraphNode {
    let (kind, note) = match recipe.outcome {
        None | Some(TracedOutcome::Ran) => ("cpu", None),
        Some(TracedOutcome::Fused) => ("cpu", Some("fused")),
        Some(TracedOutcome::Memo) => ("memo", Some("memo")),
        Some(TracedOutcome::SameInputs) => ("memo", Some("same inputs")),
    };
    GraphNode {
        id: recipe_id(number),
        name: recipe.function.to_string(),
        kind: kind.to_owned(),
        note: note.map(str::to_owned),
        address: Some(recipe.address.to_string()),
        size: None,
    }
}

fn of_value(number: u32, value: &TracedValue) -> GraphNode {
    let address = value.address.to_string();
    let kind = if value.is_memo { "memo" } else { "blob" };
    GraphNode {
        id: value_id(number),
        name: address.chars().take(SHORT).collect(),
        kind: kind.to_owned(),
        note: Some(kind.to_owned()),
        address: Some(address),
        size: Some(value.size),
    }
}
