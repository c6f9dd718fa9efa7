//! Collections that many callers ask for at once.

use std::time::Duration;

use anabranch_content::{Collect, Config, Store};
use futures_util::FutureExt as _;
use futures_util::future::maybe_done;

/// Every caller is answered, however many share a collection.
#[tokio::test]
async fn callers_that_wait_for_a_collection_are_all_answered() {
    let store = Store::in_memory(Config::default()).unwrap();
    let terms = || Collect { grace: Duration::ZERO, ..Collect::default() };
    let all = futures_util::future::join_all((0..32).map(|_| store.collect(terms()))).await;
    assert!(all.iter().all(Result::is_ok));
}

/// A caller that stops waiting does not leave the others waiting for ever.
#[tokio::test]
async fn a_caller_that_gives_up_leaves_its_place_to_another() {
    let store = Store::in_memory(Config::default()).unwrap();
    let terms = Collect::default;
    // A fast collection may end when it is polled first.
    let [mut running, mut waiting, mut joined] =
        std::array::from_fn(|_| Box::pin(maybe_done(store.collect(terms()))));
    for call in [&mut running, &mut waiting, &mut joined] {
        let _ = call.now_or_never();
    }
    drop(waiting);
    for mut call in [joined, running] {
        (&mut call).await;
        call.as_mut().take_output().unwrap().unwrap();
    }
}
