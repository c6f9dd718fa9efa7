//! A thing that keeps moving in the log is never missing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_content::{Class, Config, Store};
use anabranch_testkit::CrashDisk;

use super::CONTEXT;
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::hooked::{Call, HookedDisk};
use crate::kit::{description, put_derivation};
use crate::store::Hand;

/// Cleans the log between a reader's look at the index and its look at the log: what it was told has moved then.
#[derive(Default)]
struct Mover {
    store: Mutex<Option<Store>>,
    /// How many times it may yet move.
    moves: AtomicU64,
    moving: AtomicBool,
}

impl Mover {
    fn beside(&self, call: Call, path: &Path) {
        let reader = std::thread::current().name().is_some_and(|name| name.starts_with("content-io"));
        if !reader || call != Call::Read || !path.starts_with("index") {
            return;
        }
        // Cleaning looks at the index, too.
        if self.moves.load(Ordering::Relaxed) == 0 || self.moving.swap(true, Ordering::AcqRel) {
            return;
        }
        self.moves.fetch_sub(1, Ordering::Relaxed);
        let store = self.store.lock().unwrap().clone().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(store.clean()).unwrap();
        self.moving.store(false, Ordering::Release);
    }
}

/// A look at the index is a few reads, and it moves before each.
const MOVES: u64 = 60;

#[tokio::test]
async fn what_keeps_moving_is_not_missing() {
    let (disk, mover) = (CrashDisk::new(1), Arc::new(Mover::default()));
    let beside = Arc::clone(&mover);
    let hooked = HookedDisk::new(&disk, move |call, path| {
        beside.beside(call, path);
        Ok(())
    });
    let config = Config { io_threads: 3, recent_bytes: 300, ..small(&Hand::default()) };
    let store = Store::open_on(Arc::new(hooked), config).unwrap();
    let blob = store.put(random(1, 50), Class::Acknowledged).await.unwrap().address;
    let derivation = put_derivation(&store, CONTEXT, description("moves", &[])).await.unwrap();
    for seed in 10..20 {
        store.put(random(seed, 50), Class::Acknowledged).await.unwrap();
    }
    store.clean().await.unwrap();
    // No read finds its bytes in memory: all of them wait on a thread.
    disk.set_cached_percent(0);
    *mover.store.lock().unwrap() = Some(store.clone());
    mover.moves.store(MOVES, Ordering::Relaxed);
    let got = store.get(&blob).await;
    let blob_moved = MOVES - mover.moves.swap(MOVES, Ordering::Relaxed);
    let found = store.derivation(&derivation).await;
    let derivation_moved = MOVES - mover.moves.swap(0, Ordering::Relaxed);
    mover.store.lock().unwrap().take();
    assert!(blob_moved > 0 && derivation_moved > 0, "{blob_moved} and {derivation_moved} moves");
    assert!(matches!(got, Ok(Some(_))), "the blob moved {blob_moved} times: {got:?}");
    assert!(matches!(found, Ok(Some(_))), "the derivation moved {derivation_moved} times: {found:?}");
}
