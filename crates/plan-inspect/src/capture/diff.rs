//! The answers of another plan to captured requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::compare::{Change, ChangedRows, RankedRow, changed_rows, compare};
use super::cover::Cover;
use super::error::Error;
use super::load::Capture;
use super::model::Model;
use super::parts::decode_request;
use super::replay::{Replayer, replay};
use super::replayed_reads::RecordedFrom;
use anabranch_plan::Answer;
use anabranch_plan::Scalar;
use anabranch_plan::inspect::{Inspection, PlanNode};
use anabranch_plan::op::Rule;
use anabranch_plan::source;
use anabranch_plan::{LedgerEntry, Plan, RunOptions};

/// The number of requests are shown that changed, unless the caller wants more.
const EXAMPLES: usize = 3;
/// The most reasons that are reported.
const REASONS_TOLD: usize = 5;
/// The most reasons that are distinguished. An error may name a row, so that each is different.
const REASONS_KEPT: usize = 1_000;

/// The parts of answers that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOptions {
    /// The number of rows of each answer that are compared.
    pub top: usize,
    /// The key whose values are compared. Default: the key of the second plan's last sort.
    pub score: Option<String>,
}

/// Compares two plans on captured requests, one after the other.
pub struct Differ<'a> {
    replayer: &'a Replayer,
    before: Option<Plan>,
    after: Plan,
    top: usize,
    score: Option<String>,
    difference: Difference,
    change: Change,
    changed: u64,
    trips: [u64; 2],
    waits: [Vec<Duration>; 2],
    reasons: BTreeMap<String, u64>,
    most_examples: usize,
}

/// The differences between two plans.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// The number of captures that were read.
    pub captures: CaptureCounts,
    /// The number of rows of each answer that were compared.
    pub top: usize,
    /// The share of requests whose rows, or their order, changed.
    pub changed: f64,
    /// The mean number of rows that entered the top, per request.
    pub entered: f64,
    /// The mean number of rows that left the top, per request.
    pub left: f64,
    /// The mean number of places that a row in both answers moves.
    pub rank_move: f64,
    /// The change of its score.
    pub score: Option<ScoreShift>,
    /// The mean number of trips per request.
    pub trips: BeforeAfter<f64>,
    /// The time for which requests wait for their sources: the longest path through the trips, with their captured
    /// durations.
    pub waits: BeforeAfter<Percentiles>,
    /// The requests that changed most.
    pub examples: Vec<ChangedRequest>,
}

/// A captured request that the two plans answer differently.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedRequest {
    /// The address of the capture.
    pub capture: String,
    /// The user who asked, if that is known.
    pub user: Option<String>,
    /// Its rows.
    #[serde(flatten)]
    pub rows: ChangedRows,
}

/// The number of captures were compared, and why others were not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CaptureCounts {
    /// The captures that were replayed.
    pub compared: u64,
    /// The captures that were not.
    pub not_comparable: u64,
    /// The reasons, the most frequent first, with their counts.
    pub reasons: Vec<Incomparable>,
}

/// A reason why captures were not compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Incomparable {
    /// The reason.
    pub reason: String,
    /// The number of captures.
    pub captures: u64,
}

/// The change of the score of rows that are in both answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreShift {
    /// The key.
    pub key: String,
    /// The mean of the absolute change.
    pub mean: f64,
    /// The largest absolute change.
    pub most: f64,
}

/// One of each plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BeforeAfter<T> {
    /// The value of the first plan.
    pub before: T,
    /// The value of the second plan.
    pub after: T,
}

/// Percentiles of a distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// The median, in microseconds.
    pub p50_us: u64,
    /// The 99th percentile, in microseconds.
    pub p99_us: u64,
}

/// The answer of one plan to a capture.
struct VersionResult {
    rows: Vec<RankedRow>,
    trips: u32,
    wait: Duration,
}

impl<'a> Differ<'a> {
    /// Compares `before`, or else the plan that each capture was taken of, with `after`.
    pub fn new(
        replayer: &'a Replayer,
        before: Option<Plan>,
        after: Plan,
        options: DiffOptions,
    ) -> Differ<'a> {
        let score = options.score.or_else(|| last_sort(&after)).or_else(|| last_sort(before.as_ref()?));
        Differ {
            replayer,
            before,
            after,
            top: options.top,
            score,
            difference: Difference::default(),
            change: Change::default(),
            changed: 0,
            trips: [0; 2],
            waits: [Vec::new(), Vec::new()],
            reasons: BTreeMap::new(),
            most_examples: EXAMPLES,
        }
    }

    /// The same with at most this many requests in [`Difference::examples`].
    #[must_use]
    pub fn with_examples(mut self, most: usize) -> Differ<'a> {
        self.most_examples = most;
        self
    }

    /// Replays a capture through both plans.
    pub async fn add(&mut self, capture: &Capture) -> Result<(), Error> {
        match self.compare(capture).await? {
            Ok([before, after]) => {
                self.count(&before, &after);
                self.show(capture, &before, &after);
            }
            Err(reason) => {
                self.difference.captures.not_comparable += 1;
                let known = self.reasons.len() < REASONS_KEPT || self.reasons.contains_key(&reason);
                let reason = if known { reason } else { "other reasons".to_owned() };
                *self.reasons.entry(reason).or_default() += 1;
            }
        }
        Ok(())
    }

    async fn compare(&self, capture: &Capture) -> Result<Result<[VersionResult; 2], String>, Error> {
        if capture.outcome.failure.is_some() {
            return Ok(Err("the captured request failed".to_owned()));
        }
        if capture.outcome.ledger.iter().any(LedgerEntry::replaces_rows) {
            return Ok(Err("the captured answer was degraded".to_owned()));
        }
        let before = match &self.before {
            Some(plan) => plan.clone(),
            None => self.replayer.plan_of(capture)?,
        };
        let cover = Arc::new(Cover::new(&capture.replies));
        let before = self.side(&before, "first", capture, &cover).await?;
        let after = self.side(&self.after, "second", capture, &cover).await?;
        Ok(before.and_then(|before| Ok([before, after?])))
    }

    async fn side(
        &self,
        plan: &Plan,
        which: &str,
        capture: &Capture,
        cover: &Arc<Cover>,
    ) -> Result<Result<VersionResult, String>, Error> {
        let registries = &plan.compiled().registries;
        let request = decode_request(&capture.request, registries)
            .map_err(|error| capture.unreadable("request", error))?;
        let model = Model::new(Arc::clone(cover));
        let replay = replay(plan, RecordedFrom::Any(Arc::clone(&model)));
        let inspection = Inspection { replay: Some(replay), ..Inspection::default() };
        let answer = plan.run_inspected(request, &RunOptions::default(), inspection).await.answer;
        if let Some((reader, error)) = model.uncovered() {
            return Ok(Err(format!("the {which} plan: {}", uncovered(plan, reader, &error))));
        }
        Ok(match answer {
            Ok(answer) => Ok(VersionResult {
                rows: self.rows(&answer, plan),
                trips: answer.stats.trips,
                wait: model.longest_wait(plan.compiled()),
            }),
            Err(error) => Err(format!("the {which} plan: {error}")),
        })
    }

    fn rows(&self, answer: &Answer, plan: &Plan) -> Vec<RankedRow> {
        let keys = &plan.compiled().registries.keys;
        let key = self.score.as_ref().and_then(|name| keys.named(name)).map(|entry| entry.key);
        let number = |value: Scalar| match value {
            Scalar::Int(value) => Some(value as f64),
            Scalar::Float(value) => Some(value),
            Scalar::Bool(_) | Scalar::Text(_) => None,
        };
        let rows = answer.candidates().take(self.top);
        rows.map(|row| RankedRow { id: row.id, score: key.and_then(|key| row.get(key)).and_then(number) })
            .collect()
    }

    fn count(&mut self, before: &VersionResult, after: &VersionResult) {
        let change = compare(&before.rows, &after.rows);
        self.difference.captures.compared += 1;
        self.changed += u64::from(change.changed);
        self.change.entered += change.entered;
        self.change.left += change.left;
        self.change.common += change.common;
        self.change.moved += change.moved;
        self.change.scored += change.scored;
        self.change.shift += change.shift;
        self.change.most = self.change.most.max(change.most);
        for (at, side) in [before, after].into_iter().enumerate() {
            self.trips[at] += u64::from(side.trips);
            self.waits[at].push(side.wait);
        }
    }

    /// Keeps a request among the examples if it changed more than others.
    fn show(&mut self, capture: &Capture, before: &VersionResult, after: &VersionResult) {
        let rows = changed_rows(&before.rows, &after.rows);
        if rows == ChangedRows::default() {
            return;
        }
        let user = capture.user_id().map(|user| user.to_string());
        let request = ChangedRequest { capture: capture.address.to_string(), user, rows };
        let size = |request: &ChangedRequest| {
            let rows = &request.rows;
            (rows.entered.len() + rows.left.len(), rows.moved.len())
        };
        let examples = &mut self.difference.examples;
        // Of equal ones, the one with the first address, because the order of captures is arbitrary.
        let order = |request: &ChangedRequest| (std::cmp::Reverse(size(request)), request.capture.clone());
        let at = examples.partition_point(|other| order(other) <= order(&request));
        examples.insert(at, request);
        examples.truncate(self.most_examples);
    }

    /// The summary.
    pub fn finish(self) -> Difference {
        let Differ { mut difference, change, trips, waits, score, .. } = self;
        let compared = difference.captures.compared;
        let mut reasons: Vec<Incomparable> =
            self.reasons.into_iter().map(|(reason, captures)| Incomparable { reason, captures }).collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.captures));
        reasons.truncate(REASONS_TOLD);
        difference.captures.reasons = reasons;
        let [trips_before, trips_after] = trips.map(|trips| mean(trips as f64, compared));
        let [waits_before, waits_after] = waits.map(percentiles);
        Difference {
            top: self.top,
            changed: mean(self.changed as f64, compared),
            entered: mean(change.entered as f64, compared),
            left: mean(change.left as f64, compared),
            rank_move: mean(change.moved as f64, change.common),
            score: score.filter(|_| change.scored > 0).map(|key| ScoreShift {
                key,
                mean: mean(change.shift, change.scored),
                most: change.most,
            }),
            trips: BeforeAfter { before: trips_before, after: trips_after },
            waits: BeforeAfter { before: waits_before, after: waits_after },
            ..difference
        }
    }
}

/// A read of a plan that was not captured. The key differs from capture to capture, so the reader counts.
fn uncovered(plan: &Plan, reader: u32, error: &source::Error) -> String {
    let source::Error::NotCaptured { endpoint, .. } = error else { return error.to_string() };
    let nodes = plan.compiled().nodes.iter();
    let mut readers = nodes.flat_map(|node| node.about.reads.iter().map(move |reader| (node, reader)));
    let Some((node, reader)) = readers.find(|(_, other)| other.number == reader) else {
        return error.to_string();
    };
    let keys = crate::explain::shown(&reader.pattern, &plan.compiled().registries);
    let endpoint =
        plan.compiled().registries.endpoints.get(endpoint).map_or(&**endpoint, |found| &*found.name);
    let (node, command) = (&node.id, reader.read.command());
    format!("node `{node}` reads what was not captured: {endpoint}, `{command} {keys}`")
}

/// The first key that the last sort of a plan goes by.
fn last_sort(plan: &Plan) -> Option<String> {
    let order = |node: &PlanNode| match &node.about.rule {
        Some(Rule::Sorted(by) | Rule::Top(by, _)) => by.first().map(|by| by.key),
        _ => None,
    };
    let key = plan.compiled().nodes.iter().rev().find_map(order)?;
    plan.compiled().registries.keys.get(key).map(|entry| entry.name.clone())
}

fn mean(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

fn percentiles(mut waits: Vec<Duration>) -> Percentiles {
    waits.sort_unstable();
    let at = |share: usize| {
        let place = (waits.len() * share).div_ceil(100).saturating_sub(1);
        waits.get(place).map_or(0, |wait| u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))
    };
    Percentiles { p50_us: at(50), p99_us: at(99) }
}
