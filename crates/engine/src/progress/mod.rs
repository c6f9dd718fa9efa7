//! The progress of runs, computed from their events: counts, rate, time left, and one line of text for a terminal.

mod line;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::event::{Event, EventKind, ListenerItem, RunId, WaitReason};
use crate::graph::NodeId;

/// The progress of any number of runs. Give it every item of a [`Listener`](crate::event::Listener).
#[derive(Default)]
pub struct Progress {
    counts: NodeCounts,
    open: BTreeMap<RunId, Vec<State>>,
    lost: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    pace: Pace,
}

/// The nodes of all runs, counted by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    pub total: u64,
    /// Nodes that finished, including those whose fallback was used.
    pub finished: u64,
    pub failed: u64,
    pub dropped: u64,
    /// Nodes whose fallback was used.
    pub fell_back: u64,
    /// Nodes that have started and not ended.
    pub in_flight: u64,
    /// Nodes that wait for a slot of a limit.
    pub on_limit: u64,
    /// Nodes that wait for a retry.
    pub on_retry: u64,
    /// Nodes that had not ended when their run did: they were stopped, did not start, or their events were lost.
    pub cut: u64,
}

/// The state of a node.
#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    InFlight,
    OnLimit,
    OnRetry,
    Ended,
}

/// A run whose end was lost stays open. If more runs than this are open, the oldest is closed.
const MAX_OPEN_RUNS: usize = 4_096;

impl Progress {
    /// Records an event, or a loss of events.
    pub fn record(&mut self, item: &ListenerItem) {
        match item {
            ListenerItem::Event(event) => self.event(event),
            ListenerItem::Lost(count) => self.lost += count,
        }
    }

    /// The nodes of all runs, counted by state.
    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    /// The number of lost events. With any, the counts are too low.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The time from the start of the first run to `now`, or to the last event if all runs have ended.
    pub fn elapsed(&self, now: Instant) -> Duration {
        let until = if self.open.is_empty() { self.last.unwrap_or(now) } else { now };
        self.first.map_or(Duration::ZERO, |first| until.saturating_duration_since(first))
    }

    /// The recent number of nodes that end per second.
    pub fn rate(&self, now: Instant) -> f64 {
        self.pace.rate(now)
    }

    /// The time that the remaining nodes take at the present rate; `None` if no node remains or the rate is 0.
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

    /// The states of the nodes of a run, at least `count` of them. If the start of the run was lost, its number of nodes
    /// is not known and grows with each event.
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
    /// The number of nodes that finished, failed or were dropped.
    pub fn ended(&self) -> u64 {
        self.finished + self.failed + self.dropped
    }

    /// The number of nodes that have not ended and may still do so.
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

/// The rate of ends per second, as an exponentially weighted mean.
#[derive(Default)]
struct Pace {
    at: Option<Instant>,
    ends: f64,
    /// The time in which `ends` happened, weighted in the same way.
    seconds: f64,
}

/// Ends of this many seconds ago count about a third (1/e).
const MEMORY_SECONDS: f64 = 10.0;

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
        let fade = (-passed / MEMORY_SECONDS).exp();
        (self.ends * fade, self.seconds * fade + MEMORY_SECONDS * (1.0 - fade))
    }
}
