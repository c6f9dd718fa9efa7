//! Damaged blobs: told once, kept aside, then missing, and welcome again.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_content::{
    Address, Class, Config, Context, Cost, Error, Event, NewMemo, RemovalReason, Scrub, ScrubReport, Store,
};
use anabranch_testkit::{Crash, CrashDisk};

use super::{open, small};
use crate::crash::world::{PACKED, random};
use crate::kit::{description, put_derivation};
use crate::store::Hand;

const FULL_SPEED: Scrub = Scrub { bytes_per_second: None };
const LENS: [usize; 4] = [50, 400, PACKED + 1, 3000];

/// A store with small and large blobs, a derivation that came to each, in several segments, closed.
async fn filled(config: &Config) -> (CrashDisk, Vec<(Address, Address)>) {
    let disk = CrashDisk::new(1);
    let store = open(&disk, config);
    let mut made = Vec::new();
    for (seed, len) in LENS.into_iter().enumerate() {
        let output = store.put(random(seed as u64, len), Class::Acknowledged).await.unwrap().address;
        let described = description(random(100 + seed as u64, 30), &[]);
        let derivation = put_derivation(&store, Context("tests"), described).await.unwrap();
        let came_to = NewMemo { derivation, output, size: len as u64, cost: Cost::default(), inputs: &[] };
        store.remember(came_to, Class::Acknowledged).await.unwrap();
        made.push((derivation, output));
        for more in 0..6 {
            store.put(random(1000 + seed as u64 * 10 + more, 500), Class::Acknowledged).await.unwrap();
        }
    }
    store.close().await.unwrap();
    (disk, made)
}

/// Where some bytes are on a disk.
fn place_of(disk: &CrashDisk, bytes: &[u8]) -> (PathBuf, u64) {
    let find = |path: PathBuf| {
        let at = disk.bytes(&path)?.windows(bytes.len()).position(|window| window == bytes)?;
        Some((path, at as u64))
    };
    disk.files().into_iter().find_map(|(path, _)| find(path)).unwrap()
}

fn is_in_quarantine(disk: &CrashDisk, address: &Address) -> bool {
    let name = Path::new("quarantine").join(address.to_string());
    disk.files().iter().any(|(path, _)| path.to_str().unwrap().starts_with(name.to_str().unwrap()))
}

#[tokio::test]
async fn a_damaged_blob_is_told_once_and_can_be_put_again() {
    let hand = Hand::default();
    let (disk, made) = filled(&small(&hand)).await;
    for (seed, len) in LENS.into_iter().enumerate() {
        let (bytes, disk) = (random(seed as u64, len), disk.snapshot());
        let (path, at) = place_of(&disk, &bytes);
        disk.flip(&path, at + len as u64 / 2, 0x10);
        let told: Arc<Mutex<Vec<Address>>> = Arc::default();
        let tell = Arc::clone(&told);
        let listener = move |event: &Event| {
            if let Event::Quarantined { address, .. } = event {
                tell.lock().unwrap().push(*address);
            }
        };
        let config = Config { listener: Some(Arc::new(listener)), ..small(&hand) };
        let store = open(&disk, &config);
        let (derivation, address) = made[seed];
        let error = store.get(&address).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { address: of, .. } if of == address), "{error:?}");
        assert!(is_in_quarantine(&disk, &address));
        // It is so for those who come later, too.
        drop(store);
        let store = open(&disk.crash(1, Crash::Total), &config);
        assert_eq!(store.get(&address).await.unwrap(), None);
        assert_eq!(store.status(&address).await.unwrap().gone.unwrap().why, RemovalReason::Damaged);
        assert_eq!(store.recall(&derivation).await.unwrap(), None);
        assert_eq!(store.status(&derivation).await.unwrap().gone.unwrap().why, RemovalReason::Damaged);
        for (other, (derivation, output)) in made.iter().enumerate().filter(|(other, _)| *other != seed) {
            assert!(store.recall(derivation).await.unwrap().is_some());
            assert_eq!(store.get(output).await.unwrap(), Some(random(other as u64, LENS[other])));
        }
        assert!(store.put(bytes.clone(), Class::Acknowledged).await.unwrap().new);
        assert_eq!(store.get(&address).await.unwrap(), Some(bytes));
        assert_eq!(store.status(&address).await.unwrap().gone, None);
        assert_eq!(*told.lock().unwrap(), [address]);
    }
}

/// The record that ends with some bytes about an address.
fn record_of(disk: &CrashDisk, address: &Address, bytes: &[u8]) -> (PathBuf, Range<usize>) {
    const HEADER: usize = 24;
    let (path, end) = place_of(disk, bytes);
    let is_address = |window: &[u8]| window == address.as_bytes();
    let body = disk.bytes(&path).unwrap().windows(32).position(is_address).unwrap();
    (path, body - HEADER..end as usize + bytes.len())
}

#[tokio::test]
async fn a_whole_record_in_the_place_of_another_is_noticed() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &small(&hand));
    let (mut blobs, mut derivations) = (Vec::new(), Vec::new());
    for seed in 0..2 {
        blobs.push(store.put(random(seed, 50), Class::Acknowledged).await.unwrap().address);
        let described = description(random(10 + seed, 50), &[]);
        derivations.push(put_derivation(&store, Context("tests"), described).await.unwrap());
    }
    store.close().await.unwrap();
    for (addresses, first) in [(&blobs, 0), (&derivations, 10)] {
        let [one, other] =
            [0, 1].map(|number| record_of(&disk, &addresses[number], &random(first + number as u64, 50)));
        let mut bytes = disk.bytes(&one.0).unwrap();
        let (before, after) = (bytes[one.1.clone()].to_vec(), bytes[other.1.clone()].to_vec());
        bytes[one.1].copy_from_slice(&after);
        bytes[other.1].copy_from_slice(&before);
        disk.put(&one.0, bytes);
    }
    let store = open(&disk, &small(&hand));
    for (blob, derivation) in blobs.iter().zip(&derivations) {
        assert!(matches!(store.get(blob).await, Err(Error::Corrupt { .. })));
        assert!(matches!(store.derivation(derivation).await, Err(Error::Corrupt { .. })));
    }
}

async fn scrub(disk: &CrashDisk, config: &Config) -> (ScrubReport, Store) {
    let store = open(disk, config);
    let scrubbed = store.scrub(FULL_SPEED).await.unwrap();
    (scrubbed, store)
}

#[tokio::test]
async fn a_scrub_finds_all_that_is_damaged() {
    let hand = Hand::default();
    let (disk, made) = filled(&small(&hand)).await;
    let (clean, _) = scrub(&disk.snapshot(), &small(&hand)).await;
    assert_eq!((clean.damaged.len(), clean.unreadable.len(), clean.files), (0, 0, 2));
    for (seed, len) in LENS.into_iter().enumerate() {
        let (path, at) = place_of(&disk, &random(seed as u64, len));
        disk.flip(&path, at + 7, 1);
        let (path, at) = place_of(&disk, &random(100 + seed as u64, 30));
        disk.flip(&path, at + 7, 1);
    }
    let (found, store) = scrub(&disk, &small(&hand)).await;
    let all: BTreeSet<Address> = made.iter().flat_map(|(one, other)| [*one, *other]).collect();
    assert_eq!(found.damaged.into_iter().collect::<BTreeSet<_>>(), all);
    assert_eq!(found.index, None);
    for (derivation, output) in made {
        assert_eq!(store.get(&output).await.unwrap(), None);
        assert_eq!(store.derivation(&derivation).await.unwrap(), None);
    }
    let again = store.scrub(FULL_SPEED).await.unwrap();
    assert_eq!(again.damaged, []);
}

#[tokio::test]
async fn a_scrub_finds_what_was_cut_off_or_is_gone() {
    let hand = Hand::default();
    let (disk, made) = filled(&small(&hand)).await;
    for (path, len) in disk.files() {
        if !path.starts_with("log") && !path.starts_with("files") {
            continue;
        }
        for cut in [None, Some(0), Some(20), Some(len / 2), Some(len - 1)] {
            let disk = disk.snapshot();
            match cut {
                Some(cut) => disk.truncate(&path, cut),
                None => disk.remove_file(&path),
            }
            let (found, store) = scrub(&disk, &small(&hand)).await;
            for (derivation, output) in &made {
                let what = format!("{} cut at {cut:?}", path.display());
                let is_told = |address| found.damaged.contains(address) || store.opened().lost > 0;
                let lost = store.get(output).await.expect(&what).is_none();
                assert!(!lost || is_told(output), "{what}");
                let lost = store.derivation(derivation).await.expect(&what).is_none();
                assert!(!lost || is_told(derivation), "{what}");
            }
        }
    }
}
