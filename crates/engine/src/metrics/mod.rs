//! Counters, gauges and histograms of runs, computed from their events in bounded memory.

mod number_map;
mod snapshot;
mod render;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::event::{Event, EventKind, ListenerItem, Placement, RunId, WaitReason};
use crate::graph::NodeId;
use number_map::NumberMap;
pub use render::MetricsPage;
pub use snapshot::{DurationStats, Snapshot, WaitKind};

/// Metrics of any number of runs. Give it every item of a [`Listener`](crate::event::Listener).
///
/// It keeps the start times of runs and nodes that have not ended. If events were lost, the end of some may never come.
/// So after a loss, runs and nodes without an event for a minute are forgotten: their end still counts, but their
/// duration does not.
pub struct Metrics {
    counts: Counts,
    node_times: [DurationHistogram; 5],
    waits: [DurationHistogram; 3],
    run_times: DurationHistogram,
    runs: NumberMap<RunId, OpenRun>,
    /// Tables of ended runs, for reuse.
    spare: Vec<NumberMap<NodeId, OpenNode>>,
    open_nodes: usize,
    latest: Option<Instant>,
    lost_at: Option<Instant>,
    forget_at: Option<Instant>,
}

#[derive(Default)]
struct Counts {
    runs_started: u64,
    runs_ended: [u64; 6],
    attempts: u64,
    finished: u64,
    dropped: u64,
    fell_back: [u64; 5],
    failed: [u64; 5],
    /// Open nodes, by [`State::group`].
    open: [u64; 3],
    lost: u64,
    untimed: u64,
}

struct OpenRun {
    /// `None` if the event of its start was lost.
    started: Option<Instant>,
    latest: Instant,
    nodes: NumberMap<NodeId, OpenNode>,
}

#[derive(Clone, Copy)]
struct OpenNode {
    since: Instant,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Waiting(WaitReason),
    Started(Placement),
}

const MAX_OPEN_RUNS: usize = 1 << 16;
const MAX_OPEN_NODES: usize = 1 << 17;
const MAX_SPARE: usize = 64;
/// Larger tables are freed.
const MAX_SPARE_CAPACITY: usize = 1_024;
/// After a loss of events, how long a run or node may be silent before it is forgotten.
const MAX_SILENCE: Duration = Duration::from_secs(60);

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Metrics of no runs.
    pub fn new() -> Metrics {
        Metrics {
            counts: Counts::default(),
            node_times: std::array::from_fn(|_| DurationHistogram::new()),
            waits: std::array::from_fn(|_| DurationHistogram::new()),
            run_times: DurationHistogram::new(),
            runs: NumberMap::default(),
            spare: Vec::new(),
            open_nodes: 0,
            latest: None,
            lost_at: None,
            forget_at: None,
        }
    }

    /// Records an event, or a loss of events.
    pub fn record(&mut self, item: &ListenerItem) {
        match item {
            ListenerItem::Event(event) => self.event(event),
            ListenerItem::Lost(count) => self.lost(*count),
        }
    }

    /// The present values.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self)
    }

    fn event(&mut self, event: &Event) {
        let Event { run, at, kind } = *event;
        self.latest = self.latest.max(Some(at));
        if self.forget_at.is_some_and(|due| at >= due) {
            self.forget();
        }
        match kind {
            EventKind::RunStarted(_) => {
                self.counts.runs_started += 1;
                if let Some(run) = self.run(run, at) {
                    run.started = Some(at);
                }
            }
            EventKind::RunEnded(ending) => {
                self.counts.runs_ended[ending as usize] += 1;
                self.end_run(run, at);
            }
            // The key is a number of one table of several. The tables have the values, by name.
            EventKind::Limit(..) => {}
            EventKind::Waiting(node, wait) => self.turn(run, node, at, State::Waiting(wait)),
            EventKind::Started(node, place) => {
                self.counts.attempts += 1;
                self.turn(run, node, at, State::Started(place));
            }
            EventKind::Running(node) => self.running(run, node, at),
            EventKind::Finished(node) => {
                self.counts.finished += 1;
                self.end(run, node, at);
            }
            EventKind::FellBack(node, reason) => {
                self.counts.fell_back[reason as usize] += 1;
                self.end(run, node, at);
            }
            EventKind::Failed(node, reason) => {
                self.counts.failed[reason as usize] += 1;
                self.end(run, node, at);
            }
            EventKind::Dropped(node) => {
                self.counts.dropped += 1;
                self.take(run, node, at);
            }
        }
    }

    /// The entry of a run, created if there is room.
    fn run(&mut self, run: RunId, at: Instant) -> Option<&mut OpenRun> {
        if self.runs.len() >= MAX_OPEN_RUNS && !self.runs.contains_key(&run) {
            self.counts.untimed += 1;
            return None;
        }
        let spare = &mut self.spare;
        let entry = self.runs.entry(run).or_insert_with(|| OpenRun {
            started: None,
            latest: at,
            nodes: spare.pop().unwrap_or_default(),
        });
        entry.latest = entry.latest.max(at);
        Some(entry)
    }

    fn end_run(&mut self, run: RunId, at: Instant) {
        let Some(open) = self.runs.remove(&run) else { return };
        if let Some(started) = open.started {
            self.run_times.record(at.saturating_duration_since(started));
        }
        self.close(open);
    }

    fn close(&mut self, open: OpenRun) {
        let mut nodes = open.nodes;
        self.open_nodes -= nodes.len();
        for node in nodes.values() {
            self.counts.open[node.state.group()] -= 1;
        }
        if self.spare.len() < MAX_SPARE && nodes.capacity() <= MAX_SPARE_CAPACITY {
            nodes.clear();
            self.spare.push(nodes);
        }
    }

    /// Sets the state of a node and records the time that it spent in its last state.
    fn turn(&mut self, run: RunId, node: NodeId, at: Instant, state: State) {
        let is_full = self.open_nodes >= MAX_OPEN_NODES;
        let Some(open) = self.run(run, at) else { return };
        let before = match open.nodes.get_mut(&node) {
            Some(entry) => Some(std::mem::replace(entry, OpenNode { since: at, state })),
            None if is_full => {
                self.counts.untimed += 1;
                return;
            }
            None => open.nodes.insert(node, OpenNode { since: at, state }),
        };
        self.counts.open[state.group()] += 1;
        match before {
            None => self.open_nodes += 1,
            Some(before) => self.leave(before, at),
        }
    }

    fn running(&mut self, run: RunId, node: NodeId, at: Instant) {
        let entry = self.runs.get_mut(&run).and_then(|open| open.nodes.get_mut(&node));
        if let Some(OpenNode { since, state: State::Started(_) }) = entry {
            let queued = at.saturating_duration_since(*since);
            *since = at.max(*since);
            self.waits[WaitKind::Queue as usize].record(queued);
        }
    }

    fn end(&mut self, run: RunId, node: NodeId, at: Instant) {
        if let Some(open) = self.take(run, node, at) {
            self.time(open, at);
        }
    }

    fn take(&mut self, run: RunId, node: NodeId, at: Instant) -> Option<OpenNode> {
        let open = self.runs.get_mut(&run)?;
        open.latest = open.latest.max(at);
        let node = open.nodes.remove(&node)?;
        self.open_nodes -= 1;
        self.counts.open[node.state.group()] -= 1;
        Some(node)
    }

    fn leave(&mut self, open: OpenNode, at: Instant) {
        self.counts.open[open.state.group()] -= 1;
        self.time(open, at);
    }

    fn time(&mut self, open: OpenNode, at: Instant) {
        let clocked = match open.state {
            State::Started(place) => &mut self.node_times[place as usize],
            State::Waiting(WaitReason::Limit) => &mut self.waits[WaitKind::Limit as usize],
            State::Waiting(WaitReason::Retry) => &mut self.waits[WaitKind::Retry as usize],
        };
        clocked.record(at.saturating_duration_since(open.since));
    }

    fn lost(&mut self, count: u64) {
        self.counts.lost += count;
        let Some(latest) = self.latest else { return };
        self.lost_at = Some(latest);
        self.forget_at.get_or_insert(latest + MAX_SILENCE);
    }

    /// Removes the runs and nodes that had no event since the loss.
    #[cold]
    fn forget(&mut self) {
        let Some(due) = self.forget_at.take() else { return };
        let is_stale = |at: Instant| at + MAX_SILENCE <= due;
        let silent: Vec<RunId> =
            self.runs.iter().filter(|(_, open)| is_stale(open.latest)).map(|(run, _)| *run).collect();
        for run in silent {
            let open = self.runs.remove(&run).expect("was just seen");
            self.close(open);
        }
        for open in self.runs.values_mut() {
            open.nodes.retain(|_, node| {
                let keep = !is_stale(node.since);
                self.open_nodes -= usize::from(!keep);
                self.counts.open[node.state.group()] -= u64::from(!keep);
                keep
            });
        }
        self.forget_at = self.lost_at.map(|at| at + MAX_SILENCE).filter(|next| *next > due);
    }
}

impl State {
    fn group(self) -> usize {
        match self {
            State::Started(_) => 0,
            State::Waiting(WaitReason::Limit) => 1,
            State::Waiting(WaitReason::Retry) => 2,
        }
    }
}

/// Durations from a nanosecond to a day with two significant digits, in about forty kilobytes.
struct DurationHistogram {
    histogram: Histogram<u64>,
    sum: Duration,
}

impl DurationHistogram {
    fn new() -> DurationHistogram {
        const DAY: u64 = 86_400_000_000_000;
        let histogram = Histogram::new_with_bounds(1, DAY, 2).expect("the bounds are in order");
        DurationHistogram { histogram, sum: Duration::ZERO }
    }

    fn record(&mut self, time: Duration) {
        self.histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.sum = self.sum.saturating_add(time);
    }
}
