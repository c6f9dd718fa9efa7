//! A run's events, gathered and handed over in batches.

use std::sync::Arc;
use std::time::Instant;

use crate::clock::Clock;
use crate::event::{Event, EventKind, Events, Placement, RunId};
use crate::graph::NodeId;

/// Costs one branch a fact while nobody listens.
pub(super) struct Log {
    events: Events,
    clock: Arc<dyn Clock>,
    run: RunId,
    heard: bool,
    /// The end of the last node done in place, which is the start of the next: saves a clock read.
    stamp: Option<Instant>,
    batch: Vec<Event>,
}

const BATCH: usize = 128;

impl Log {
    pub(super) fn new(events: Events, clock: Arc<dyn Clock>, run: RunId) -> Log {
        let heard = events.has_listeners();
        Log { events, clock, run, heard, stamp: None, batch: Vec::new() }
    }

    /// The run it is about.
    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// The run was away: the time may have moved, and listeners come or gone.
    pub(super) fn resume(&mut self) {
        self.heard = self.events.has_listeners();
        self.stamp = None;
    }

    #[inline]
    pub(super) fn is_heard(&self) -> bool {
        self.heard
    }

    /// When the node about to start does so, if anybody wants to know.
    #[inline]
    pub(super) fn start_time(&mut self) -> Option<Instant> {
        if self.heard { Some(self.stamp.take().unwrap_or_else(|| self.clock.now())) } else { None }
    }

    #[inline]
    pub(super) fn started(&mut self, at: Option<Instant>, node: NodeId, place: Placement) {
        if let Some(at) = at {
            self.push(at, EventKind::Started(node, place));
        }
    }

    #[inline]
    pub(super) fn now(&mut self, kind: EventKind) {
        if self.heard {
            let at = self.clock.now();
            self.stamp = Some(at);
            self.push(at, kind);
        }
    }

    /// A fact that another thread timed.
    pub(super) fn at(&mut self, at: Instant, kind: EventKind) {
        if self.heard {
            self.push(at, kind);
        }
    }

    pub(super) fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.events.publish(&self.batch);
            self.batch.clear();
        }
    }

    fn push(&mut self, at: Instant, kind: EventKind) {
        self.batch.push(Event { run: self.run, at, kind });
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }
}
