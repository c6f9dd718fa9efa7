//! A collection spares what is put and imported while it goes on, and all that it needs.

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_content::{Address, Class, Collect, Config, Import, Store};
use anabranch_testkit::CrashDisk;
use bytes::Bytes;
use futures_util::FutureExt as _;

use super::CONTEXT;
use super::gate::Gate;
use crate::archive::records::check;
use crate::archive::whole_with_root;
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::hooked::{Call, HookedDisk};
use crate::kit::{description, put_derivation, put_derivations};
use crate::store::Hand;

/// Puts a reader of an old derivation in the midst of a collection, at one of its looks at the index.
#[derive(Default)]
struct Late {
    store: Mutex<Option<Store>>,
    /// One of many, or by itself.
    many: bool,
    /// So many looks from now; nothing at zero.
    look: AtomicU64,
    /// All that it needs was there once it was put.
    put: AtomicBool,
}

fn blob() -> Bytes {
    random(1, 50)
}

/// What reads the blob.
fn reader() -> Bytes {
    description("reads a blob", &[Address::of(&blob())])
}

impl Late {
    fn beside(&self, call: Call, path: &Path) {
        // The collection's own thread, whatever that is: the log's and the index's have to go on.
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let others = ["content-log", "content-index", "content-answers"];
        let collecting = name.starts_with("content-") && !others.contains(&name.as_str());
        let fewer = |look: u64| look.checked_sub(1);
        if collecting
            && call == Call::Read
            && path.starts_with("index")
            && self.look.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer) == Ok(1)
        {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(self.put());
        }
    }

    async fn put(&self) {
        let store = self.store.lock().unwrap().clone().unwrap();
        let reader = Address::derive(CONTEXT, &reader());
        let late = description("reads what reads a blob", &[reader]);
        match self.many {
            true => _ = put_derivations(&store, CONTEXT, &[late]).await.unwrap(),
            false => _ = put_derivation(&store, CONTEXT, late).await.unwrap(),
        }
        let there = store.status(&Address::of(&blob())).await.unwrap().blob.is_some()
            && store.status(&reader).await.unwrap().derivation;
        self.put.store(there, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_derivation_put_while_the_store_is_collected_keeps_what_it_needs() {
    let mut put = 0;
    for look in 1..60 {
        let late = Arc::new(Late { many: look % 2 == 0, ..Late::default() });
        let (disk, hand, other) = (CrashDisk::new(look), Hand::default(), Arc::clone(&late));
        let hooked = HookedDisk::new(&disk, move |call, path| {
            other.beside(call, path);
            Ok(())
        });
        let config = Config { io_threads: 2, recent_bytes: 300, ..small(&hand) };
        let store = Store::open_on(Arc::new(hooked), config).unwrap();
        *late.store.lock().unwrap() = Some(store.clone());
        let input = store.put(blob(), Class::Acknowledged).await.unwrap().address;
        put_derivation(&store, CONTEXT, reader()).await.unwrap();
        for seed in 0..20 {
            store.put(random(100 + seed, 50), Class::Acknowledged).await.unwrap();
        }
        hand.forward(Duration::from_secs(1000));
        late.look.store(look, Ordering::Relaxed);
        store.collect(Collect::default()).await.unwrap();
        late.look.store(0, Ordering::Relaxed);
        late.store.lock().unwrap().take();
        if late.put.load(Ordering::Relaxed) {
            put += 1;
            let there = store.get(&input).await.unwrap().is_some();
            assert!(there, "look {look}: the derivation is there, what it is to be derived from is not");
        }
    }
    assert!(put > 5, "it was put {put} times");
}

/// The bytes of an archive, whose end comes once the gate is open.
struct HeldArchive {
    parts: Vec<Vec<u8>>,
    gate: Arc<Gate>,
}

impl Read for HeldArchive {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.parts.len() == 1 {
            self.gate.pass();
        }
        let Some(part) = self.parts.first_mut() else { return Ok(0) };
        let len = part.len().min(buffer.len());
        buffer[..len].copy_from_slice(&part[..len]);
        part.drain(..len);
        if part.is_empty() {
            self.parts.remove(0);
        }
        Ok(len)
    }
}

/// The list that holds what an import brought is written at its end.
#[tokio::test]
async fn a_collection_spares_the_content_of_an_import_under_way() {
    let (archive, _) = whole_with_root().await;
    let store = Store::in_memory(Config::default()).unwrap();
    // The archive has it too. It is too young for the import to write it again.
    store.put(vec![7; 40], Class::Acknowledged).await.unwrap();
    let gate = Gate::new();
    gate.hold_one(0);
    let (most, end) = archive.split_at(archive.len() - 10);
    let held = HeldArchive { parts: vec![most.to_vec(), end.to_vec()], gate: Arc::clone(&gate) };
    let mut import = Box::pin(store.import(held, Import::default()));
    assert!((&mut import).now_or_never().is_none());
    gate.held().await;
    // One thread writes: what the import sent before is written, too.
    store.put("later", Class::Acknowledged).await.unwrap();
    let all = Collect { grace: Duration::ZERO, ..Collect::default() };
    let collected = store.collect(all.clone()).await.unwrap();
    gate.open();
    import.await.unwrap();
    assert_eq!(collected.removed, []);
    check(&store, &archive, false).await;
    // Its content is held from now on, and nothing else is young.
    assert_eq!(store.collect(all).await.unwrap().removed, [Address::of(b"later")]);
    check(&store, &archive, false).await;
}
