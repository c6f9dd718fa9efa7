//! The times at which nodes expire, and one sleep for the earliest of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::clock::{Clock, Sleep};
use crate::graph::NodeId;

/// An entry whose work has ended stays until its time comes, or until a sweep. The heap is swept each time it has
/// doubled, so that an entry costs constant time on average.
#[derive(Default)]
pub(super) struct Timer {
    due: BinaryHeap<Reverse<(Instant, Due)>>,
    /// The number of entries after the last sweep.
    swept_to: usize,
    sleep: Option<(Instant, Sleep)>,
}

/// The work that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The work in a slot.
    Slot(Ticket),
    /// A node that waits for a limit or a retry, without a slot.
    Node(NodeId),
}

/// Identifies one use of a slot.
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

    /// Removes one entry whose time is at most `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        if self.earliest()? > now {
            return None;
        }
        self.due.pop().map(|Reverse((_, due))| due)
    }

    /// Sleeps until `at`, or until an earlier time that was set before: a needless wake-up costs less than a new timer.
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
