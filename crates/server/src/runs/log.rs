//! A bounded log of events with many readers. A reader that is too slow gets the number of events that it missed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The last events, numbered from 1. A handle: clones share it.
#[derive(Clone)]
pub(crate) struct Log<T> {
    shared: Arc<LogShared<T>>,
}

struct LogShared<T> {
    most: usize,
    bytes_most: usize,
    entries: Mutex<Entries<T>>,
    /// The number of the last event, and whether the log is closed.
    last: watch::Sender<LastEvent>,
}

#[derive(Clone, Copy, Default)]
struct LastEvent {
    number: u64,
    is_closed: bool,
}

struct Entries<T> {
    /// Each event with its size in bytes.
    kept: VecDeque<(T, usize)>,
    bytes: usize,
    last: u64,
}

/// The next item of a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<T> {
    /// An event and its number.
    Event(u64, T),
    /// This number of events up to `up_to` were lost; `None` if the number is not known.
    Lost { count: Option<u64>, up_to: u64 },
}

impl<T: Clone> Log<T> {
    /// A log of at most `most` events and `bytes_most` bytes.
    pub(crate) fn new(most: usize, bytes_most: usize) -> Log<T> {
        let entries = Mutex::new(Entries { kept: VecDeque::new(), bytes: 0, last: 0 });
        Log { shared: Arc::new(LogShared { most, bytes_most, entries, last: watch::Sender::default() }) }
    }

    /// Adds an event of `bytes` bytes. The oldest events are dropped to make room.
    pub(crate) fn push(&self, event: T, bytes: usize) {
        let mut entries = self.lock();
        entries.last += 1;
        entries.bytes += bytes;
        entries.kept.push_back((event, bytes));
        while (entries.kept.len() > self.shared.most || entries.bytes > self.shared.bytes_most)
            && let Some((_, bytes)) = entries.kept.pop_front()
        {
            entries.bytes -= bytes;
        }
        let number = entries.last;
        drop(entries);
        if self.shared.last.receiver_count() > 0 {
            self.shared.last.send_modify(|last| last.number = last.number.max(number));
        }
    }

    /// Closes the log. Readers end once they have read all events.
    pub(crate) fn close(&self) {
        self.shared.last.send_modify(|last| last.is_closed = true);
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.lock().last
    }

    /// A reader of the events after this number. A number that does not exist yet is replaced by the last one.
    pub(crate) fn read(&self, after: u64) -> Reader<T> {
        let after = after.min(self.last());
        Reader { log: self.clone(), last: self.shared.last.subscribe(), after, has_gap: false }
    }

    /// A reader of all events that are kept. It is told first that it lost others, because it has read another log.
    pub(crate) fn read_after_another(&self) -> Reader<T> {
        Reader { has_gap: true, ..self.read(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Entries<T>> {
        self.shared.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a log from a given event on. It holds no event, so an idle reader costs little.
pub(crate) struct Reader<T> {
    log: Log<T>,
    last: watch::Receiver<LastEvent>,
    after: u64,
    /// Whether it lost events that this log never had.
    has_gap: bool,
}

impl<T: Clone> Reader<T> {
    /// The next item; `None` once the log is closed and read.
    pub(crate) async fn next(&mut self) -> Option<Item<T>> {
        loop {
            // This is read before the log, so that no event in between is missed.
            let is_closed = self.last.borrow_and_update().is_closed;
            if let Some(item) = self.try_next() {
                return Some(item);
            }
            if is_closed || self.last.changed().await.is_err() {
                return None;
            }
        }
    }

    fn try_next(&mut self) -> Option<Item<T>> {
        let entries = self.log.lock();
        let first = entries.last + 1 - entries.kept.len() as u64;
        if self.has_gap || self.after + 1 < first {
            let count = (!self.has_gap).then(|| first - 1 - self.after);
            (self.after, self.has_gap) = (first - 1, false);
            return Some(Item::Lost { count, up_to: self.after });
        }
        let (event, _) = entries.kept.get((self.after + 1 - first) as usize)?;
        self.after += 1;
        Some(Item::Event(self.after, event.clone()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn read(reader: &mut Reader<u32>) -> Vec<Item<u32>> {
        std::iter::from_fn(|| reader.next().now_or_never().flatten()).collect()
    }

    #[test]
    fn a_reader_continues_behind_any_event() {
        let log = Log::new(10, usize::MAX);
        (1..=3).for_each(|event| log.push(event, 0));
        let mut reader = log.read(1);
        assert_eq!(read(&mut reader), [Item::Event(2, 2), Item::Event(3, 3)]);
        log.push(4, 0);
        assert_eq!(read(&mut reader), [Item::Event(4, 4)]);
        assert!(reader.next().now_or_never().is_none(), "there may be more");
        log.close();
        assert_eq!(reader.next().now_or_never(), Some(None));
        assert_eq!(read(&mut log.read(900)), []);
    }

    #[test]
    fn a_slow_reader_is_told_what_it_lost() {
        let log = Log::new(2, usize::MAX);
        let mut reader = log.read(0);
        (1..=5).for_each(|event| log.push(event, 0));
        assert_eq!(
            read(&mut reader),
            [Item::Lost { count: Some(3), up_to: 3 }, Item::Event(4, 4), Item::Event(5, 5)]
        );
        assert_eq!(
            read(&mut log.read_after_another()),
            [Item::Lost { count: None, up_to: 3 }, Item::Event(4, 4), Item::Event(5, 5)]
        );
    }

    #[test]
    fn bytes_are_bounded() {
        let log = Log::new(100, 10);
        (1..=5).for_each(|event| log.push(event, 4));
        assert_eq!(read(&mut log.read(0)).len(), 3);
        log.push(6, 11);
        assert_eq!(read(&mut log.read(0)), [Item::Lost { count: Some(6), up_to: 6 }]);
    }
}
