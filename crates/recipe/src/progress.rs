//! Reports the progress of running calls to listeners.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_content::Address;

use crate::events::{Event, Events};

/// The interval between two progress events of a call. A shorter call sends none.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// The progress of one call. A call reports through the budget that it checks anyway. A report costs a few atomic
/// operations, and an event is sent at most ten times per second.
#[derive(Debug)]
pub(crate) struct CallProgress {
    events: Events,
    address: Address,
    total: u64,
    read: AtomicU64,
    written: AtomicU64,
    steps: AtomicU64,
    began: Instant,
    /// The time of the next event, in nanoseconds after `began`.
    due: AtomicU64,
}

impl CallProgress {
    /// The progress of a recipe's call, whose inputs have `total` bytes.
    pub(crate) fn new(events: &Events, address: Address, total: u64, now: Instant) -> CallProgress {
        CallProgress {
            events: events.clone(),
            address,
            total,
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            began: now,
            due: AtomicU64::new(TELL_EVERY.as_nanos() as u64),
        }
    }

    /// Counts input bytes that the function received.
    pub(crate) fn read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts output bytes taken from the function.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts one step of the function, and sends an event if one is due.
    pub(crate) fn step(&self, now: Instant) {
        let steps = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let (spent, due) = (nanos(now, self.began), self.due.load(Ordering::Relaxed));
        if spent < due {
            return;
        }
        let next = spent.saturating_add(TELL_EVERY.as_nanos() as u64);
        // Several threads may report for one call. Only one of them sends the event.
        if self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.events.tell(|| Event::Progress {
                address: self.address,
                read: self.read.load(Ordering::Relaxed),
                total: self.total,
                written: self.written.load(Ordering::Relaxed),
                steps,
            });
        }
    }
}

fn nanos(now: Instant, began: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(began).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use anabranch_engine::clock::{Clock as _, SystemClock};
    use futures_util::FutureExt as _;

    use super::*;
    use crate::events::Notice;

    #[test]
    fn events_are_a_tenth_of_a_second_apart() {
        let events = Events::default();
        let mut listener = events.listen();
        let began = SystemClock.now();
        let progress = CallProgress::new(&events, Address::of(b"recipe"), 10, began);
        let mut told = Vec::new();
        for millis in [0, 50, 99, 100, 101, 150, 199, 200, 950, 960] {
            progress.read(1);
            progress.wrote(2);
            progress.step(began + Duration::from_millis(millis));
            while let Some(Some(Notice::Event(event))) = listener.next().now_or_never() {
                let Event::Progress { read, total, written, steps, .. } = event else { panic!("{event:?}") };
                assert_eq!((written, total, steps), (2 * read, 10, read));
                told.push(millis);
            }
        }
        assert_eq!(told, [100, 200, 950]);
    }
}
