//! The names that an import sets: however the import ends, dropping it drops them.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Class, Collect, Config, Error, Import, Store};
use anabranch_testkit::{Crash, CrashDisk, Rng};
use futures_util::FutureExt as _;

use crate::archive::{exported, whole_with_root};
use crate::crash::driver::small;
use crate::store::Hand;

/// An archive of one blob under this many names.
async fn named(count: usize) -> Vec<u8> {
    let store = Store::in_memory(Config::default()).unwrap();
    let address = store.put("named", Class::Acknowledged).await.unwrap().address;
    for number in 0..count {
        store.name(&format!("name {number:04}"), Some(address)).await.unwrap();
    }
    exported(&store, &[address]).await
}

async fn import(store: &Store, archive: &[u8]) -> Result<(), Error> {
    store.import(Cursor::new(archive.to_vec()), Import::default()).await.map(|_| ())
}

async fn drop_imports(store: &Store) {
    for record in store.imports().await.unwrap() {
        store.drop_import(&record.id).await.unwrap();
    }
}

/// Waits until an import sets its names.
async fn until_names_are_set(store: &Store) {
    while store.named("name 0000").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
}

/// Drops all imports: nothing stays that came with them.
async fn check_dropped(store: &Store) {
    drop_imports(store).await;
    assert_eq!(store.names().await.unwrap(), []);
    store.collect(Collect { grace: Duration::ZERO, ..Collect::default() }).await.unwrap();
    assert_eq!((store.stats().blobs, store.stats().names), (0, 0));
}

#[tokio::test]
async fn an_import_that_finds_no_room_for_all_its_names_can_be_dropped_with_the_others() {
    let config = Config { quota_bytes: Some(100_000), ..Config::default() };
    let store = Store::in_memory(config).unwrap();
    let refused = import(&store, &named(1000).await).await;
    assert!(matches!(refused, Err(Error::Quota { .. })), "{refused:?}");
    let set = store.names().await.unwrap().len();
    assert!(set > 0 && set < 1000, "{set} names were set");
    check_dropped(&store).await;
}

#[tokio::test]
async fn an_import_whose_future_is_dropped_can_be_dropped_with_its_names() {
    let store = Store::in_memory(Config::default()).unwrap();
    let archive = named(1000).await;
    let mut running = Box::pin(import(&store, &archive));
    while store.named("name 0000").await.unwrap().is_none() {
        let _ = running.as_mut().now_or_never();
        tokio::task::yield_now().await;
    }
    drop(running);
    check_dropped(&store).await;
}

#[tokio::test]
async fn an_import_that_is_dropped_while_it_sets_names_leaves_none() {
    let store = Store::in_memory(Config::default()).unwrap();
    let archive = named(1000).await;
    let (imported, ()) = tokio::join!(import(&store, &archive), async {
        until_names_are_set(&store).await;
        drop_imports(&store).await;
    });
    imported.unwrap();
    check_dropped(&store).await;
}

#[tokio::test]
async fn the_same_archive_imported_twice_at_once_can_be_dropped_with_its_names() {
    let archive = named(20).await;
    for _ in 0..50 {
        let store = Store::in_memory(Config::default()).unwrap();
        let (one, other) = tokio::join!(import(&store, &archive), import(&store, &archive));
        one.and(other).unwrap();
        check_dropped(&store).await;
    }
}

/// A process that dies at any moment of an import, and one that finds what it left.
#[tokio::test]
async fn an_import_that_a_crash_ends_can_be_dropped_with_its_names() {
    let (archive, mut rng, mut left) = (named(5).await, Rng::new(21), 0);
    for call in 1.. {
        let disk = CrashDisk::new(rng.bits());
        disk.fail_from(call);
        let Ok(store) = Store::open_on(Arc::new(disk.clone()), small(&Hand::default())) else { continue };
        let imported = import(&store, &archive).await;
        for crash in [Crash::Kill, Crash::Total, Crash::Power, Crash::Chaos] {
            let crashed = Arc::new(disk.crash(rng.bits(), crash));
            let store = Store::open_on(crashed, small(&Hand::default())).unwrap();
            let names = store.names().await.unwrap().len();
            assert!(imported.is_err() || names == 5, "call {call}, {crash:?}");
            left += usize::from(imported.is_err() && names > 0);
            drop_imports(&store).await;
            assert_eq!(store.names().await.unwrap(), [], "call {call}, {crash:?}");
        }
        if imported.is_ok() {
            break;
        }
    }
    assert!(left > 0, "no crash left a name");
}

#[tokio::test]
async fn names_are_set_and_dropped_many_at_a_time() {
    let (disk, archive) = (CrashDisk::new(1), named(1000).await);
    let store = Store::open_on(Arc::new(disk.clone()), Config::default()).unwrap();
    disk.clear_call_log();
    import(&store, &archive).await.unwrap();
    assert_eq!(store.names_after("", 2000).await.unwrap().len(), 1000);
    drop_imports(&store).await;
    let syncs = disk.counts().syncs;
    assert!(syncs < 50, "{syncs} syncs");
    assert_eq!(store.names_after("", 2000).await.unwrap(), []);
    check_dropped(&store).await;
}

/// The import's own change is dropped, not one that somebody else made to the same address.
#[tokio::test]
async fn a_name_that_was_set_again_to_the_same_address_stays() {
    let hand = Hand::default();
    let store = Store::in_memory(hand.config()).unwrap();
    let (archive, second) = whole_with_root().await;
    import(&store, &archive).await.unwrap();
    hand.forward(Duration::from_secs(1));
    store.name("second", None).await.unwrap();
    store.name("second", Some(second)).await.unwrap();
    drop_imports(&store).await;
    assert_eq!(store.named("second").await.unwrap(), Some(second));
}

#[tokio::test]
async fn an_archive_with_a_name_twice_is_refused() {
    use crate::archive::records::{NAME, records, seal};

    let mut archive = named(2).await;
    let names: Vec<_> = records(&archive).into_iter().filter(|it| it.kind == NAME).collect();
    let (first, second) = (names[0].body.clone(), names[1].body.clone());
    let name = archive[first].to_vec();
    archive[second].copy_from_slice(&name);
    seal(&mut archive);
    let store = Store::in_memory(Config::default()).unwrap();
    let refused = import(&store, &archive).await.unwrap_err().to_string();
    assert!(refused.contains("a name that is there twice"), "{refused}");
}
