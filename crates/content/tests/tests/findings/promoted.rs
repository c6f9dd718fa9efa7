//! What is put again is there, whatever was left of it before.

use anabranch_content::{Address, Class, Config, Store};
use anabranch_testkit::{Crash, CrashDisk};
use bytes::Bytes;

use super::{file_of, find};
use crate::crash::driver::small;
use crate::crash::world::{PACKED, random};
use crate::faults::open;
use crate::store::Hand;

/// A derivable file was torn by a power cut, and the same bytes come with a promise.
async fn put_over_torn(seed: u64, config: &Config, crash: Crash) -> bool {
    let (hand, bytes) = (Hand::default(), random(1, 3000));
    let disk = CrashDisk::new(seed);
    let store = open(&disk, &small(&hand));
    let address = store.put(bytes.clone(), Class::Derivable).await.unwrap().address;
    // Its row is durable with the next batch that is.
    store.put("other", Class::Acknowledged).await.unwrap();
    let disk = disk.crash(seed, crash);
    drop(store);
    let torn = file_of(&disk, &address).is_some_and(|path| disk.bytes(path).unwrap() != bytes);
    let store = open(&disk, config);
    store.put(bytes.clone(), Class::Acknowledged).await.unwrap();
    let after = disk.crash(seed, Crash::Total);
    let what = format!("seed {seed}, {crash:?}: acknowledged");
    assert_eq!(store.get(&address).await.expect(&what), Some(bytes.clone()), "{what}");
    let store = open(&after, config);
    assert_eq!(store.get(&address).await.expect(&what), Some(bytes), "{what}, and gone after a power cut");
    torn
}

#[tokio::test]
async fn a_promise_over_a_torn_file_is_kept() {
    let mut torn = 0;
    for seed in 0..30 {
        for crash in [Crash::Power, Crash::Chaos] {
            torn += u32::from(put_over_torn(seed, &small(&Hand::default()), crash).await);
        }
    }
    assert!(torn > 2, "{torn} files were torn");
}

/// The same, if blobs of its size are packed by now.
#[tokio::test]
async fn a_promise_over_a_torn_file_is_kept_by_a_packed_copy() {
    let config = Config { packed_most: 8000, segment_bytes: 1 << 20, ..small(&Hand::default()) };
    let mut torn = 0;
    for seed in 0..60 {
        torn += u32::from(put_over_torn(seed, &config, Crash::Power).await);
    }
    assert!(torn > 2, "{torn} files were torn");
}

/// A store that was closed, with one acknowledged blob whose bytes have rotted since.
async fn rotten(config: &Config, bytes: &Bytes) -> (CrashDisk, Store, Address) {
    let disk = CrashDisk::new(1);
    let store = open(&disk, config);
    let address = store.put(bytes.clone(), Class::Acknowledged).await.unwrap().address;
    store.close().await.unwrap();
    let folder = if bytes.len() > PACKED { "files" } else { "log" };
    let (path, at) = find(&disk, folder, bytes).unwrap();
    disk.flip(path, at as u64 + 5, 0x10);
    let store = open(&disk, config);
    (disk, store, address)
}

async fn put_over_rotten(bytes: Bytes, later: std::time::Duration) {
    let hand = Hand::default();
    let config = small(&hand);
    let (disk, store, address) = rotten(&config, &bytes).await;
    hand.forward(later);
    store.put(bytes.clone(), Class::Acknowledged).await.unwrap();
    let after = disk.crash(1, Crash::Total);
    let what = format!("{} bytes, put again after {later:?}", bytes.len());
    assert_eq!(store.get(&address).await.expect(&what), Some(bytes.clone()), "{what}");
    let store = open(&after, &config);
    assert_eq!(store.get(&address).await.expect(&what), Some(bytes), "{what}");
}

#[tokio::test]
async fn a_packed_blob_that_has_rotted_is_healed_by_a_put() {
    for seconds in [0, 1000] {
        put_over_rotten(random(1, 200), std::time::Duration::from_secs(seconds)).await;
    }
}

#[tokio::test]
async fn a_file_that_has_rotted_is_healed_by_a_put() {
    for seconds in [0, 1000] {
        put_over_rotten(random(1, 3000), std::time::Duration::from_secs(seconds)).await;
    }
}
