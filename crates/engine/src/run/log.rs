//! A run's events, published in batches.

use std::sync::Arc;
use std::time::Instant;

use crate::clock::Clock;
use crate::event::{Event, EventKind, Events, Placement, RunId};
use crate::graph::NodeId;

/// Writes events. Costs one branch per event if there is no listener.
pub(super) struct Log {
    events: Events,
    clock: Arc<dyn Clock>,
    run: RunId,
    heard: bool,
    /// The end of the last inline node. It is the start of the next one, which saves a clock read.
    stamp: Option<Instant>,
    batch: Vec<Event>,
}

const BATCH: usize = 128;

impl Log {
    pub(super) fn new(events: Events, clock: Arc<dyn Clock>, run: RunId) -> Log {
        let heard = events.has_listeners();
        Log { events, clock, run, heard, stamp: None, batch: Vec::new() }
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    /// Called when the run is polled again: time has passed, and listeners may have come or gone.
    pub(super) fn resume(&mut self) {
        self.heard = self.events.has_listeners();
        self.stamp = None;
    }

    #[inline]
    pub(super) fn is_heard(&self) -> bool {
        self.heard
    }

    /// The start time of the node that starts now, if there is a listener.
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

    /// Logs an event with a time that another thread took.
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
