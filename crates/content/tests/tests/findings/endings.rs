//! A store ends without stopping whoever drops it, and one whose background fails says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_content::{Class, Config, Store};
use anabranch_testkit::CrashDisk;
use futures_util::FutureExt;

use super::gate::{Gate, in_time};
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::hooked::{Call, HookedDisk};
use crate::store::Hand;

fn gated(gate: &Arc<Gate>, at: Call) -> HookedDisk {
    let gate = Arc::clone(gate);
    HookedDisk::new(&CrashDisk::new(1), move |call, _| {
        if call == at && std::thread::current().name().is_some_and(|name| name.starts_with("content-")) {
            gate.pass();
        }
        Ok(())
    })
}

#[tokio::test]
async fn dropping_a_store_does_not_wait_for_a_sync() {
    let gate = Gate::new();
    let store = Store::open_on(Arc::new(gated(&gate, Call::Sync)), small(&Hand::default())).unwrap();
    store.put("derivable", Class::Derivable).await.unwrap();
    gate.shut();
    let waited = gate.is_waited_for(|| drop(store));
    gate.open();
    assert!(!waited, "an async thread waits for the disk");
}

#[tokio::test]
async fn dropping_a_store_does_not_wait_for_a_read_that_was_given_up() {
    let gate = Gate::new();
    let store = Store::open_on(Arc::new(gated(&gate, Call::Read)), small(&Hand::default())).unwrap();
    let address = store.put(random(1, 3000), Class::Acknowledged).await.unwrap().address;
    gate.shut();
    let mut read = Box::pin(store.get(&address));
    assert!((&mut read).now_or_never().is_none());
    gate.held().await;
    drop(read);
    let waited = gate.is_waited_for(|| drop(store));
    gate.open();
    assert!(!waited, "an async thread waits for the disk");
}

/// A panic behind the index is a fault like any other: whoever writes is told, and nobody waits for ever.
#[tokio::test]
async fn a_panic_behind_the_index_does_not_stop_writers_for_ever() {
    let panics = Arc::new(AtomicBool::new(false));
    let disk = {
        let panics = Arc::clone(&panics);
        HookedDisk::new(&CrashDisk::new(1), move |_, path| {
            let background = std::thread::current().name() == Some("content-index");
            if background && path.starts_with("index") && panics.load(Ordering::Relaxed) {
                panic!("a fault in the thread behind the index");
            }
            Ok(())
        })
    };
    let store =
        Store::open_on(Arc::new(disk), Config { recent_bytes: 300, ..small(&Hand::default()) }).unwrap();
    panics.store(true, Ordering::Relaxed);
    let puts = in_time(async {
        for seed in 0..200 {
            // Whether it is kept or refused, it is answered.
            let _ = store.put(random(seed, 50), Class::Acknowledged).await;
        }
    });
    assert!(puts.await.is_some(), "a put waits for ever");
    assert!(in_time(store.close()).await.is_some_and(|closed| closed.is_err()), "closed as if all were well");
}
