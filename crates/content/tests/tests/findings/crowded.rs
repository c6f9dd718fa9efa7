//! Collections that many callers ask for at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_content::{Collect, Config, Store, Time};

/// Each collection reads the clock as often as any other.
#[tokio::test]
async fn callers_that_wait_for_a_collection_share_it() {
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reads);
    let clock = move || Time(counted.fetch_add(1, Ordering::Relaxed));
    let store = Store::in_memory(Config { clock: Arc::new(clock), ..Config::default() }).unwrap();
    let terms = || Collect { grace: Duration::ZERO, ..Collect::default() };
    let before = reads.load(Ordering::Relaxed);
    store.collect(terms()).await.unwrap();
    let one = reads.load(Ordering::Relaxed) - before;
    let before = reads.load(Ordering::Relaxed);
    let all = futures_util::future::join_all((0..32).map(|_| store.collect(terms()))).await;
    assert!(all.iter().all(Result::is_ok));
    let collections = (reads.load(Ordering::Relaxed) - before) / one;
    assert!(collections <= 2, "{collections} collections for 32 callers: one that ran, one that waited");
}

/// A caller that stops waiting does not leave the others waiting for ever.
#[tokio::test]
async fn a_caller_that_gives_up_leaves_its_place_to_another() {
    let store = Store::in_memory(Config::default()).unwrap();
    let terms = Collect::default;
    let mut running = Box::pin(store.collect(terms()));
    let mut waiting = Box::pin(store.collect(terms()));
    let mut joined = Box::pin(store.collect(terms()));
    for call in [&mut running, &mut waiting, &mut joined] {
        let _ = futures_util::FutureExt::now_or_never(call);
    }
    drop(waiting);
    joined.await.unwrap();
    running.await.unwrap();
}
