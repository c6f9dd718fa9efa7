//! A disk that is full.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_content::{Class, Error, Store};
use anabranch_testkit::{Crash, CrashDisk};

use super::hooked::{Call, Hooked};
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
    let hooked = Hooked::new(&disk, move |call, path| {
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
