//! Cleaning the log, whatever else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_content::{Address, Class, Collect, Config, Context, Cost, Error, NewMemo, Scope, Store};
use anabranch_testkit::{Crash, CrashDisk};

use super::hooked::{Call, HookedDisk};
use super::{open, small};
use crate::crash::world::random;
use crate::kit::{description, put_derivation};
use crate::store::Hand;

/// Everything that nothing holds goes, and is forgotten.
async fn clear(store: &Store, hand: &Hand) {
    store.collect(Collect { grace: Duration::ZERO, ..Collect::default() }).await.unwrap();
    hand.forward(Duration::from_secs(1));
    store.clean().await.unwrap();
    store.clean().await.unwrap();
}

#[tokio::test]
async fn a_log_that_was_cleaned_away_goes_on_behind_what_the_index_covers() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let config = Config { gone_kept: Duration::ZERO, ..small(&hand) };
    let store = open(&disk, &config);
    store.put(random(1, 100), Class::Acknowledged).await.unwrap();
    clear(&store, &hand).await;
    store.close().await.unwrap();
    let segments = disk.files().into_iter().filter(|(path, _)| path.starts_with("log")).count();
    assert_eq!(segments, 0);
    let store = open(&disk, &config);
    assert_eq!(store.opened().rebuilt, None);
    let address = store.put(random(2, 100), Class::Acknowledged).await.unwrap().address;
    let found = disk.crash(1, Crash::Total);
    drop(store);
    let store = open(&found, &config);
    assert_eq!(store.get(&address).await.unwrap(), Some(random(2, 100)));
}

#[tokio::test]
async fn an_index_outlives_segments_that_held_nothing() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &small(&hand));
    let address = Address::of(b"?");
    store.pin(&address).await.unwrap();
    store.unpin(&address).await.unwrap();
    store.clean().await.unwrap();
    store.close().await.unwrap();
    let store = open(&disk, &small(&hand));
    assert_eq!(store.opened().rebuilt, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promise_made_while_its_record_moves_is_kept() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    for round in 0..20 {
        let store = open(&disk.snapshot(), &Config { segment_bytes: 64 << 10, ..small(&hand) });
        let blobs: Vec<_> = (0..200).map(|seed| random(round * 1000 + seed, 20)).collect();
        for blob in &blobs {
            store.put(blob.clone(), Class::Derivable).await.unwrap();
        }
        let promises = blobs.iter().map(|blob| store.put(blob.clone(), Class::Acknowledged));
        let promises = futures_util::future::join_all(promises);
        let (cleaned, promised) = tokio::join!(store.clean(), promises);
        cleaned.unwrap();
        for promised in promised {
            let address = promised.unwrap().address;
            assert_eq!(store.status(&address).await.unwrap().blob, Some((20, Class::Acknowledged)));
        }
    }
}

#[tokio::test]
async fn a_memo_keeps_its_promise_when_it_is_remembered_again() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let store = open(&disk, &small(&hand));
    let output = store.put(random(1, 10), Class::Acknowledged).await.unwrap().address;
    store.pin(&output).await.unwrap();
    let derivation = put_derivation(&store, Context("tests"), description("one", &[])).await.unwrap();
    let made = NewMemo { derivation, output, size: 10, cost: Cost::default(), inputs: &[] };
    store.remember(made, Class::Acknowledged).await.unwrap();
    hand.forward(Duration::from_secs(1000));
    store.remember(made, Class::Derivable).await.unwrap();
    hand.forward(Duration::from_secs(1000));
    store.collect(Collect { scope: Scope::Derivable, ..Collect::default() }).await.unwrap();
    assert!(store.recall(&derivation).await.unwrap().is_some());
}

#[tokio::test]
async fn what_one_removal_removes_may_be_more_than_a_record_takes() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let config = Config { segment_bytes: 1 << 30, recent_bytes: 16 << 20, ..small(&hand) };
    let store = open(&disk, &config);
    let output = store.put(random(1, 10), Class::Acknowledged).await.unwrap().address;
    let inputs = vec![output; 400_000];
    let derivations: Vec<Address> = (0..3u8).map(|number| Address::of(&[number])).collect();
    for derivation in &derivations {
        let made =
            NewMemo { derivation: *derivation, output, size: 10, cost: Cost::default(), inputs: &inputs };
        store.remember(made, Class::Derivable).await.unwrap();
    }
    let twice: Vec<Address> = derivations.iter().chain(&derivations).copied().collect();
    assert_eq!(store.invalidate(&twice).await.unwrap(), 3);
    drop(store);
    let found = disk.crash(1, Crash::Total);
    for (path, _) in found.files().into_iter().filter(|(path, _)| path.starts_with("index")) {
        found.remove_file(path);
    }
    let store = open(&found, &config);
    assert_eq!(store.opened().unreadable, []);
    assert_eq!(store.recall_many(&derivations).await.unwrap(), [None, None, None]);
}

#[tokio::test]
async fn a_segment_that_was_removed_stays_removed() {
    for seed in 0..40 {
        let (disk, hand) = (CrashDisk::new(1), Hand::default());
        let config = Config { gone_kept: Duration::ZERO, ..small(&hand) };
        let store = open(&disk, &config);
        let address = Address::of(b"?");
        store.pin(&address).await.unwrap();
        store.clean().await.unwrap();
        store.unpin(&address).await.unwrap();
        store.clean().await.unwrap();
        drop(store);
        let found = disk.crash(seed, Crash::Chaos);
        for (path, _) in found.files().into_iter().filter(|(path, _)| path.starts_with("index")) {
            found.remove_file(path);
        }
        let store = Arc::new(open(&found, &config));
        assert_eq!(store.pins(None, 1).await.unwrap(), [], "seed {seed}");
    }
}

#[tokio::test]
async fn a_segment_that_the_index_covers_is_left_as_it_is() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let blind = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&blind);
    let hooked = HookedDisk::new(&disk, move |call, path| {
        let refused = call == Call::Read && path.starts_with("log") && hook.load(Ordering::Relaxed);
        if refused { Err(std::io::Error::other("this read failed")) } else { Ok(()) }
    });
    let store = Store::open_on(Arc::new(hooked), small(&hand)).unwrap();
    let mut blobs = Vec::new();
    for seed in 0..3 {
        blobs.push(store.put(random(seed, 50), Class::Acknowledged).await.unwrap().address);
    }
    // The segment is closed, and then cannot be cleaned.
    blind.store(true, Ordering::Relaxed);
    store.clean().await.unwrap_err();
    blind.store(false, Ordering::Relaxed);
    store.close().await.unwrap();
    disk.remove_file("closed");
    let segment = disk.bytes("log/00000001.log").unwrap();
    let at = segment.windows(50).position(|window| window == random(0, 50)).unwrap();
    disk.flip("log/00000001.log", at as u64, 1);
    let store = open(&disk, &small(&hand));
    assert!(matches!(store.get(&blobs[0]).await, Err(Error::Corrupt { .. })));
    for (blob, seed) in blobs.iter().zip(0..).skip(1) {
        assert_eq!(store.get(blob).await.unwrap(), Some(random(seed, 50)));
    }
}

#[tokio::test]
async fn an_empty_segment_is_a_crash_at_the_end_and_damage_before_it() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let config = Config { recent_bytes: 1 << 20, ..small(&hand) };
    // Power failed when a segment had its name and nothing else.
    open(&disk, &config).close().await.unwrap();
    let disk = disk.crash(1, Crash::Kill);
    disk.remove_file("closed");
    disk.put("log/00000001.log", Vec::new());
    let store = open(&disk, &config);
    assert_eq!(store.opened().unreadable, []);
    store.put(random(1, 50), Class::Acknowledged).await.unwrap();
    let died = disk.crash(1, Crash::Kill);
    let store = open(&died, &config);
    assert_eq!((&store.opened().unreadable[..], store.stats().blobs), (&[][..], 1));
    store.put(random(2, 50), Class::Acknowledged).await.unwrap();
    let died = died.crash(1, Crash::Kill);
    let last = died.files().into_iter().map(|(path, _)| path).filter(|path| path.starts_with("log")).max();
    assert_eq!(last.unwrap().to_str(), Some("log/00000003.log"));
    died.truncate("log/00000002.log", 0);
    let store = open(&died, &config);
    let [lost] = &store.opened().unreadable[..] else { panic!("{:?}", store.opened()) };
    assert_eq!((&lost.file[..], lost.torn, store.stats().blobs), ("log/00000002.log", false, 1));
}
