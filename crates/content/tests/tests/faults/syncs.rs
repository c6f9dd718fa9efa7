//! Syncs that fail.

use anabranch_content::{Class, Error};
use anabranch_testkit::{Crash, CrashDisk};

use super::{open, small};
use crate::crash::boundaries::work;
use crate::crash::driver::Driver;
use crate::crash::world::random;
use crate::store::Hand;

#[tokio::test]
async fn after_a_failed_sync_nothing_is_written_until_the_store_is_opened_again() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &small(&hand));
    let safe = store.put(random(1, 100), Class::Acknowledged).await.unwrap().address;
    disk.fail_sync(disk.counts().syncs + 1);
    let failed = store.put(random(2, 100), Class::Acknowledged).await;
    assert!(matches!(failed, Err(Error::Disk { .. })), "{failed:?}");
    for class in [Class::Acknowledged, Class::Derivable] {
        for len in [100, 1000] {
            let refused = store.put(random(3, len), class).await;
            assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
        }
    }
    assert!(matches!(store.pin(&safe).await, Err(Error::Broken(_))));
    assert_eq!(store.get(&safe).await.unwrap(), Some(random(1, 100)));
    assert!(matches!(store.close().await, Err(Error::Broken(_))));
    let found = disk.crash(1, Crash::Total);
    let store = open(&found, &small(&hand));
    assert_eq!(store.get(&safe).await.unwrap(), Some(random(1, 100)));
    let again = store.put(random(2, 100), Class::Acknowledged).await.unwrap();
    assert!(again.new);
    store.close().await.unwrap();
}

#[tokio::test]
async fn any_sync_may_fail() {
    let mut driver = Driver::new(CrashDisk::new(0));
    work(&mut driver).await.unwrap();
    let syncs = driver.disk.counts().syncs;
    for sync in 1..=syncs {
        let mut driver = Driver::new(CrashDisk::new(sync));
        driver.disk.fail_sync(sync);
        // What fails is in the model.
        let _ = work(&mut driver).await;
        driver.stop();
        for crash in [Crash::Kill, Crash::Total] {
            println!("sync {sync} {crash:?}");
            driver.crashed(sync, crash).recover(crash).await;
        }
    }
}

#[tokio::test]
async fn what_a_failed_sync_left_in_memory_is_not_taken_for_durable() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &small(&hand));
    disk.fail_sync(disk.counts().syncs + 1);
    store.put(random(2, 100), Class::Acknowledged).await.unwrap_err();
    drop(store);
    // The process ends, the system does not.
    let found = disk.crash(1, Crash::Kill);
    let store = open(&found, &small(&hand));
    let address = store.put(random(2, 100), Class::Acknowledged).await.unwrap().address;
    drop(store);
    let found = found.crash(1, Crash::Total);
    let store = open(&found, &small(&hand));
    assert_eq!(store.get(&address).await.unwrap(), Some(random(2, 100)));
}
