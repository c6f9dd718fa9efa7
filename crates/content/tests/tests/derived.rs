//! Values that are known at once and written behind.

mod described;
mod model;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anabranch_content::{Address, Class, Collect, Config, Cost, Disk, Error, Memory, NewMemo, Store, Time};
use bytes::Bytes;
use futures_util::FutureExt;

use crate::meet::{Gate, block_writer};

pub(crate) fn value(number: u64) -> Bytes {
    format!("value {number}").into()
}

pub(crate) fn derivation(number: u64) -> Address {
    Address::of(format!("derivation {number}").as_bytes())
}

/// A derivation came to a value.
pub(crate) fn made(derivation: Address, value: &Bytes) -> NewMemo<'static> {
    let (output, size) = (Address::of(value), value.len() as u64);
    NewMemo { derivation, output, size, cost: Cost::default(), inputs: &[] }
}

pub(crate) async fn derive(store: &Store, number: u64) -> Result<(), Error> {
    store.derived(made(derivation(number), &value(number)), None, value(number)).await
}

/// Has all that was derived so far written.
pub(crate) async fn settle(store: &Store) -> Result<(), Error> {
    store.invalidate(&[]).await.map(|_| ())
}

/// Without a cache, so that it is not the cache that answers.
fn uncached() -> Config {
    Config { cache_bytes: 0, ..Config::default() }
}

/// Is all of a derived value there?
async fn check(store: &Store, number: u64) {
    let (derivation, value) = (derivation(number), value(number));
    let memo = store.recall(&derivation).await.unwrap().unwrap();
    assert_eq!((memo.derivation, memo.output), (derivation, Address::of(&value)));
    assert_eq!(store.recall_now(&derivation).unwrap(), memo);
    let many = store.recall_many(&[Address::of(b"other"), derivation]).await.unwrap();
    assert_eq!(many, [None, Some(memo.clone())]);
    assert_eq!(store.get(&memo.output).await.unwrap().unwrap(), value);
    assert_eq!(store.get_range(&memo.output, 2..5).await.unwrap().unwrap(), value.slice(2..5));
    assert_eq!(store.size(&memo.output).await.unwrap(), Some(value.len() as u64));
    let mut reader = store.read(&memo.output, 1..u64::MAX).await.unwrap().unwrap();
    assert_eq!(reader.size(), value.len() as u64);
    assert_eq!(reader.next().await.unwrap().unwrap(), value.slice(1..));
    assert!(reader.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_derived_is_there_before_it_is_written() {
    let disk = Arc::new(Gate::default());
    let store = Store::open_on(disk.clone(), uncached()).unwrap();
    let blocked = block_writer(&store, &disk);
    for number in 0..100 {
        derive(&store, number).await.unwrap();
        check(&store, number).await;
    }
    // The writer has not seen any of it.
    assert_eq!(store.stats().memos, 0);
    let output = Address::of(&value(7));
    let later = made(derivation(1000), &value(7));
    let mut remembered = Box::pin(store.remember(later, Class::Acknowledged));
    assert!((&mut remembered).now_or_never().is_none(), "its output is on its way");
    disk.open_up();
    blocked.await;
    remembered.await.unwrap();
    settle(&store).await.unwrap();
    assert_eq!(store.stats().memos, 101);
    assert_eq!(store.status(&output).await.unwrap().blob, Some((7, Class::Derivable)));
    for number in 0..100 {
        check(&store, number).await;
    }
}

#[tokio::test]
async fn closing_writes_what_is_pending() {
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let store = Store::open_on(Arc::clone(&disk), uncached()).unwrap();
    let handle = store.clone();
    for number in 0..500 {
        derive(&store, number).await.unwrap();
    }
    store.close().await.unwrap();
    let refused = derive(&handle, 500).await;
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    assert!(handle.recall_now(&derivation(500)).is_none());
    drop(handle);
    let store = Store::open_on(disk, uncached()).unwrap();
    for number in 0..500 {
        check(&store, number).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalidation_wins_over_what_is_pending() {
    let disk = Arc::new(Gate::default());
    let store = Store::open_on(disk.clone(), Config::default()).unwrap();
    let blocked = block_writer(&store, &disk);
    derive(&store, 1).await.unwrap();
    derive(&store, 2).await.unwrap();
    let addresses = [derivation(1)];
    let mut invalidated = Box::pin(store.invalidate(&addresses));
    assert!((&mut invalidated).now_or_never().is_none());
    disk.open_up();
    assert_eq!(invalidated.await.unwrap(), 1);
    blocked.await;
    assert_eq!(store.recall(&derivation(1)).await.unwrap(), None);
    assert_eq!(store.recall_now(&derivation(1)), None);
    // The output stays, and so does the other one.
    assert_eq!(store.get(&Address::of(&value(1))).await.unwrap().unwrap(), value(1));
    check(&store, 2).await;
    derive(&store, 1).await.unwrap();
    check(&store, 1).await;
}

/// A clock that says how often it was asked.
#[derive(Clone, Default)]
struct CountingClock(Arc<(Mutex<u64>, Condvar)>, Arc<AtomicU64>);

impl CountingClock {
    fn config(&self) -> Config {
        let asked = self.clone();
        let clock = move || {
            *asked.0.0.lock().unwrap() += 1;
            asked.0.1.notify_all();
            Time(asked.1.load(Ordering::Relaxed))
        };
        Config { clock: Arc::new(clock), ..uncached() }
    }

    fn count(&self) -> u64 {
        *self.0.0.lock().unwrap()
    }

    fn wait_beyond(&self, count: u64) {
        let (asked, changed) = &*self.0;
        let waited = changed
            .wait_timeout_while(asked.lock().unwrap(), Duration::from_secs(120), |asked| *asked <= count);
        assert!(!waited.unwrap().1.timed_out(), "nobody asked for the time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collection_keeps_what_is_pending() {
    let disk = Arc::new(Gate::default());
    let clock = CountingClock::default();
    let store = Store::open_on(disk.clone(), clock.config()).unwrap();
    // All of it is old, but for the memo.
    let input = store.put("input", Class::Acknowledged).await.unwrap().address;
    let output = store.put(value(1), Class::Derivable).await.unwrap().address;
    let loose = store.put("loose", Class::Acknowledged).await.unwrap().address;
    clock.1.fetch_add(1_000_000, Ordering::Relaxed);
    let blocked = block_writer(&store, &disk);
    let inputs = [input];
    let made = NewMemo { inputs: &inputs, ..made(derivation(1), &value(1)) };
    store.derived(made, None, value(1)).await.unwrap();
    derive(&store, 2).await.unwrap();
    let asked = clock.count();
    let mut collected = Box::pin(store.collect(Collect { grace: Duration::ZERO, ..Collect::default() }));
    assert!((&mut collected).now_or_never().is_none());
    // It has begun, so it is on its own to spare what is written while it goes on.
    clock.wait_beyond(asked);
    disk.open_up();
    let removed = collected.await.unwrap().removed;
    blocked.await;
    assert!(removed.contains(&loose), "{removed:?}");
    assert!(!removed.contains(&input) && !removed.contains(&output), "{removed:?}");
    check(&store, 1).await;
    check(&store, 2).await;
    assert!(store.get(&input).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_makes_callers_wait() {
    let disk = Arc::new(Gate::default());
    let store = Store::open_on(disk.clone(), Config { queue_bytes: 16 << 10, ..uncached() }).unwrap();
    let blocked = block_writer(&store, &disk);
    let mut taken = 0;
    let mut waiting = loop {
        let mut derived = Box::pin(derive(&store, taken));
        match (&mut derived).now_or_never() {
            Some(done) => done.unwrap(),
            None => break derived,
        }
        taken += 1;
        assert!(taken < 100, "no bound");
    };
    assert!((8..=16).contains(&taken), "{taken}");
    assert!((&mut waiting).now_or_never().is_none());
    disk.open_up();
    waiting.await.unwrap();
    blocked.await;
    for number in 0..=taken {
        check(&store, number).await;
    }
}

#[tokio::test]
async fn a_derived_value_needs_room_in_the_quota() {
    let store = Store::in_memory(Config { quota_bytes: Some(10_000), ..Config::default() }).unwrap();
    let kept = store.put(vec![1; 9_000], Class::Acknowledged).await.unwrap().address;
    store.pin(&kept).await.unwrap();
    let large = Bytes::from(vec![2; 5_000]);
    let refused = store.derived(made(derivation(1), &large), None, large.clone()).await;
    assert!(matches!(refused, Err(Error::Quota { .. })), "{refused:?}");
    assert_eq!(store.recall(&derivation(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_value_too_large_to_be_packed_is_kept_all_the_same() {
    let store = Store::in_memory(uncached()).unwrap();
    let large = Bytes::from(vec![3; 200_000]);
    store.derived(made(derivation(1), &large), None, large.clone()).await.unwrap();
    let memo = store.recall(&derivation(1)).await.unwrap().unwrap();
    assert_eq!(store.get(&memo.output).await.unwrap().unwrap(), large);
}

#[tokio::test]
async fn a_value_that_is_there_is_not_written_again_but_is_young_again() {
    let clock = CountingClock::default();
    let store = Store::in_memory(clock.config()).unwrap();
    let large = Bytes::from(vec![4; 50_000]);
    let derive = |number| store.derived(made(derivation(number), &large), None, large.clone());
    derive(1).await.unwrap();
    derive(2).await.unwrap();
    settle(&store).await.unwrap();
    let stats = store.stats();
    assert_eq!((stats.blobs, stats.memos), (1, 2));
    assert!(stats.used_bytes < 60_000, "{}", stats.used_bytes);
    // Long after, a collection with the usual grace finds it young.
    clock.1.fetch_add(1_000_000, Ordering::Relaxed);
    derive(3).await.unwrap();
    settle(&store).await.unwrap();
    store.invalidate(&[derivation(1), derivation(2), derivation(3)]).await.unwrap();
    store.collect(Collect::default()).await.unwrap();
    assert!(
        store.get(&Address::of(&large)).await.unwrap().is_some(),
        "derived a moment ago, collected as old"
    );
    assert!(store.stats().used_bytes < 60_000);
}

/// One order to the writer brings a value and both of its memos.
#[tokio::test]
async fn a_value_may_have_a_second_memo() {
    for config in [uncached(), Config { packed_most: 2, ..uncached() }] {
        let store = Store::in_memory(config).unwrap();
        store.derived(made(derivation(1), &value(1)), Some(derivation(2)), value(1)).await.unwrap();
        // The first memo is there already, or both are.
        store.derived(made(derivation(1), &value(1)), Some(derivation(3)), value(1)).await.unwrap();
        store.derived(made(derivation(1), &value(1)), Some(derivation(3)), value(1)).await.unwrap();
        let output = Address::of(&value(1));
        for settled in [false, true] {
            for number in 1..=3 {
                assert_eq!(store.recall(&derivation(number)).await.unwrap().unwrap().output, output);
            }
            assert_eq!(store.get(&output).await.unwrap().unwrap(), value(1));
            if !settled {
                settle(&store).await.unwrap();
            }
        }
        assert_eq!(store.stats().blobs, 1);
    }
}
