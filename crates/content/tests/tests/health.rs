//! The health of a store: losses and damage since it was opened.

use std::path::PathBuf;

use anabranch_content::{Class, Config, Error, Health};
use anabranch_testkit::{Crash, CrashDisk};

use crate::crash::world::random;
use crate::faults::open;

/// Flips a bit in the middle of some bytes, wherever they are on a disk.
fn damage(disk: &CrashDisk, bytes: &[u8]) {
    let find = |path: PathBuf| {
        let at = disk.bytes(&path)?.windows(bytes.len()).position(|window| window == bytes)?;
        Some((path, at))
    };
    let (path, at) = disk.files().into_iter().find_map(|(path, _)| find(path)).unwrap();
    disk.flip(&path, (at + bytes.len() / 2) as u64, 1);
}

#[tokio::test]
async fn only_acknowledged_data_counts_as_lost() {
    let (disk, config) = (CrashDisk::new(1), Config { packed_most: 1000, ..Config::default() });
    let store = open(&disk, &config);
    let mut put = Vec::new();
    for (seed, len, class) in [
        (1, 300, Class::Acknowledged),
        (2, 3000, Class::Acknowledged),
        (3, 300, Class::Derivable),
        (4, 3000, Class::Derivable),
    ] {
        put.push((store.put(random(seed, len), class).await.unwrap().address, random(seed, len), class));
    }
    assert!(store.stats().health.is_fine());
    store.close().await.unwrap();

    let store = open(&disk, &config);
    let (mut lost, mut damaged) = (0, 0);
    for (address, bytes, class) in put {
        damage(&disk, &bytes);
        assert!(matches!(store.get(&address).await, Err(Error::Corrupt { .. })));
        damaged += 1;
        lost += u64::from(class == Class::Acknowledged);
        let health = store.stats().health;
        assert_eq!((health.lost, health.damaged, health.is_fine()), (lost, damaged, false));
        assert_eq!(store.get(&address).await.unwrap(), None, "it is counted once");
    }
    assert_eq!(store.stats().health.damaged, 4);
    store.close().await.unwrap();
    assert_eq!(open(&disk, &config).stats().health, Health::default(), "what was told is not told again");
}

#[tokio::test]
async fn an_unreadable_stretch_of_the_log_is_a_loss() {
    let (disk, config) = (CrashDisk::new(1), Config::default());
    let store = open(&disk, &config);
    for seed in 0..5 {
        store.put(random(seed, 300), Class::Acknowledged).await.unwrap();
    }
    let whole = disk.crash(1, Crash::Kill);
    let torn = disk.crash(1, Crash::Kill);
    drop(store);
    damage(&torn, &random(2, 300));
    let store = open(&torn, &config);
    assert_eq!((store.opened().losses(), store.stats().health.lost), (1, 1), "{}", store.opened());
    assert_eq!(store.stats().blobs, 4);
    let store = open(&whole, &config);
    assert!(store.stats().health.is_fine(), "a crash alone loses nothing: {}", store.opened());
}
