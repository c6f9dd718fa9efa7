//! When nodes in flight are due, and one sleep for the earliest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::clock::{Clock, Sleep};
use crate::graph::NodeId;

/// Entries of work that ended early stay until they come due, or until the heap has doubled since it was last swept.
#[derive(Default)]
pub(super) struct Timer {
    due: BinaryHeap<Reverse<(Instant, Due)>>,
    /// Entries that the last sweep left.
    swept_to: usize,
    sleep: Option<(Instant, Sleep)>,
}

/// What comes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// One use of a slot.
    Slot(Ticket),
    /// A node that waits without one.
    Node(NodeId),
}

/// Names one use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl Timer {
    pub(super) fn set(&mut self, at: Instant, due: Due, is_live: impl Fn(Due) -> bool) {
        if self.due.len() > 2 * self.swept_to + 64 {
            self.due.retain(|Reverse((_, due))| is_live(*due));
            self.swept_to = self.due.len();
        }
        self.due.push(Reverse((at, due)));
    }

    #[inline]
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one entry that is due by `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        if self.earliest()? > now {
            return None;
        }
        self.due.pop().map(|Reverse((_, due))| due)
    }

    /// Waits for `at` or something earlier; ready when it is time to look again.
    ///
    /// A sleep for an earlier time is left running: firing too soon costs a look, setting a timer costs more.
    pub(super) fn poll(&mut self, at: Instant, clock: &dyn Clock, cx: &mut Context<'_>) -> Poll<()> {
        if self.sleep.as_ref().is_none_or(|(until, _)| *until > at) {
            self.sleep = Some((at, clock.sleep_until(at)));
        }
        let (_, sleep) = self.sleep.as_mut().expect("was just set");
        let fired = sleep.as_mut().poll(cx);
        if fired.is_ready() {
            self.sleep = None;
        }
        fired
    }
}
