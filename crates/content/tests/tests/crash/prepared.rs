//! A log that is busy enough to be written ahead of its end.

use std::sync::Arc;

use anabranch_content::{Address, Class, Config, Scrub, Store};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use super::driver::small;
use super::times;
use super::world::random;
use crate::store::Hand;

const BLOBS: u64 = 50;
const LEN: usize = 10_000;

fn config() -> Config {
    let hand = Hand::default();
    Config { packed_most: LEN, segment_bytes: 400_000, ..small(&hand) }
}

/// Puts blobs until the disk refuses; says what was acknowledged.
async fn work(disk: &CrashDisk) -> Vec<Address> {
    let Ok(store) = Store::open_on(Arc::new(disk.clone()), config()) else { return Vec::new() };
    let mut acknowledged = Vec::new();
    for seed in 0..BLOBS {
        let class = if seed % 3 == 2 { Class::Derivable } else { Class::Acknowledged };
        let put = store.put(random(seed, LEN), class).await;
        acknowledged.extend(put.ok().filter(|_| class == Class::Acknowledged).map(|put| put.address));
    }
    // On a disk that died this is an error.
    let _ = store.close().await;
    acknowledged
}

async fn check(disk: &CrashDisk, crash: Crash, acknowledged: &[Address]) {
    let store = Store::open_on(Arc::new(disk.clone()), config()).unwrap();
    assert_eq!(store.opened().rebuilt, None);
    let torn = store.opened().unreadable.iter().all(|stretch| stretch.torn);
    assert!(torn || matches!(crash, Crash::Power | Crash::Chaos), "{:?}", store.opened());
    for address in acknowledged {
        assert!(store.get(address).await.unwrap().is_some());
    }
    for seed in 0..BLOBS {
        let bytes = random(seed, LEN);
        let found = store.get(&Address::of(&bytes)).await.unwrap();
        assert!(found.is_none_or(|found| found == bytes));
    }
    let found = store.scrub(Scrub { bytes_per_second: None }).await.unwrap();
    assert_eq!((found.damaged, found.unreadable), (vec![], vec![]));
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_process_may_die_while_its_log_is_written_ahead() {
    let disk = CrashDisk::new(0);
    assert!(!work(&disk).await.is_empty());
    let ahead = |call: &&String| call.starts_with("write log") && call.ends_with(": 65536");
    assert!(disk.call_log().iter().filter(ahead).count() > 0, "nothing is written ahead");
    let mut rng = Rng::new(3);
    for _ in 0..25 * times() {
        let (call, seed) = (rng.within(1..disk.calls() + 1), rng.bits());
        println!("call {call} seed {seed}");
        let disk = CrashDisk::new(seed);
        disk.fail_from(call);
        let acknowledged = work(&disk).await;
        for crash in [Crash::Kill, Crash::Total, Crash::Power, Crash::Chaos] {
            check(&disk.crash(seed, crash), crash, &acknowledged).await;
        }
    }
}
