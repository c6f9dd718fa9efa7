//! What was just derived is seen by all who ask, and nobody who only counts waits for the disk.

use std::sync::Arc;

use anabranch_content::{Address, Class, Collect, Config, Cost, NewMemo, Store};
use anabranch_testkit::CrashDisk;
use bytes::Bytes;

use super::gate::Gate;
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::hooked::{Call, HookedDisk};
use crate::meet::{self, block_writer};
use crate::store::Hand;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_just_derived_is_known_to_why_and_dependents() {
    let disk = Arc::new(meet::Gate::default());
    let store = Store::open_on(disk.clone(), Config { cache_bytes: 0, ..Config::default() }).unwrap();
    let input = store.put("input", Class::Acknowledged).await.unwrap().address;
    let blocked = block_writer(&store, &disk);
    let (derivation, value) = (Address::of(b"derivation"), Bytes::from("value"));
    let output = Address::of(&value);
    let made = NewMemo { derivation, output, size: 5, cost: Cost::default(), inputs: &[input] };
    store.derived(made, None, value).await.unwrap();
    let recalled = store.recall(&derivation).await.unwrap();
    let memo = store.status(&derivation).await.unwrap().memo;
    let blob = store.status(&output).await.unwrap().blob;
    let dependents = store.dependents(&input, None, 10).await.unwrap();
    disk.open_up();
    blocked.await;
    assert!(recalled.is_some());
    assert_eq!(memo, recalled, "`recall` and `why` disagree");
    assert_eq!(blob, Some((5, Class::Derivable)), "`why` does not know the value");
    assert_eq!(dependents, [derivation], "`dependents` does not know the derivation");
}

/// The writer is stopped at each of its looks at the index, one after another; `stats` is answered at once.
#[tokio::test]
async fn stats_do_not_wait_while_the_writer_waits_for_the_disk() {
    let (gate, hand) = (Gate::new(), Hand::default());
    let at_reads = Arc::clone(&gate);
    let disk = HookedDisk::new(&CrashDisk::new(1), move |call, path| {
        let writer = std::thread::current().name() == Some("content-log");
        if writer && call == Call::Read && path.starts_with("index") {
            at_reads.pass();
        }
        Ok(())
    });
    let config = Config { recent_bytes: 300, ..small(&hand) };
    let store = Store::open_on(Arc::new(disk), config).unwrap();
    for seed in 0..20 {
        let put = store.put(random(seed, 50), Class::Acknowledged).await.unwrap();
        store.pin(&put.address).await.unwrap();
    }
    // All of the index is on disk after this.
    store.clean().await.unwrap();
    let mut stopped = 0;
    for seed in 0..20 {
        gate.hold_one(seed % 4);
        let address = Address::of(&random(seed as u64, 50));
        let unpin = store.unpin(&address);
        let look = async {
            gate.held().await;
            let waited = gate.is_waited_for(|| _ = store.stats());
            gate.open();
            waited
        };
        tokio::pin!(unpin);
        let waited = tokio::select! {
            // It may have fewer looks than that.
            unpinned = &mut unpin => {
                unpinned.unwrap();
                gate.open();
                continue;
            }
            waited = look => waited,
        };
        unpin.await.unwrap();
        stopped += 1;
        assert!(!waited, "the counts wait for the disk, at look {} of an unpin", seed % 4);
    }
    assert!(stopped > 5, "the writer was stopped {stopped} times");
    store.collect(Collect::default()).await.unwrap();
}
