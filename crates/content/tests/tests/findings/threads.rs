//! Reads go on while something else takes long, however few threads there are.

use std::io::{self, Read, Write};
use std::sync::Arc;

use anabranch_content::{Address, Class, Collect, Config, Scrub, Store};
use anabranch_testkit::CrashDisk;
use futures_util::FutureExt;

use super::gate::{Gate, in_time};
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::hooked::{Call, HookedDisk};
use crate::store::Hand;

/// A store with one thread for the disk, and a gate at its reads of some folder by that thread or another of its own.
async fn filled(folder: &'static str) -> (Store, Arc<Gate>, Address) {
    let gate = Gate::new();
    let at_reads = Arc::clone(&gate);
    let disk = HookedDisk::new(&CrashDisk::new(1), move |call, path| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let others = ["content-log", "content-index", "content-answers"];
        let own = name.starts_with("content-") && !others.contains(&name.as_str());
        if own && call == Call::Read && path.starts_with(folder) {
            at_reads.pass();
        }
        Ok(())
    });
    let disk = Arc::new(disk);
    let config = Config { io_threads: 1, segment_bytes: 4 << 20, ..small(&Hand::default()) };
    let store = Store::open_on(disk.clone(), config.clone()).unwrap();
    for seed in 10..30 {
        store.put(random(seed, 400), Class::Acknowledged).await.unwrap();
    }
    let address = store.put(random(1, 3000), Class::Acknowledged).await.unwrap().address;
    // A closed store has its whole index on the disk, so that a collection has to read it from there.
    store.close().await.unwrap();
    let store = Store::open_on(disk, config).unwrap();
    (store, gate, address)
}

/// A read that has to wait for the disk.
async fn reads(store: &Store, address: &Address) -> bool {
    in_time(store.get(address)).await.is_some_and(|got| got.unwrap().is_some())
}

#[tokio::test]
async fn reads_go_on_while_a_scrub_waits_for_the_disk() {
    let (store, gate, address) = filled("log").await;
    gate.hold_one(0);
    let mut scrub = Box::pin(store.scrub(Scrub { bytes_per_second: None }));
    assert!((&mut scrub).now_or_never().is_none());
    gate.held().await;
    let read = reads(&store, &address).await;
    gate.open();
    scrub.await.unwrap();
    assert!(read, "a read waits for a scrub");
}

#[tokio::test]
async fn reads_go_on_while_a_scrub_takes_its_time() {
    let store = Store::in_memory(Config { io_threads: 1, cache_bytes: 0, ..Config::default() }).unwrap();
    for number in 0..40u8 {
        store.put(vec![number; 60_000], Class::Acknowledged).await.unwrap();
    }
    let address = store.put(vec![1; 100_000], Class::Acknowledged).await.unwrap().address;
    let read = tokio::select! {
        biased;
        _ = store.scrub(Scrub { bytes_per_second: Some(1) }) => panic!("it was to take days"),
        read = reads(&store, &address) => read,
    };
    assert!(read, "a read waits for a scrub");
}

#[tokio::test]
async fn reads_go_on_while_a_collection_waits_for_the_disk() {
    let (store, gate, address) = filled("index").await;
    gate.hold_one(0);
    let mut collection = Box::pin(store.collect(Collect::default()));
    assert!((&mut collection).now_or_never().is_none());
    gate.held().await;
    let read = reads(&store, &address).await;
    gate.open();
    collection.await.unwrap();
    assert!(read, "a read waits for a collection");
}

/// A peer that takes nothing, and gives nothing, while its gate is shut.
struct Peer(Arc<Gate>);

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.pass();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Peer {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.pass();
        Ok(0)
    }
}

#[tokio::test]
async fn reads_go_on_while_an_export_waits_for_its_peer() {
    let (store, _, address) = filled("none").await;
    let gate = Gate::new();
    gate.hold_one(0);
    let addresses = [address];
    let mut export = Box::pin(store.export(&addresses, Peer(Arc::clone(&gate))));
    assert!((&mut export).now_or_never().is_none());
    gate.held().await;
    let read = reads(&store, &address).await;
    gate.open();
    export.await.unwrap();
    assert!(read, "a read waits for an export");
}

#[tokio::test]
async fn reads_go_on_while_an_import_waits_for_its_peer() {
    let (store, _, address) = filled("none").await;
    let gate = Gate::new();
    gate.hold_one(0);
    let mut import = Box::pin(store.import(Peer(Arc::clone(&gate)), anabranch_content::Import::default()));
    assert!((&mut import).now_or_never().is_none());
    gate.held().await;
    let read = reads(&store, &address).await;
    gate.open();
    // It has given nothing at all.
    import.await.unwrap_err();
    assert!(read, "a read waits for an import");
}
