//! The progress of runs, from their events: counts, rate, time left, and one line of text to draw on a terminal.

mod line;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::event::{Event, EventKind, ListenerItem, RunId, WaitReason};
use crate::graph::NodeId;

/// Follows the events of any number of runs and adds them up.
#[derive(Default)]
pub struct Progress {
    counts: NodeCounts,
    open: BTreeMap<RunId, Vec<State>>,
    lost: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    pace: Pace,
}

/// Nodes of all runs, by where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// All of them.
    pub total: u64,
    /// Those that finished, the ones with a stand-in value included.
    pub finished: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were dropped.
    pub dropped: u64,
    /// Those whose value is a stand-in.
    pub fell_back: u64,
    /// Those that have started and not ended.
    pub in_flight: u64,
    /// Those that wait for a slot of a limit.
    pub on_limit: u64,
    /// Those that wait for another attempt.
    pub on_retry: u64,
    /// Those whose run ended without word of their end: cut short, never started, or lost.
    pub cut: u64,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    InFlight,
    OnLimit,
    OnRetry,
    Ended,
}

/// An end that is lost leaves its run open; of more than these the oldest is given up.
const MAX_OPEN_RUNS: usize = 4_096;

impl Progress {
    /// Takes in one thing heard.
    pub fn record(&mut self, item: &ListenerItem) {
        match item {
            ListenerItem::Event(event) => self.event(event),
            ListenerItem::Lost(count) => self.lost += count,
        }
    }

    /// The counts.
    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    /// How many events were lost: with any, the counts are too low.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// From the first run's start to `now`, or to the last event once every run has ended.
    pub fn elapsed(&self, now: Instant) -> Duration {
        let until = if self.open.is_empty() { self.last.unwrap_or(now) } else { now };
        self.first.map_or(Duration::ZERO, |first| until.saturating_duration_since(first))
    }

    /// Nodes that end in a second, of late.
    pub fn rate(&self, now: Instant) -> f64 {
        self.pace.rate(now)
    }

    /// How long what remains takes at this rate; `None` when nothing remains or nothing moves.
    pub fn eta(&self, now: Instant) -> Option<Duration> {
        let remaining = self.counts.remaining();
        let seconds = remaining as f64 / self.rate(now);
        (remaining > 0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
    }

    fn event(&mut self, event: &Event) {
        let Event { run, at, kind } = *event;
        self.first.get_or_insert(at);
        self.last = self.last.max(Some(at));
        self.pace.begin(at);
        match kind {
            EventKind::RunStarted(count) => {
                self.nodes(run, count as usize);
            }
            EventKind::RunEnded(_) => self.close_run(run),
            EventKind::Limit(..) => {}
            EventKind::Waiting(node, WaitReason::Limit) => self.turn(run, node, State::OnLimit),
            EventKind::Waiting(node, WaitReason::Retry) => self.turn(run, node, State::OnRetry),
            EventKind::Started(node, _) | EventKind::Running(node) => self.turn(run, node, State::InFlight),
            EventKind::Finished(node) => self.end(run, node, at, |counts| counts.finished += 1),
            EventKind::Failed(node, _) => self.end(run, node, at, |counts| counts.failed += 1),
            EventKind::Dropped(node) => self.end(run, node, at, |counts| counts.dropped += 1),
            EventKind::FellBack(node, _) => self.end(run, node, at, |counts| {
                counts.finished += 1;
                counts.fell_back += 1;
            }),
        }
    }

    /// The states of a run's nodes, at least `count` of them: a run whose start was lost grows as it is heard of.
    fn nodes(&mut self, run: RunId, count: usize) -> &mut Vec<State> {
        if self.open.len() == MAX_OPEN_RUNS && !self.open.contains_key(&run) {
            let oldest = *self.open.keys().next().expect("there are many");
            self.close_run(oldest);
        }
        let nodes = self.open.entry(run).or_default();
        if nodes.len() < count {
            self.counts.total += (count - nodes.len()) as u64;
            nodes.resize(count, State::New);
        }
        nodes
    }

    fn close_run(&mut self, run: RunId) {
        for state in self.open.remove(&run).unwrap_or_default() {
            self.counts.leave(state);
            self.counts.cut += u64::from(state != State::Ended);
        }
    }

    fn turn(&mut self, run: RunId, node: NodeId, to: State) {
        let state = &mut self.nodes(run, node.index() + 1)[node.index()];
        if *state != State::Ended {
            let from = std::mem::replace(state, to);
            self.counts.leave(from);
            self.counts.enter(to);
        }
    }

    fn end(&mut self, run: RunId, node: NodeId, at: Instant, count: impl FnOnce(&mut NodeCounts)) {
        if self.nodes(run, node.index() + 1)[node.index()] != State::Ended {
            self.turn(run, node, State::Ended);
            count(&mut self.counts);
            self.pace.count(at);
        }
    }
}

impl NodeCounts {
    /// Those that finished, failed or were dropped.
    pub fn ended(&self) -> u64 {
        self.finished + self.failed + self.dropped
    }

    /// Those that are still to end.
    pub fn remaining(&self) -> u64 {
        self.total - self.ended() - self.cut
    }

    fn enter(&mut self, state: State) {
        if let Some(count) = self.count_of(state) {
            *count += 1;
        }
    }

    fn leave(&mut self, state: State) {
        if let Some(count) = self.count_of(state) {
            *count -= 1;
        }
    }

    fn count_of(&mut self, state: State) -> Option<&mut u64> {
        match state {
            State::New | State::Ended => None,
            State::InFlight => Some(&mut self.in_flight),
            State::OnLimit => Some(&mut self.on_limit),
            State::OnRetry => Some(&mut self.on_retry),
        }
    }
}

/// Ends in a second, where what is long past counts ever less.
#[derive(Default)]
struct Pace {
    at: Option<Instant>,
    ends: f64,
    /// The time over which `ends` came in, faded in the same way.
    seconds: f64,
}

/// What is this many seconds past counts a third.
const MEMORY: f64 = 10.0;

impl Pace {
    fn begin(&mut self, at: Instant) {
        self.at.get_or_insert(at);
    }

    fn count(&mut self, at: Instant) {
        let (ends, seconds) = self.faded(at);
        (self.ends, self.seconds) = (ends + 1.0, seconds);
        self.at = self.at.max(Some(at));
    }

    fn rate(&self, now: Instant) -> f64 {
        let (ends, seconds) = self.faded(now);
        if seconds > 0.0 { ends / seconds } else { 0.0 }
    }

    fn faded(&self, now: Instant) -> (f64, f64) {
        let passed = self.at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        if passed == 0.0 {
            return (self.ends, self.seconds);
        }
        let fade = (-passed / MEMORY).exp();
        (self.ends * fade, self.seconds * fade + MEMORY * (1.0 - fade))
    }
}
