//! What an operation costs, in calls to the disk.

use anabranch_content::{Class, Config, Store};
use anabranch_testkit::{CallCounts, Crash, CrashDisk};

use super::{open, small};
use crate::crash::world::{PACKED, random};
use crate::store::Hand;

/// The index stays in memory.
fn quiet(hand: &Hand) -> Config {
    Config { recent_bytes: 1 << 20, segment_bytes: 1 << 20, ..small(hand) }
}

#[tokio::test]
async fn what_is_there_is_not_written_again() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &quiet(&hand));
    let classes = [Class::Acknowledged, Class::Derivable];
    for len in [100, PACKED + 1] {
        assert!(store.put(random(1, len), Class::Acknowledged).await.unwrap().new);
    }
    disk.clear_call_log();
    for class in classes {
        assert!(!store.put(random(1, 100), class).await.unwrap().new);
    }
    // It is read and checked, and nothing else.
    assert_eq!(disk.counts(), CallCounts { reads: 2, ..CallCounts::default() });
    let before = disk.files();
    for class in classes {
        assert!(!store.put(random(1, PACKED + 1), class).await.unwrap().new);
    }
    // A large blob's address is known once it is written.
    let CallCounts { syncs, folder_syncs, renames, .. } = disk.counts();
    assert_eq!((syncs, folder_syncs, renames), (0, 0, 0));
    store.close().await.unwrap();
    let there =
        |path: &str| before.iter().filter(|(at, _)| at.starts_with(path)).cloned().collect::<Vec<_>>();
    for folder in ["log", "files", "incoming"] {
        let after: Vec<_> = disk.files().into_iter().filter(|(at, _)| at.starts_with(folder)).collect();
        assert_eq!(after, there(folder));
    }
}

#[tokio::test]
async fn what_is_derivable_waits_for_no_sync() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &quiet(&hand));
    let syncs = disk.counts().syncs;
    for len in [100, PACKED + 1] {
        store.put(random(1, len), Class::Derivable).await.unwrap();
    }
    assert_eq!(disk.counts().syncs, syncs);
}

#[tokio::test]
async fn what_is_acknowledged_waits_for_one_sync() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &quiet(&hand));
    store.put(random(1, 100), Class::Acknowledged).await.unwrap();
    disk.clear_call_log();
    store.put(random(2, 100), Class::Acknowledged).await.unwrap();
    let CallCounts { writes, syncs, folder_syncs, .. } = disk.counts();
    assert_eq!((writes, syncs, folder_syncs), (1, 1, 0), "{:?}", disk.call_log());
    // The file, its name, its folder's name, and the log.
    disk.clear_call_log();
    store.put(random(2, PACKED + 1), Class::Acknowledged).await.unwrap();
    let CallCounts { writes, syncs, folder_syncs, renames, .. } = disk.counts();
    assert_eq!((writes, syncs, folder_syncs, renames), (2, 2, 2, 1), "{:?}", disk.call_log());
}

#[tokio::test]
async fn what_is_acknowledged_after_all_is_durable() {
    for len in [100, PACKED + 1] {
        let (disk, hand) = (CrashDisk::new(1), Hand::default());
        let store = open(&disk, &quiet(&hand));
        store.put(random(1, len), Class::Derivable).await.unwrap();
        let address = store.put(random(1, len), Class::Acknowledged).await.unwrap().address;
        let found = open(&disk.crash(1, Crash::Total), &quiet(&hand));
        assert_eq!(found.get(&address).await.unwrap(), Some(random(1, len)));
    }
}

#[tokio::test]
async fn what_is_brought_by_an_archive_is_durable_even_if_it_was_there() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let other = Store::in_memory(quiet(&hand)).unwrap();
    let store = open(&disk, &quiet(&hand));
    let mut addresses = Vec::new();
    for len in [100, PACKED + 1] {
        addresses.push(other.put(random(1, len), Class::Acknowledged).await.unwrap().address);
        store.put(random(1, len), Class::Derivable).await.unwrap();
    }
    let path = std::env::temp_dir().join(format!("anabranch-promised-{}", std::process::id()));
    other.export(&addresses, std::fs::File::create(&path).unwrap()).await.unwrap();
    store.import(std::fs::File::open(&path).unwrap(), anabranch_content::Import::default()).await.unwrap();
    std::fs::remove_file(path).unwrap();
    let found = open(&disk.crash(1, Crash::Total), &quiet(&hand));
    for address in addresses {
        assert!(found.get(&address).await.unwrap().is_some());
        assert_eq!(found.status(&address).await.unwrap().blob.unwrap().1, Class::Acknowledged);
    }
}
