//! Many callers at once, while the log is cleaned and the store collected under them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_content::{Address, Class, Collect, Config, Context, Cost, NewMemo, Store};
use anabranch_testkit::{Crash, CrashDisk};
use bytes::Bytes;
use futures_util::future::join_all;

use super::hooked::{Call, HookedDisk};
use super::{open, small};
use crate::crash::times;
use crate::crash::world::{PACKED, random};
use crate::kit::{description, put_derivation};
use crate::store::Hand;

const CALLERS: u64 = 6;

/// What nobody but one caller touches.
struct Caller {
    store: Store,
    number: u64,
    name: String,
    pin: Address,
    derivation: Address,
}

impl Caller {
    async fn new(store: &Store, number: u64) -> Caller {
        let (context, described) = (Context("tests"), description(number.to_string(), &[]));
        // Pinned first: between the two a collection could take it.
        let derivation = Address::derive(context, &described);
        store.pin(&derivation).await.unwrap();
        put_derivation(store, context, described).await.unwrap();
        let pin = Address::of(&number.to_le_bytes());
        Caller { store: store.clone(), number, name: format!("caller {number}"), pin, derivation }
    }

    /// Whatever this caller said last holds.
    async fn round(&self, round: u64) {
        let store = &self.store;
        let mut lease = store.lease();
        // What the collection takes comes back, to the same address.
        let bytes = random(self.number, if round.is_multiple_of(3) { PACKED + 1 } else { 60 });
        let address = Address::of(&bytes);
        lease.hold(address).await.unwrap();
        let class = if round.is_multiple_of(2) { Class::Acknowledged } else { Class::Derivable };
        store.put(bytes.clone(), class).await.unwrap();
        assert_eq!(store.get(&address).await.unwrap(), Some(bytes.clone()));
        store.name(&self.name, Some(Address::of(&round.to_le_bytes()))).await.unwrap();
        assert_eq!(store.named(&self.name).await.unwrap(), Some(Address::of(&round.to_le_bytes())));
        let size = bytes.len() as u64;
        let made = NewMemo {
            derivation: self.derivation,
            output: address,
            size,
            cost: Cost::default(),
            inputs: &[],
        };
        store.remember(made, class).await.unwrap();
        assert_eq!(store.recall(&self.derivation).await.unwrap().unwrap().output, address);
        store.pin(&self.pin).await.unwrap();
        assert!(store.status(&self.pin).await.unwrap().pinned);
        store.invalidate(&[self.derivation]).await.unwrap();
        assert_eq!(store.recall(&self.derivation).await.unwrap(), None);
        store.unpin(&self.pin).await.unwrap();
        assert!(!store.status(&self.pin).await.unwrap().pinned);
        assert!(store.derivation(&self.derivation).await.unwrap().is_some());
    }
}

async fn crowd(seed: u64) {
    let (disk, hand) = (CrashDisk::new(seed), Hand::default());
    let config = Config { io_threads: 2, recent_bytes: 4096, touch_after: Duration::ZERO, ..small(&hand) };
    let store = open(&disk, &config);
    let busy = AtomicU64::new(CALLERS);
    let rounds = 15;
    let callers = join_all((0..CALLERS).map(|number| {
        let (store, busy) = (&store, &busy);
        async move {
            let caller = Caller::new(store, number).await;
            for round in 0..rounds {
                caller.round(round).await;
            }
            busy.fetch_sub(1, Ordering::Relaxed);
        }
    }));
    let clean = async {
        while busy.load(Ordering::Relaxed) > 0 {
            store.clean().await.unwrap();
        }
    };
    let collect = async {
        while busy.load(Ordering::Relaxed) > 0 {
            store.collect(Collect { grace: Duration::ZERO, ..Collect::default() }).await.unwrap();
        }
    };
    tokio::join!(callers, clean, collect);
    let found = disk.crash(seed, Crash::Total);
    drop(store);
    let store = open(&found, &config);
    let last = Address::of(&(rounds - 1).to_le_bytes());
    let names: Vec<_> = (0..CALLERS).map(|number| (format!("caller {number}"), last)).collect();
    assert_eq!(store.names().await.unwrap(), names);
    assert_eq!(store.stats().pins, CALLERS);
    assert_eq!((store.stats().derivations, store.stats().memos), (CALLERS, 0));
}

#[tokio::test]
async fn what_a_caller_said_last_holds_while_the_log_is_cleaned() {
    for seed in 0..8 * times() {
        println!("seed {seed}");
        crowd(seed).await;
    }
}

/// Somebody who holds a derivation in the midst of a collection, at one of its looks at the index.
#[derive(Default)]
struct Late {
    store: Mutex<Option<Store>>,
    /// Which way it holds.
    turn: u64,
    /// So many looks from now; nothing at zero.
    look: AtomicU64,
    /// Its input was there when it was held.
    held: AtomicBool,
}

/// What reads the one blob.
fn described() -> Bytes {
    description("derived from one blob", &[Address::of(&random(1, 50))])
}

impl Late {
    fn beside(&self, call: Call, path: &Path) {
        let collecting = std::thread::current().name().is_some_and(|name| name == "content-long");
        let fewer = |look: u64| look.checked_sub(1);
        if collecting
            && call == Call::Read
            && path.starts_with("index")
            && self.look.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer) == Ok(1)
        {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(self.hold());
        }
    }

    async fn hold(&self) {
        let store = self.store.lock().unwrap().clone().unwrap();
        let derivation = Address::derive(Context("tests"), &described());
        // Both ways hold it.
        match self.turn % 2 {
            0 => _ = store.pin(&derivation).await.unwrap(),
            _ => _ = store.name("late", Some(derivation)).await.unwrap(),
        }
        let input = store.status(&Address::of(&random(1, 50))).await.unwrap();
        let there = input.blob.is_some() && store.status(&derivation).await.unwrap().derivation;
        self.held.store(there, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_is_held_while_the_store_is_collected_keeps_what_it_needs() {
    let mut held = 0;
    for look in 1..40 {
        let (disk, hand, late) =
            (CrashDisk::new(look), Hand::default(), Arc::new(Late { turn: look, ..Late::default() }));
        let other = Arc::clone(&late);
        let hooked = HookedDisk::new(&disk, move |call, path| {
            other.beside(call, path);
            Ok(())
        });
        let config = Config { io_threads: 2, recent_bytes: 300, ..small(&hand) };
        let store = Store::open_on(Arc::new(hooked), config).unwrap();
        *late.store.lock().unwrap() = Some(store.clone());
        let input = store.put(random(1, 50), Class::Acknowledged).await.unwrap().address;
        put_derivation(&store, Context("tests"), described()).await.unwrap();
        for seed in 0..20 {
            store.put(random(100 + seed, 50), Class::Acknowledged).await.unwrap();
        }
        hand.forward(Duration::from_secs(1000));
        late.look.store(look, Ordering::Relaxed);
        store.collect(Collect::default()).await.unwrap();
        late.look.store(0, Ordering::Relaxed);
        late.store.lock().unwrap().take();
        if late.held.load(Ordering::Relaxed) {
            held += 1;
            assert!(store.get(&input).await.unwrap().is_some(), "look {look}");
        }
    }
    assert!(held > 5, "it was held {held} times");
}
