//! One request for a plan, from its parsed form to its response.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_plan::inspect::{Inspection, InspectionOutcome};
use anabranch_plan::{Answer, Error, LedgerEntry, Request, RunOptions};
use anabranch_plan_inspect::{Trace, inspect_traced};
use bytes::Bytes;
use serde_json::json;
use tonic::Code;

use super::table::{Counts, Entry};
use super::version::Version;
use super::{PlanFailure, Plans};
use crate::failure::Failure;
use crate::observe::{Arrival, RequestId, TraceContext};
use crate::runs::{LiveRun, RunEnd, RunId, RunKind, RunState, Runs};

/// A request for a plan.
pub(crate) struct PlanCall {
    pub(crate) request: Request,
    /// The text of the request, if its run may keep it.
    pub(crate) text: Bytes,
    /// The time limit of the response, from its arrival on. The default is the plan's, from the end of its body on.
    pub(crate) within: Option<Duration>,
    /// The deadline of the stream that it is an item of. The plan's own still counts.
    pub(crate) until: Option<Instant>,
    pub(crate) arrival: Arrival,
    /// Whether the caller wants the run kept with its timeline.
    pub(crate) trace: bool,
    /// The id of the request in its record.
    pub(crate) id: RequestId,
    /// The distributed trace that it is a part of, if there is one.
    pub(crate) context: Option<TraceContext>,
}

/// The answer to a request.
pub(crate) struct PlanAnswer {
    pub(crate) answer: Answer,
    pub(crate) version: Arc<Version>,
    /// The run that has its details, if they were kept.
    pub(crate) kept: Option<RunId>,
}

/// A request that has ended.
pub(crate) struct EndedCall<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) version: &'a Version,
    pub(crate) answer: &'a Result<Answer, Error>,
    pub(crate) failed_ledger: &'a [LedgerEntry],
    pub(crate) trace: Option<&'a Trace>,
    /// Whether the caller requested the trace.
    pub(crate) is_asked: bool,
    pub(crate) text: &'a Bytes,
    pub(crate) id: &'a RequestId,
    /// The id of the distributed trace.
    pub(crate) trace_id: Option<&'a str>,
    pub(crate) within: Option<Duration>,
    pub(crate) took: Duration,
}

impl Plans {
    /// Answers a request. Dropping the future stops the run.
    pub(crate) async fn run(
        &self,
        entry: &Entry,
        call: PlanCall,
        runs: &Runs,
    ) -> Result<PlanAnswer, PlanFailure> {
        let Some(current) = &entry.current else {
            return Err(PlanFailure::not_loaded(&entry.name, entry.problem.as_deref()));
        };
        let version = entry.version_for(current, &call.request);
        let in_flight = entry.counts.begin();
        let clock = version.plan.engine().runs().clock();
        let began = clock.now();
        let PlanCall { request, text, within, until, arrival, trace: is_asked, id, context } = call;
        let own = || version.plan.compiled().deadline.and_then(|own| began.checked_add(own));
        let until = until.filter(|until| own().is_none_or(|own| *until < own));
        let deadline = arrival.deadline(within).into_iter().chain(until).min();
        let trace_id = context.as_ref().map(TraceContext::trace_id);
        let trace = context.as_ref().and_then(TraceContext::onward);
        let options = RunOptions { deadline, trace, ..RunOptions::default() };
        let mut run = pin!(self.run_version(version, request, &options, is_asked));
        let (outcome, live) = match self.0.late.short(&**clock, began, run.as_mut()).await {
            Some(outcome) => (outcome, None),
            None => match self.0.late.list() {
                None => (run.await, None),
                Some(listed) => {
                    let live = begin(runs, entry, version, &id, began);
                    let cancelled = live.cancelled();
                    let outcome = tokio::select! {
                        biased;
                        outcome = run => outcome,
                        () = cancelled => return Err(PlanFailure::from(stopped(live))),
                    };
                    drop(listed);
                    (outcome, Some(live))
                }
            },
        };
        let (InspectionOutcome { answer, failed_ledger, .. }, trace) = outcome;
        let took = clock.now().saturating_duration_since(began);
        in_flight.end(count(&entry.counts, version, &answer, took));
        let ended = EndedCall {
            entry,
            version,
            answer: &answer,
            failed_ledger: &failed_ledger,
            trace: trace.as_ref(),
            is_asked,
            text: &text,
            id: &id,
            trace_id,
            within: within.or(version.plan.compiled().deadline),
            took,
        };
        let kept = self.record(&ended, runs, live);
        match answer {
            Ok(answer) => Ok(PlanAnswer { answer, version: Arc::clone(version), kept }),
            Err(error) => Err(PlanFailure::from(&error)),
        }
    }

    async fn run_version(
        &self,
        version: &Version,
        request: Request,
        options: &RunOptions,
        is_asked: bool,
    ) -> (InspectionOutcome, Option<Trace>) {
        let plan = &version.plan;
        let now = || plan.engine().runs().clock().now();
        // Captures come first: at a low request rate, a trace is due for every request.
        let chosen = self.0.captures.as_ref().filter(|captures| !is_asked && captures.sampler.chooses(now()));
        if let Some(captures) = chosen {
            // In boxes, so that the future of other requests stays small.
            let answer = Box::pin(captures.sampler.capture(plan, request, options)).await;
            return (InspectionOutcome { answer, failed_ledger: Vec::new(), run: None }, None);
        }
        if is_asked || version.stats.is_trace_due(now()) {
            let (inspected, trace) = Box::pin(inspect_traced(plan, request, options)).await;
            // The times of an incomplete trace would be too short.
            let whole = trace.as_ref().filter(|trace| trace.timeline().lost() == 0);
            whole.into_iter().for_each(|trace| version.stats.add_trace(trace));
            return (inspected, trace);
        }
        (plan.run_inspected(request, options, Inspection::default()).await, None)
    }
}

/// Lists a request that takes long.
fn begin(runs: &Runs, entry: &Entry, version: &Version, id: &RequestId, began: Instant) -> LiveRun {
    let live = runs.begin_late(RunKind::Plan, Arc::clone(&entry.name), began);
    let start = json!({ "plan": &*entry.name, "version": version.id, "request_id": id.as_str() });
    live.event("start", &start);
    live
}

/// Ends a request that was cancelled as a run.
fn stopped(live: LiveRun) -> Failure {
    live.end(RunEnd { state: RunState::Stopped, degraded: 0, failures: 0, rows: None }, None);
    Failure::new(Code::Cancelled, "the run of this request was cancelled")
}

/// Counts the end of a request for its version. Returns its plan's counter for this outcome.
fn count<'a>(
    counts: &'a Counts,
    version: &Version,
    answer: &Result<Answer, Error>,
    took: Duration,
) -> &'a AtomicU64 {
    let add = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let counter = match answer {
        Ok(answer) if answer.ledger.is_empty() => &counts.full,
        Ok(_) => {
            add(&version.stats.degraded);
            &counts.degraded
        }
        // A version is not judged by refusals because of load.
        Err(Error::Refused(_) | Error::Overloaded { .. } | Error::Cut { .. }) => return &counts.refused,
        Err(error) => {
            add(&version.stats.failed);
            if error.is_late() { &counts.late } else { &counts.failed }
        }
    };
    version.stats.latency.add(took);
    counts.latency.add(took);
    counter
}
