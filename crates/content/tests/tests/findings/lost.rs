//! A log that lost something, in a store that was closed in order: told, and no more lost than need be.

use std::path::PathBuf;

use anabranch_content::{Address, Class, Cost, NewMemo, OpenReport, Store};
use anabranch_testkit::CrashDisk;

use super::CONTEXT;
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::open;
use crate::kit::{description, put_derivation};
use crate::store::Hand;

/// How many things opening found to be lost.
fn lost(opened: &OpenReport) -> u64 {
    let text = format!("{opened:?}");
    let count = text.split_once(" lost: ").map(|(_, rest)| rest.split([',', ' ']).next().unwrap_or_default());
    count.map_or(0, |count| count.parse().expect("`lost` is a number"))
}

#[derive(Default)]
struct RoundAddresses {
    packed: Vec<Address>,
    large: Vec<Address>,
    described: Vec<Address>,
    derivations: Vec<Address>,
}

const ROUNDS: u64 = 12;

/// A few of everything, over several segments, closed in order.
async fn filled() -> (CrashDisk, RoundAddresses) {
    let disk = CrashDisk::new(1);
    let store = open(&disk, &small(&Hand::default()));
    let mut filled = RoundAddresses::default();
    for round in 0..ROUNDS {
        let packed = store.put(random(round, 500), Class::Acknowledged).await.unwrap().address;
        let large = store.put(random(100 + round, 2000), Class::Acknowledged).await.unwrap().address;
        let described = description(random(200 + round, 300), &[packed]);
        filled.described.push(put_derivation(&store, CONTEXT, described).await.unwrap());
        let derivation = Address::of(&round.to_le_bytes());
        let made = NewMemo { derivation, output: large, size: 2000, cost: Cost::default(), inputs: &[] };
        store.remember(made, Class::Acknowledged).await.unwrap();
        store.pin(&derivation).await.unwrap();
        store.name(&format!("name {round}"), Some(packed)).await.unwrap();
        store.name("newest", Some(packed)).await.unwrap();
        filled.packed.push(packed);
        filled.large.push(large);
        filled.derivations.push(derivation);
    }
    store.close().await.unwrap();
    (disk, filled)
}

fn segments(disk: &CrashDisk) -> Vec<(PathBuf, u64)> {
    disk.files().into_iter().filter(|(path, _)| path.starts_with("log")).collect()
}

/// Opens what is left, and looks.
async fn check(disk: &CrashDisk, filled: &RoundAddresses, what: &str) {
    let store = open(disk, &small(&Hand::default()));
    let opened = store.opened().clone();
    assert!(opened.clean, "{what}");
    let missing = stays(&store, filled, what).await;
    assert!(missing > 0, "{what}: nothing was lost");
    assert!(lost(&opened) > 0, "{what}: {missing} things are lost, and opening said {opened:?}");
    // It goes on with what there is, and has it the next time.
    store.put("later", Class::Acknowledged).await.unwrap();
    store.close().await.unwrap();
    let store = open(disk, &small(&Hand::default()));
    assert_eq!(stays(&store, filled, &format!("{what}, opened again")).await, missing, "{what}");
}

/// What the index alone knows is there. Says how much of the rest is missing.
async fn stays(store: &Store, filled: &RoundAddresses, what: &str) -> usize {
    let pins = store.pins(None, 100).await.unwrap();
    for (round, derivation) in filled.derivations.iter().enumerate() {
        assert!(pins.contains(derivation), "{what}: a pin is lost");
        let named = store.named(&format!("name {round}")).await.unwrap();
        assert_eq!(named, Some(filled.packed[round]), "{what}: a name is lost");
        let memo = store.recall(derivation).await.unwrap();
        assert_eq!(memo.map(|memo| memo.output), Some(filled.large[round]), "{what}: a memo is lost");
        let blob = store.get(&filled.large[round]).await.unwrap();
        assert!(blob.is_some(), "{what}: a blob in a file is lost");
    }
    let newest = store.named("newest").await.unwrap();
    assert_eq!(newest, filled.packed.last().copied(), "{what}: a name means what it meant before");
    let mut missing = 0;
    for address in &filled.packed {
        missing += usize::from(!matches!(store.get(address).await, Ok(Some(_))));
    }
    for address in &filled.described {
        missing += usize::from(!matches!(store.derivation(address).await, Ok(Some(_))));
    }
    missing
}

/// The last segment that holds a record.
fn last(disk: &CrashDisk) -> (PathBuf, u64) {
    segments(disk).into_iter().rfind(|(_, len)| *len > 1000).unwrap()
}

#[tokio::test]
async fn a_log_that_was_cut_off_is_told() {
    let (disk, filled) = filled().await;
    let (path, len) = last(&disk);
    for cut in [0, 20, len / 2] {
        let disk = disk.snapshot();
        disk.truncate(&path, cut);
        check(&disk, &filled, &format!("the last segment cut at {cut}")).await;
    }
}

#[tokio::test]
async fn a_log_whose_end_is_missing_is_told() {
    let (disk, filled) = filled().await;
    let from = segments(&disk).iter().position(|(path, _)| *path == last(&disk).0).unwrap();
    for (path, _) in segments(&disk).into_iter().skip(from) {
        disk.remove_file(path);
    }
    check(&disk, &filled, "the last segment removed").await;
}

#[tokio::test]
async fn a_log_that_is_missing_is_told() {
    let (disk, filled) = filled().await;
    for (path, _) in segments(&disk) {
        disk.remove_file(path);
    }
    check(&disk, &filled, "the log removed").await;
}

#[tokio::test]
async fn a_covered_segment_that_is_missing_is_told() {
    let (disk, filled) = filled().await;
    let segments = segments(&disk);
    assert!(segments.len() > 3, "{segments:?}");
    for (path, len) in &segments[..segments.len() - 1] {
        if *path == last(&disk).0 {
            continue;
        }
        let removed = disk.snapshot();
        removed.remove_file(path);
        check(&removed, &filled, &format!("{} removed", path.display())).await;
        let cut = disk.snapshot();
        cut.truncate(path, len / 2);
        check(&cut, &filled, &format!("{} cut at {}", path.display(), len / 2)).await;
    }
}
