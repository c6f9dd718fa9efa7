//! Bit rot in a record whose meaning the index still knows does not outlive the cleaning of the log.

use anabranch_content::{Address, Class, Cost, NewMemo, Store};
use anabranch_testkit::CrashDisk;

use super::{find, remove_index};
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::open;
use crate::store::Hand;

/// How long the header before a record's body is.
const HEADER: u64 = 24;

/// A kind of record whose row in the index says all that the record does.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Pin,
    Name,
    Memo,
    File,
}

struct FilledAddresses {
    pinned: Address,
    named: Address,
    derivation: Address,
    large: Address,
}

async fn fill(store: &Store) -> FilledAddresses {
    let pinned = Address::of(b"pinned");
    store.pin(&pinned).await.unwrap();
    let named = Address::of(b"named");
    store.name("a name", Some(named)).await.unwrap();
    let large = store.put(random(1, 3000), Class::Acknowledged).await.unwrap().address;
    let derivation = Address::of(b"derivation");
    let made = NewMemo { derivation, output: large, size: 3000, cost: Cost::default(), inputs: &[] };
    store.remember(made, Class::Acknowledged).await.unwrap();
    FilledAddresses { pinned, named, derivation, large }
}

async fn check(store: &Store, filled: &FilledAddresses, what: &str) {
    assert!(store.status(&filled.pinned).await.unwrap().pinned, "{what}: the pin is lost");
    assert_eq!(store.named("a name").await.unwrap(), Some(filled.named), "{what}: the name is lost");
    assert!(store.get(&filled.large).await.unwrap().is_some(), "{what}: the blob in a file is lost");
    let memo = store.recall(&filled.derivation).await.unwrap();
    assert_eq!(memo.map(|memo| memo.output), Some(filled.large), "{what}: the memo is lost");
}

/// Flips a bit of one record, in its header or its body; then the log is cleaned, and the index made anew.
async fn rot(kind: Kind, offset: u64) {
    let (disk, config) = (CrashDisk::new(1), small(&Hand::default()));
    let store = open(&disk, &config);
    let filled = fill(&store).await;
    store.close().await.unwrap();
    // Where the record's body begins.
    let body = match kind {
        Kind::Pin => find(&disk, "log", filled.pinned.as_bytes()).unwrap(),
        Kind::Name => find(&disk, "log", b"\x06\0\0\0a name").unwrap(),
        Kind::Memo => find(&disk, "log", filled.derivation.as_bytes()).unwrap(),
        Kind::File => {
            let record = [&filled.large.as_bytes()[..], &[0; 8], &3000u64.to_le_bytes()].concat();
            find(&disk, "log", &record).unwrap()
        }
    };
    disk.flip(&body.0, body.1 as u64 - HEADER + offset, 0x04);
    let what = format!("{kind:?}, bit flipped at {offset}");
    let store = open(&disk, &config);
    assert!(store.opened().clean && store.opened().rebuilt.is_none(), "{what}");
    check(&store, &filled, &what).await;
    store.clean().await.unwrap();
    check(&store, &filled, &format!("{what}, cleaned")).await;
    store.close().await.unwrap();
    remove_index(&disk);
    let store = open(&disk, &config);
    assert!(store.opened().rebuilt.is_some());
    check(&store, &filled, &format!("{what}, cleaned, index made anew")).await;
}

#[tokio::test]
async fn a_pin_whose_record_has_rotted_stays() {
    rot(Kind::Pin, 9).await;
    rot(Kind::Pin, HEADER + 3).await;
}

#[tokio::test]
async fn a_name_whose_record_has_rotted_stays() {
    rot(Kind::Name, 9).await;
    rot(Kind::Name, HEADER + 6).await;
}

#[tokio::test]
async fn a_memo_whose_record_has_rotted_stays() {
    rot(Kind::Memo, 9).await;
    rot(Kind::Memo, HEADER + 40).await;
}

#[tokio::test]
async fn a_file_whose_record_has_rotted_stays() {
    rot(Kind::File, 9).await;
    rot(Kind::File, HEADER + 3).await;
}
