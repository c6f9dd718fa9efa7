//! A disk that is full.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_content::{Class, Collect, Config, Error, Store};
use anabranch_testkit::{Crash, CrashDisk};

use super::hooked::{Call, HookedDisk};
use super::{open, small};
use crate::crash::boundaries::WORK;
use crate::crash::driver::{Driver, Op};
use crate::crash::times;
use crate::crash::world::random;
use crate::store::Hand;

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Disk { cause, .. } if cause.kind() == ErrorKind::StorageFull)
}

/// Works on a disk of so many bytes, which then grows.
async fn work_in(bytes: u64) {
    let mut driver = Driver::new(CrashDisk::new(bytes));
    driver.disk.set_capacity(bytes);
    let mut failed = driver.open();
    if failed.is_ok() {
        for op in WORK {
            let done = driver.step(op).await;
            assert!(done.as_ref().is_ok() || is_full(done.as_ref().unwrap_err()), "{bytes} {op:?}: {done:?}");
            failed = failed.and(done);
        }
    }
    driver.disk.set_capacity(u64::MAX);
    if let Err(error) = &failed {
        assert!(is_full(error), "{bytes}: {error:?}");
    }
    if driver.is_open() {
        for op in [Op::Put(9, Class::Acknowledged), Op::Put(3, Class::Acknowledged), Op::Collect, Op::Clean] {
            driver.step(op).await.unwrap();
        }
        driver.crashed(bytes, Crash::Total).recover(Crash::Total).await;
        driver.close().await.unwrap();
    }
    let mut driver = driver.crashed(bytes, Crash::Kill);
    driver.recover(Crash::Kill).await;
    let left = driver.disk.files().into_iter().filter(|(path, _)| path.starts_with("incoming")).count();
    assert_eq!(left, 0, "{bytes}");
}

#[tokio::test]
async fn a_full_disk_refuses_and_works_again_once_there_is_room() {
    let mut driver = Driver::new(CrashDisk::new(0));
    driver.open().unwrap();
    let mut most = 0;
    for op in WORK {
        driver.step(op).await.unwrap();
        most = most.max(driver.disk.files().iter().map(|(_, len)| len).sum());
    }
    let step = (most / (100 * times())).max(1);
    for bytes in (0..most).step_by(step as usize) {
        work_in(bytes).await;
    }
}

#[tokio::test]
async fn a_large_blob_that_does_not_fit_leaves_nothing() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &small(&hand));
    store.put(random(1, 100), Class::Acknowledged).await.unwrap();
    let used = |disk: &CrashDisk| disk.files().iter().map(|(_, len)| len).sum::<u64>();
    let before = used(&disk);
    disk.set_capacity(before + 1000);
    for class in [Class::Acknowledged, Class::Derivable] {
        let refused = store.put(random(2, 2000), class).await;
        assert!(refused.as_ref().is_err_and(is_full), "{refused:?}");
    }
    store.close().await.unwrap();
    let files = disk.files();
    assert!(files.iter().all(|(path, _)| !path.starts_with("incoming") && !path.starts_with("files")));
}

#[tokio::test]
async fn an_index_that_cannot_be_written_stops_the_log_until_there_is_room() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let full = Arc::new(AtomicBool::new(true));
    let hook = Arc::clone(&full);
    let hooked = HookedDisk::new(&disk, move |call, path| {
        let refused = call == Call::Write && path.starts_with("index") && hook.load(Ordering::Relaxed);
        if refused { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    });
    let store = Store::open_on(Arc::new(hooked), small(&hand)).unwrap();
    let mut put = Vec::new();
    let refused = loop {
        let seed = put.len() as u64;
        match store.put(random(seed, 30), Class::Acknowledged).await {
            Ok(done) => put.push(done.address),
            Err(error) => break error,
        }
        assert!(put.len() < 1000, "the index grows without bound");
    };
    assert!(is_full(&refused), "{refused:?}");
    let refused = store.put(random(5000, 30), Class::Acknowledged).await.unwrap_err();
    assert!(is_full(&refused), "{refused:?}");
    full.store(false, Ordering::Relaxed);
    put.push(store.put(random(5000, 30), Class::Acknowledged).await.unwrap().address);
    for address in &put {
        assert!(store.get(address).await.unwrap().is_some());
    }
    store.close().await.unwrap();
    let store = open(&disk, &small(&hand));
    assert_eq!((store.opened().clean, store.stats().blobs), (true, put.len() as u64));
}

fn used(disk: &CrashDisk) -> u64 {
    disk.files().iter().map(|(_, len)| len).sum()
}

/// A store on a disk that is full to the last byte, with garbage in files and in the log.
async fn filled(reserve_bytes: u64) -> (CrashDisk, Hand, Store) {
    let (disk, hand) = (CrashDisk::new(7), Hand::default());
    let config = Config { reserve_bytes, touch_after: std::time::Duration::ZERO, ..small(&hand) };
    let store = open(&disk, &config);
    for seed in 0..200 {
        store.put(random(seed, if seed % 4 == 0 { 3000 } else { 100 }), Class::Acknowledged).await.unwrap();
    }
    // The keeper makes the reserve on its own thread.
    let has_reserve = || disk.files().iter().any(|(path, _)| path.ends_with("reserve"));
    while reserve_bytes > 0 && !has_reserve() {
        tokio::task::yield_now().await;
    }
    disk.set_capacity(used(&disk));
    (disk, hand, store)
}

fn all() -> Collect {
    Collect { grace: std::time::Duration::ZERO, ..Collect::default() }
}

#[tokio::test]
async fn a_full_disk_can_be_collected_in_the_room_of_the_reserve() {
    let (_disk, _hand, store) = filled(0).await;
    let refused = store.collect(all()).await.unwrap_err();
    assert!(is_full(&refused), "without a reserve: {refused:?}");

    let (_disk, _hand, store) = filled(32 << 10).await;
    let collected = store.collect(all()).await.unwrap();
    assert!(collected.blobs >= 199, "{collected:?}");
    // Files are removed behind the collection; the next put finds room.
    while store.put(random(500, 1000), Class::Acknowledged).await.is_err() {
        tokio::task::yield_now().await;
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_store_on_a_full_disk_closes_without_an_error_and_loses_nothing() {
    let (disk, hand, store) = filled(0).await;
    store.close().await.unwrap();
    disk.set_capacity(u64::MAX);
    let store = open(&disk, &small(&hand));
    assert_eq!(store.opened().losses(), 0);
    for seed in 0..200 {
        let bytes = random(seed, if seed % 4 == 0 { 3000 } else { 100 });
        assert_eq!(store.get(&anabranch_content::Address::of(&bytes)).await.unwrap().unwrap(), bytes);
    }
}
