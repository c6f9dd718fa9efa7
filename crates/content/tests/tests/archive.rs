//! Archives that were changed by somebody who knows how to make a checksum.

mod imports;
pub(crate) mod records;

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use anabranch_content::{Address, Class, Config, Context, Cost, Error, Import, NewMemo, Store};
use anabranch_testkit::Rng;

use crate::kit::{description, put_derivation};
use records::{DERIVATION, FRONT, MEMO, OLD_DERIVATION, check, records, seal};

const CONTEXT: Context<'static> = Context("anabranch tests 2026 archives");

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) async fn exported(store: &Store, addresses: &[Address]) -> Vec<u8> {
    let sink = Sink::default();
    store.export(addresses, sink.clone()).await.unwrap();
    std::mem::take(&mut *sink.0.lock().unwrap())
}

/// A derivation over two blobs, one in a file, that came to a third; and one that reads it.
async fn whole() -> Vec<u8> {
    whole_with_root().await.0
}

pub(crate) async fn whole_with_root() -> (Vec<u8>, Address) {
    let store = Store::in_memory(Config { packed_most: 100, ..Config::default() }).unwrap();
    let mut inputs = Vec::new();
    for len in [40, 300] {
        inputs.push(store.put(vec![7; len], Class::Acknowledged).await.unwrap().address);
    }
    let derivation = put_derivation(&store, CONTEXT, description("first", &inputs)).await.unwrap();
    let output = store.put("output", Class::Derivable).await.unwrap().address;
    let made = NewMemo { derivation, output, size: 6, cost: Cost::default(), inputs: &inputs };
    store.remember(made, Class::Acknowledged).await.unwrap();
    let second = put_derivation(&store, CONTEXT, description("second", &[derivation])).await.unwrap();
    store.name("second", Some(second)).await.unwrap();
    (exported(&store, &[second]).await, second)
}

/// Imports an archive with its checksums made right, with and without trust: refused, or taken in and what its
/// addresses say.
async fn import(mut archive: Vec<u8>) -> Result<(), Error> {
    seal(&mut archive);
    let mut outcome = Ok(());
    for trust_memos in [false, true] {
        let store = Store::in_memory(Config { cache_bytes: 0, ..Config::default() }).unwrap();
        let terms = Import { trust_memos, ..Import::default() };
        outcome = match store.import(Cursor::new(archive.clone()), terms).await {
            Ok(_) => {
                check(&store, &archive, trust_memos).await;
                Ok(())
            }
            Err(error @ Error::Archive { .. }) => Err(error),
            Err(other) => panic!("{other}"),
        };
    }
    outcome
}

#[tokio::test]
async fn an_archive_as_it_was_written_is_taken_in() {
    let archive = whole().await;
    assert!(archive.starts_with(FRONT));
    assert_eq!(records(&archive).iter().map(|it| it.kind).collect::<Vec<_>>(), [10, 10, 1, 5, 1, 2, 8, 8]);
    let mut sealed = archive.clone();
    seal(&mut sealed);
    assert!(sealed == archive, "these are not the checksums of an archive");
    import(archive).await.unwrap();
}

/// What a derivation reads is in the bytes that its address is of, not in what an archive says beside them.
#[tokio::test]
async fn an_archive_cannot_say_what_a_derivation_reads() {
    let archive = whole().await;
    for record in records(&archive).into_iter().filter(|it| it.kind == DERIVATION) {
        let mut archive = archive.clone();
        let body = archive[record.body.clone()].to_vec();
        // A record of format 1: behind the address and the context is a list of inputs, here a forged one.
        let (address, rest) = body.split_at(32);
        let (context, bytes) = rest[1..].split_at(4 + CONTEXT.0.len());
        let old = [address, context, &1u32.to_le_bytes(), Address::of(b"another").as_bytes(), bytes].concat();
        let by = old.len() as i32 - body.len() as i32;
        archive.splice(record.body.clone(), old);
        archive[record.body.start - 23] = OLD_DERIVATION;
        grow(&mut archive, record.body.start, by);
        import(archive).await.unwrap();
    }
}

/// An alias is believed only if somebody can say that it is right.
#[tokio::test]
async fn an_archive_cannot_lead_an_alias_elsewhere() {
    let archive = whole().await;
    for record in records(&archive).into_iter().filter(|it| it.kind == DERIVATION) {
        let mut archive = archive.clone();
        let at = record.body.start + 32;
        archive.splice(at..=at, [&[1][..], Address::of(b"another").as_bytes()].concat());
        grow(&mut archive, record.body.start, 32);
        let refused = import(archive).await.unwrap_err().to_string();
        assert!(refused.contains("an alias that is not the derivation's"), "{refused}");
    }
}

#[tokio::test]
async fn an_archive_cannot_bring_a_memo_without_its_output() {
    let mut archive = whole().await;
    let memo = records(&archive).into_iter().find(|it| it.kind == MEMO).unwrap();
    let output = memo.body.start + 32;
    archive[output..output + 32].copy_from_slice(Address::of(b"another").as_bytes());
    let refused = import(archive).await.unwrap_err().to_string();
    assert!(refused.contains("a memo whose output is missing"), "{refused}");
}

/// Changes the body of a record; its length stays or follows.
fn mutate(archive: &mut Vec<u8>, rng: &mut Rng) {
    let found = records(archive);
    let addresses: Vec<[u8; 32]> =
        found.iter().filter_map(|it| archive[it.body.clone()].first_chunk().copied()).collect();
    let body = rng.choose(&found).body.clone();
    let at = rng.within(body.start as u64..body.end as u64) as usize;
    match rng.within(0..4) {
        0 => archive[at] ^= 1 << rng.within(0..8),
        1 if at + 32 <= body.end => archive[at..at + 32].copy_from_slice(&rng.choose(&addresses)[..]),
        2 if at + 32 <= body.end => {
            archive.drain(at..at + 32);
            grow(archive, body.start, -32);
        }
        _ => {
            archive.splice(at..at, *rng.choose(&addresses));
            grow(archive, body.start, 32);
        }
    }
}

fn grow(archive: &mut [u8], body: usize, by: i32) {
    let len = &mut archive[body - 20..body - 16];
    let longer = i32::from_le_bytes(len.as_ref().try_into().unwrap()) + by;
    len.copy_from_slice(&longer.to_le_bytes());
}

#[tokio::test]
async fn archives_changed_under_right_checksums_are_refused_or_right() {
    let whole = whole().await;
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..300 {
        println!("seed {seed}");
        let (mut archive, mut rng) = (whole.clone(), Rng::new(seed));
        for _ in 0..rng.within(1..3) {
            mutate(&mut archive, &mut rng);
        }
        match import(archive).await {
            Ok(()) => taken += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(taken > 5 && refused > 100, "{taken} taken in, {refused} refused");
}
