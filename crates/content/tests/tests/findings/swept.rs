//! A derivation that is put while a collection goes on keeps all that it needs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_content::{Address, Class, Collect, Config, Store};
use anabranch_testkit::CrashDisk;
use bytes::Bytes;

use super::CONTEXT;
use crate::crash::driver::small;
use crate::crash::world::random;
use crate::faults::hooked::{Call, Hooked};
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
        let there = store.why(&Address::of(&blob())).await.unwrap().blob.is_some()
            && store.why(&reader).await.unwrap().derivation;
        self.put.store(there, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_derivation_put_while_the_store_is_collected_keeps_what_it_needs() {
    let mut put = 0;
    for look in 1..60 {
        let late = Arc::new(Late { many: look % 2 == 0, ..Late::default() });
        let (disk, hand, other) = (CrashDisk::new(look), Hand::default(), Arc::clone(&late));
        let hooked = Hooked::new(&disk, move |call, path| {
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
