//! The numbers at one moment.

use std::time::Duration;

use super::{DurationHistogram, Metrics};
use crate::event::{FailureReason, Placement, RunEnding};
use crate::limit::LimitKey;

/// What was counted and timed so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Runs that were admitted.
    pub runs_started: u64,
    /// Runs that ended, by how.
    pub runs_ended: [(RunEnding, u64); 5],
    /// Runs that are open.
    pub runs_open: u64,
    /// Starts of nodes, every attempt counted.
    pub attempts: u64,
    /// Nodes that finished by themselves.
    pub finished: u64,
    /// Nodes whose value is a stand-in, by why.
    pub fell_back: [(FailureReason, u64); 5],
    /// Nodes that failed, by why.
    pub failed: [(FailureReason, u64); 5],
    /// Nodes that were dropped.
    pub dropped: u64,
    /// Nodes that have started and not ended.
    pub in_flight: u64,
    /// Nodes that wait for a slot of a limit.
    pub on_limit: u64,
    /// Nodes that wait for another attempt.
    pub on_retry: u64,
    /// Where adaptive limits last moved to.
    pub limits: Vec<(LimitKey, u32)>,
    /// Events that were lost, so that all counts are too low.
    pub lost: u64,
    /// Starts that were not timed because too many were open.
    pub untimed: u64,
    /// How long attempts took once taken up, by place.
    pub node_times: [(Placement, DurationStats); 5],
    /// How long nodes waited, by what for.
    pub waits: [(WaitKind, DurationStats); 3],
    /// How long runs took.
    pub run_times: DurationStats,
}

/// What a node that could run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// A slot of a limit.
    Limit,
    /// Another attempt.
    Retry,
    /// A pool's thread.
    Queue,
}

/// Times of one kind, each right to one part in a hundred.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationStats {
    /// How many.
    pub count: u64,
    /// All together, exactly.
    pub sum: Duration,
    /// The longest.
    pub max: Duration,
    /// Half are no longer.
    pub p50: Duration,
    /// Nine of ten are no longer.
    pub p90: Duration,
    /// All but one in a hundred are no longer.
    pub p99: Duration,
    /// All but one in a thousand are no longer.
    pub p999: Duration,
    /// For each of [`DurationStats::BOUNDS`], how many are no longer.
    pub within: [u64; DurationStats::BOUNDS.len()],
}

const ENDINGS: [RunEnding; 5] =
    [RunEnding::Complete, RunEnding::Failed, RunEnding::Deadline, RunEnding::Cut, RunEnding::Dropped];
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
        let Metrics { counts, node_times, waits, run_times, runs, limits, .. } = metrics;
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
            limits: limits.iter().map(|(key, limit)| (*key, *limit)).collect(),
            lost: counts.lost,
            untimed: counts.untimed,
            node_times: PLACES.map(|place| (place, DurationStats::of(&node_times[place as usize]))),
            waits: PAUSES.map(|pause| (pause, DurationStats::of(&waits[pause as usize]))),
            run_times: DurationStats::of(run_times),
        }
    }
}

impl DurationStats {
    /// Upper bounds, for histograms in text.
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
            // A value stands for all that fall into its bucket; its lowest tells on which side of a bound they are.
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
