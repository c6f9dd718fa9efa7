//! A store as its users see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_content::{
    Address, Class, Collect, Config, Context, Cost, Disk, DryRun, Error, Memory, NewMemo, RemovalReason,
    Scrub, Store, Time,
};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::{description, put_derivation};

const CELLS: Context<'static> = Context("anabranch tests 2026 cells");

/// A clock that tests turn.
#[derive(Clone, Default)]
pub(crate) struct Hand(Arc<AtomicU64>);

impl Hand {
    pub(crate) fn forward(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn config(&self) -> Config {
        let hand = self.clone();
        Config { clock: Arc::new(move || Time(hand.0.load(Ordering::Relaxed))), ..Config::default() }
    }
}

fn bytes(seed: u64, len: usize) -> Bytes {
    let mut rng = Rng::new(seed);
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes.into()
}

async fn put(store: &Store, seed: u64, len: usize) -> Address {
    let bytes = bytes(seed, len);
    let put = store.put(bytes.clone(), Class::Acknowledged).await.unwrap();
    assert_eq!(put.address, Address::of(&bytes));
    put.address
}

async fn make(store: &Store, seed: u64, inputs: &[Address]) -> (Address, Address) {
    let described = description(bytes(seed, 40), inputs);
    let derivation = put_derivation(store, CELLS, described).await.unwrap();
    let output = store.put(bytes(seed + 1, 100), Class::Derivable).await.unwrap().address;
    let cost = Cost { cpu: Duration::from_millis(5), tokens: 7, micros: 9 };
    store.remember(NewMemo { derivation, output, size: 100, cost, inputs }, Class::Derivable).await.unwrap();
    (derivation, output)
}

#[tokio::test]
async fn what_is_put_is_there_after_closing_and_opening() {
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let sizes = [0, 1, 1000, 64 << 10, (64 << 10) + 1, 1 << 20, (1 << 20) + 1, 5 << 20];
    let store = Store::open_on(Arc::clone(&disk), Config::default()).unwrap();
    for (seed, &len) in sizes.iter().enumerate() {
        put(&store, seed as u64, len).await;
    }
    store.close().await.unwrap();
    let store = Store::open_on(disk, Config { cache_bytes: 0, ..Config::default() }).unwrap();
    assert!(store.opened().clean);
    assert_eq!(store.stats().blobs, sizes.len() as u64);
    for (seed, &len) in sizes.iter().enumerate() {
        let bytes = bytes(seed as u64, len);
        let address = Address::of(&bytes);
        assert_eq!(store.get(&address).await.unwrap(), Some(bytes.clone()), "{len}");
        assert_eq!(store.size(&address).await.unwrap(), Some(len as u64));
        let mut reader = store.read(&address, 0..u64::MAX).await.unwrap().unwrap();
        let mut read = Vec::new();
        while let Some(piece) = reader.next().await {
            read.extend_from_slice(&piece.unwrap());
        }
        assert_eq!(read, bytes);
        let range = (len / 3) as u64..(len / 2) as u64;
        let part = store.get_range(&address, range.clone()).await.unwrap().unwrap();
        assert_eq!(part, bytes.slice(range.start as usize..range.end as usize));
    }
    assert_eq!(store.get(&Address::of(b"nobody put this")).await.unwrap(), None);
}

#[tokio::test]
async fn memos_derivations_and_their_edges() {
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let store = Store::open_on(Arc::clone(&disk), Config::default()).unwrap();
    let input = put(&store, 1, 10).await;
    let (first, output) = make(&store, 10, &[input]).await;
    let (second, _) = make(&store, 20, &[input, first]).await;
    store.close().await.unwrap();
    let store = Store::open_on(disk, Config::default()).unwrap();
    let memo = store.recall(&first).await.unwrap().unwrap();
    assert_eq!((memo.output, memo.size, memo.cost.tokens), (output, 100, 7));
    let unknown = Address::of(b"?");
    let many = store.recall_many(&[second, unknown, first]).await.unwrap();
    assert_eq!(many.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(store.derivation(&first).await.unwrap().unwrap().inputs, [input]);
    let mut both = [first, second];
    both.sort();
    assert_eq!(store.dependents(&input, None, 10).await.unwrap(), both);
    assert_eq!(store.dependents(&input, Some(both[0]), 10).await.unwrap(), [both[1]]);
    assert_eq!(store.dependents(&first, None, 10).await.unwrap(), [second]);
    assert_eq!(store.invalidate(&[first, unknown]).await.unwrap(), 1);
    assert_eq!(store.recall(&first).await.unwrap(), None);
    assert_eq!(store.status(&first).await.unwrap().gone.unwrap().why, RemovalReason::Invalidated);
    assert_eq!(store.removal(&first).await.unwrap(), store.status(&first).await.unwrap().gone);
    assert_eq!(store.removal(&second).await.unwrap(), None);
    let missing = NewMemo { derivation: first, output: unknown, size: 0, cost: Cost::default(), inputs: &[] };
    assert!(matches!(store.remember(missing, Class::Derivable).await, Err(Error::Missing { .. })));
}

#[tokio::test]
async fn blobs_that_were_put_are_counted_apart_from_computed_ones() {
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let store = Store::open_on(Arc::clone(&disk), Config::default()).unwrap();
    let counts = |store: &Store| (store.stats().put_blobs, store.stats().blobs);
    store.put("put", Class::Acknowledged).await.unwrap();
    for bytes in ["computed", "computed, then put"] {
        store.put(bytes, Class::Derivable).await.unwrap();
    }
    assert_eq!(counts(&store), (1, 3));
    store.put("computed, then put", Class::Acknowledged).await.unwrap();
    store.put("put", Class::Derivable).await.unwrap();
    assert_eq!(counts(&store), (2, 3));
    store.remove(&Address::of(b"put"), DryRun::No).await.unwrap();
    assert_eq!(counts(&store), (1, 2));
    store.close().await.unwrap();
    let store = Store::open_on(Arc::clone(&disk), Config::default()).unwrap();
    assert_eq!(counts(&store), (1, 2));
    store.close().await.unwrap();
    disk.open("rebuild".as_ref(), anabranch_content::Open::Create).unwrap();
    let store = Store::open_on(disk, Config::default()).unwrap();
    assert!(store.opened().rebuilt.is_some());
    assert_eq!(counts(&store), (1, 2));
}

#[tokio::test]
async fn collection_keeps_what_is_held_and_what_it_takes_to_derive_it() {
    let hand = Hand::default();
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let store = Store::open_on(Arc::clone(&disk), hand.config()).unwrap();
    let input = put(&store, 1, 10).await;
    let loose = put(&store, 2, 100_000).await;
    let leased = put(&store, 3, 10).await;
    let named = put(&store, 4, 10).await;
    let (middle, middle_output) = make(&store, 10, &[input]).await;
    let (top, top_output) = make(&store, 20, &[middle]).await;
    let (dead, dead_output) = make(&store, 30, &[input]).await;
    assert!(store.pin(&top).await.unwrap());
    assert!(!store.pin(&top).await.unwrap());
    store.name("feed/today", Some(named)).await.unwrap();
    let mut lease = store.lease();
    assert!(lease.hold(leased).await.unwrap());

    let young = store.collect(Collect::default()).await.unwrap();
    assert_eq!((young.blobs, young.memos, young.derivations), (0, 0, 0));
    hand.forward(Duration::from_secs(301));
    let fresh = put(&store, 5, 10).await;
    let terms = Collect { dry_run: DryRun::Yes, ..Collect::default() };
    let would = store.collect(terms).await.unwrap();
    assert_eq!((would.blobs, would.memos, would.derivations), (3, 2, 1));
    assert!(store.get(&loose).await.unwrap().is_some());
    let did = store.collect(Collect::default()).await.unwrap();
    assert_eq!((did.blobs, did.memos, did.derivations, did.bytes), (3, 2, 1, 100_200));
    for gone in [loose, middle_output, dead_output] {
        assert_eq!(store.get(&gone).await.unwrap(), None);
        assert_eq!(store.status(&gone).await.unwrap().gone.unwrap().why, RemovalReason::Collected);
    }
    for held in [input, leased, named, top_output, fresh] {
        assert!(store.get(&held).await.unwrap().is_some(), "{held}");
    }
    assert!(store.derivation(&middle).await.unwrap().is_some());
    assert!(store.recall(&middle).await.unwrap().is_none());
    assert!(store.recall(&top).await.unwrap().is_some());
    assert!(store.derivation(&dead).await.unwrap().is_none());
    assert_eq!(store.dependents(&input, None, 9).await.unwrap(), [middle]);

    drop(lease);
    store.clean().await.unwrap();
    store.close().await.unwrap();
    let store = Store::open_on(disk, hand.config()).unwrap();
    assert_eq!(store.pins(None, 9).await.unwrap(), [top]);
    assert_eq!(store.named("feed/today").await.unwrap(), Some(named));
    for held in [input, leased, named, top_output, fresh] {
        assert!(store.get(&held).await.unwrap().is_some(), "{held}");
    }
    assert_eq!(store.status(&loose).await.unwrap().gone.unwrap().at, Time(301_000));
    assert!(store.put(bytes(2, 100_000), Class::Acknowledged).await.unwrap().new);
    assert_eq!(store.status(&loose).await.unwrap().gone, None);
    assert_eq!(store.removal(&loose).await.unwrap(), None);
}

#[tokio::test]
async fn names_are_counted_while_they_mean_something_and_are_no_addresses() {
    let store = Store::in_memory(Config::default()).unwrap();
    let blob = put(&store, 1, 10).await;
    for (name, address, count) in
        [("a", Some(blob), 1), ("b", Some(blob), 2), ("a", None, 1), ("a", None, 1), ("a", Some(blob), 2)]
    {
        store.name(name, address).await.unwrap();
        assert_eq!(store.stats().names, count, "{name} {address:?}");
    }
    let refused = store.name(&blob.to_string(), Some(blob)).await.unwrap_err();
    assert!(matches!(refused, Error::Name { .. }), "{refused}");
    store.name(&blob.to_string(), None).await.unwrap();
    assert_eq!(store.names().await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_archive_brings_a_closure_to_another_store() {
    let one = Store::in_memory(Config::default()).unwrap();
    let input = put(&one, 1, 3 << 20).await;
    let (middle, _) = make(&one, 10, &[input]).await;
    let (top, output) = make(&one, 20, &[middle]).await;
    let path = std::env::temp_dir().join(format!("anabranch-archive-{}", std::process::id()));
    let exported = one.export(&[top], std::fs::File::create(&path).unwrap()).await.unwrap();
    assert_eq!((exported.blobs, exported.derivations, exported.memos), (3, 2, 2));
    let other = Store::in_memory(Config::default()).unwrap();
    let imported = other.import(std::fs::File::open(&path).unwrap(), trusting()).await.unwrap();
    assert_eq!((imported.items, imported.new), (7, 7));
    assert_eq!(other.recall(&top).await.unwrap().unwrap().output, output);
    assert_eq!(other.get(&input).await.unwrap(), Some(bytes(1, 3 << 20)));
    let again = other.import(std::fs::File::open(&path).unwrap(), trusting()).await.unwrap();
    assert_eq!((again.items, again.new), (7, 0));
    std::fs::remove_file(path).unwrap();
    let scrubbed = other.scrub(Scrub { bytes_per_second: None }).await.unwrap();
    assert_eq!((scrubbed.files, scrubbed.damaged.len(), scrubbed.index), (1, 0, None));
}

fn trusting() -> anabranch_content::Import {
    anabranch_content::Import { trust_memos: true, ..anabranch_content::Import::default() }
}

/// However many there are and however slow, they leave threads to others; and they end when nobody wants them.
#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "what hangs would hang for days")]
async fn scrubs_take_turns() {
    let config = Config { io_threads: 2, ..Config::default() };
    let store = Store::in_memory(config).unwrap();
    for number in 0..64u8 {
        store.put(vec![number; 60_000], Class::Acknowledged).await.unwrap();
    }
    let others = async {
        let slow = || store.scrub(Scrub { bytes_per_second: Some(1) });
        let other = async { store.dependents(&Address::of(b"x"), None, 1).await };
        tokio::select! {
            biased;
            _ = slow() => panic!("it was to take days"),
            _ = slow() => panic!("it was to take days"),
            found = other => assert!(found.unwrap().is_empty()),
        }
        store.scrub(Scrub { bytes_per_second: None }).await.unwrap()
    };
    let scrubbed = tokio::time::timeout(Duration::from_secs(600), others).await.expect("it hangs");
    assert_eq!((scrubbed.records >= 64, scrubbed.damaged.len()), (true, 0));
}
