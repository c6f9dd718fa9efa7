//! The values of all metrics at one moment.

use std::time::Duration;

use super::{DurationHistogram, Metrics};
use crate::event::{FailureReason, Placement, RunEnding};

/// The values of all metrics at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Runs that were admitted.
    pub runs_started: u64,
    /// Runs that ended, by how they ended.
    pub runs_ended: [(RunEnding, u64); 6],
    /// Runs that have not ended.
    pub runs_open: u64,
    /// Starts of nodes, including retries.
    pub attempts: u64,
    /// Nodes that finished without a fallback.
    pub finished: u64,
    /// Nodes whose fallback was used, by why they failed.
    pub fell_back: [(FailureReason, u64); 5],
    /// Nodes that failed without a fallback, by why.
    pub failed: [(FailureReason, u64); 5],
    pub dropped: u64,
    /// Nodes that have started and not ended.
    pub in_flight: u64,
    /// Nodes that wait for a slot of a limit.
    pub on_limit: u64,
    /// Nodes that wait for a retry.
    pub on_retry: u64,
    /// Events that were lost. With any, all counts are too low.
    pub lost: u64,
    /// Starts that were not timed because too many runs or nodes were open.
    pub untimed: u64,
    /// The duration of attempts, without their time in the queue of a pool.
    pub node_times: [(Placement, DurationStats); 5],
    /// The time that nodes waited.
    pub waits: [(WaitKind, DurationStats); 3],
    /// The duration of runs.
    pub run_times: DurationStats,
}

/// The thing that a node waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// A slot of a limit.
    Limit,
    /// A retry.
    Retry,
    /// A thread of a pool.
    Queue,
}

/// Statistics of durations, with an error of at most one percent.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationStats {
    pub count: u64,
    /// The exact sum.
    pub sum: Duration,
    pub max: Duration,
    /// The 50th percentile.
    pub p50: Duration,
    /// The 90th percentile.
    pub p90: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
    /// For each of [`DurationStats::BOUNDS`], the number of durations up to it.
    pub within: [u64; DurationStats::BOUNDS.len()],
}

const ENDINGS: [RunEnding; 6] = [
    RunEnding::Complete,
    RunEnding::Failed,
    RunEnding::Deadline,
    RunEnding::Cut,
    RunEnding::Drained,
    RunEnding::Dropped,
];
const REASONS: [FailureReason; 5] = [
    FailureReason::Error,
    FailureReason::Panic,
    FailureReason::Timeout,
    FailureReason::Deadline,
    FailureReason::Abandoned,
];
const PLACES: [Placement; 5] =
    [Placement::Inline, Placement::Future, Placement::Spawned, Placement::Pool, Placement::Blocking];
const PAUSES: [WaitKind; 3] = [WaitKind::Limit, WaitKind::Retry, WaitKind::Queue];

impl Snapshot {
    pub(super) fn of(metrics: &Metrics) -> Snapshot {
        let Metrics { counts, node_times, waits, run_times, runs, .. } = metrics;
        let [in_flight, on_limit, on_retry] = counts.open;
        Snapshot {
            runs_started: counts.runs_started,
            runs_ended: ENDINGS.map(|ending| (ending, counts.runs_ended[ending as usize])),
            runs_open: runs.len() as u64,
            attempts: counts.attempts,
            finished: counts.finished,
            fell_back: REASONS.map(|reason| (reason, counts.fell_back[reason as usize])),
            failed: REASONS.map(|reason| (reason, counts.failed[reason as usize])),
            dropped: counts.dropped,
            in_flight,
            on_limit,
            on_retry,
            lost: counts.lost,
            untimed: counts.untimed,
            node_times: PLACES.map(|place| (place, DurationStats::of(&node_times[place as usize]))),
            waits: PAUSES.map(|pause| (pause, DurationStats::of(&waits[pause as usize]))),
            run_times: DurationStats::of(run_times),
        }
    }
}

impl DurationStats {
    /// The upper bounds of the buckets in Prometheus histograms.
    pub const BOUNDS: [Duration; 18] = [
        Duration::from_micros(10),
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2_500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_millis(2_500),
        Duration::from_secs(10),
        Duration::from_secs(60),
        Duration::from_secs(600),
    ];

    fn of(clocked: &DurationHistogram) -> DurationStats {
        let histogram = &clocked.histogram;
        let at = |share: f64| Duration::from_nanos(histogram.value_at_quantile(share));
        let mut within = [0; DurationStats::BOUNDS.len()];
        for value in histogram.iter_recorded() {
            // A value stands for all durations of its bucket. The lowest of them decides on which side of a bound they
            // count.
            let lowest = Duration::from_nanos(histogram.lowest_equivalent(value.value_iterated_to()));
            let first = DurationStats::BOUNDS.partition_point(|bound| *bound < lowest);
            within[first..].iter_mut().for_each(|count| *count += value.count_since_last_iteration());
        }
        DurationStats {
            count: histogram.len(),
            sum: clocked.sum,
            max: Duration::from_nanos(histogram.max()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            within,
        }
    }
}
