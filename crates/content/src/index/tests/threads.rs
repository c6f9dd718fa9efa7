//! Readers, a writer and a worker at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{SMALL, at, key, open};
use crate::index::{Index, Settings};
use crate::{Memory, Wait};

const READS: usize = 300;
const BATCH: usize = 24;

/// The state that the threads share: the last batch that was applied, and the number of reads.
#[derive(Default)]
struct Progress {
    written: AtomicUsize,
    read: AtomicUsize,
}

impl Progress {
    fn goes_on(&self) -> bool {
        self.read.load(Ordering::Acquire) < READS
    }
}

/// All keys of a batch get the batch's number; the same keys every time, and one that is seldom written.
fn write(index: &Index, progress: &Progress) {
    let _end = End(progress);
    let mut batch = 0;
    while progress.goes_on() {
        batch += 1;
        let value: Box<[u8]> = Box::from(usize::to_le_bytes(batch));
        let keys = (0..BATCH).chain([100 + batch % 400]);
        let changes = keys.map(|number| {
            // So that readers come when the batch is half in.
            std::thread::yield_now();
            (key(number), Some(value.clone()))
        });
        index.apply(changes, at(batch as u64), Vec::new);
        progress.written.store(batch, Ordering::Release);
        while index.is_behind() && progress.goes_on() {
            std::thread::yield_now();
        }
    }
}

/// Ends the other threads, however one ends.
struct End<'a>(&'a Progress);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.read.store(READS, Ordering::Release);
    }
}

/// Reads while there are new batches.
fn read(index: &Index, progress: &Progress) {
    let _end = End(progress);
    let mut seen = 0;
    while progress.goes_on() {
        let written = progress.written.load(Ordering::Acquire);
        if written == seen {
            std::thread::yield_now();
            continue;
        }
        seen = written;
        let found = index.get(&key(written % BATCH), Wait::Yes).unwrap().map_or(0, |value| batch(&value));
        assert!(found >= written, "{written} was written, {found} found");
        let seldom = index.get(&key(100 + written % 400), Wait::Yes).unwrap();
        assert!(seldom.map_or(0, |value| batch(&value)) >= written);
        let scan = index.scan(&[], None).unwrap().map(Result::unwrap);
        let always = scan.filter(|(found, _)| (0..BATCH).any(|number| key(number) == *found));
        let batches: Vec<_> = always.map(|(_, value)| batch(&value)).collect();
        assert!(batches.len() == BATCH && batches[0] >= written, "{batches:?} after {written}");
        assert!(batches.iter().all(|batch| *batch == batches[0]), "{batches:?}");
        progress.read.fetch_add(1, Ordering::AcqRel);
    }
}

fn batch(value: &[u8]) -> usize {
    usize::from_le_bytes(value.try_into().unwrap())
}

#[test]
fn readers_see_whole_batches_at_once() {
    let settings = Settings { recent_bytes: 16 << 10, fan_in: 3, ..SMALL };
    let (index, _) = open(&Arc::new(Memory::new()), settings).unwrap();
    let progress = Progress::default();
    std::thread::scope(|threads| {
        threads.spawn(|| write(&index, &progress));
        threads.spawn(|| read(&index, &progress));
        threads.spawn(|| {
            let _end = End(&progress);
            while progress.goes_on() {
                index.work().unwrap();
                std::thread::yield_now();
            }
        });
    });
    index.verify(&mut |_| {}).unwrap();
}
