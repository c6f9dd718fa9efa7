//! A store that was closed leaves its folder to the next owner, whatever handles are left.

use std::sync::Arc;

use anabranch_content::{Class, Config, Store, Writer};
use anabranch_testkit::CrashDisk;
use bytes::Bytes;

use super::gate::in_time;
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::store::Hand;

fn open(disk: &CrashDisk) -> Store {
    Store::open_on(Arc::new(disk.clone()), Config { cache_bytes: 0, ..small(&Hand::default()) }).unwrap()
}

/// The next owner puts a blob while `late` happens to a put of the one before.
async fn next_owner(late: impl AsyncFnOnce(Writer)) {
    let disk = CrashDisk::new(1);
    let store = open(&disk);
    let mut unfinished = store.writer(Class::Acknowledged);
    unfinished.write(random(1, 3000)).await.unwrap();
    in_time(store.close()).await.expect("it closes whatever is unfinished").unwrap();
    let next = open(&disk);
    let bytes: Bytes = random(2, 4000);
    let mut writer = next.writer(Class::Acknowledged);
    writer.write(bytes.clone()).await.unwrap();
    late(unfinished).await;
    let put = writer.finish().await.expect("nobody else writes to its folder");
    assert_eq!(next.get(&put.address).await.unwrap(), Some(bytes.clone()));
    next.close().await.unwrap();
    let again = open(&disk);
    assert_eq!(again.get(&put.address).await.unwrap(), Some(bytes));
    assert_eq!(again.stats().blobs, 1);
}

#[tokio::test]
async fn a_put_given_up_after_closing_does_not_hurt_the_next_owner() {
    next_owner(async |unfinished: Writer| drop(unfinished)).await;
}

#[tokio::test]
async fn a_put_finished_after_closing_does_not_hurt_the_next_owner() {
    next_owner(async |unfinished: Writer| {
        unfinished.finish().await.expect_err("its store is closed");
    })
    .await;
}

#[tokio::test]
async fn a_put_that_goes_on_after_closing_does_not_hurt_the_next_owner() {
    next_owner(async |mut unfinished: Writer| {
        // Whatever the answer.
        let _ = unfinished.write(random(3, 700_000)).await;
        unfinished.finish().await.expect_err("its store is closed");
    })
    .await;
}
