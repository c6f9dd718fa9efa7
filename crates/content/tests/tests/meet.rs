//! What callers that meet in one batch, or come back after an error, may rely on.
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anabranch_content::{
    Address, Class, Collect, Config, Cost, Disk, Entry, Error, File, Memory, NewMemo, Open, Scope, Store,
    Wait,
};
use bytes::Bytes;
use futures_util::FutureExt;

use crate::store::Hand;

/// Is it shut, and how many have come to it.
type Shared = Arc<(Mutex<(bool, u32)>, Condvar)>;

/// A disk in memory whose syncs of the log wait while the gate is shut.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    inner: Memory,
    gate: Shared,
}
#[derive(Debug)]
struct GateFile(Arc<dyn File>, Option<Shared>);

impl Gate {
    pub(crate) fn shut(&self) {
        *self.gate.0.lock().unwrap() = (true, 0);
    }
    pub(crate) fn open_up(&self) {
        self.gate.0.lock().unwrap().0 = false;
        self.gate.1.notify_all();
    }
    fn wait_entered(&self) {
        let mut state = self.gate.0.lock().unwrap();
        while state.1 == 0 {
            state = self.gate.1.wait(state).unwrap();
        }
    }
}
impl Disk for Gate {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let gate = path.starts_with("log").then(|| Arc::clone(&self.gate));
        Ok(Arc::new(GateFile(self.inner.open(path, how)?, gate)))
    }
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.inner.list(folder)
    }
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.make_folder(folder)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.sync_folder(folder)
    }
}
impl File for GateFile {
    fn read_at(&self, into: &mut [u8], offset: u64, wait: Wait) -> io::Result<usize> {
        self.0.read_at(into, offset, wait)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        if let Some(gate) = &self.1 {
            let mut state = gate.0.lock().unwrap();
            state.1 += 1;
            gate.1.notify_all();
            while state.0 {
                state = gate.1.wait(state).unwrap();
            }
        }
        self.0.sync()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

/// Has the writer wait in the sync of a put, so that what is asked for next meets in one batch.
pub(crate) fn block_writer<'a>(store: &'a Store, disk: &Gate) -> impl Future<Output = ()> + 'a {
    disk.shut();
    let mut put = Box::pin(store.put("other", Class::Acknowledged));
    assert!((&mut put).now_or_never().is_none());
    disk.wait_entered();
    async move { assert!(put.await.unwrap().new) }
}

#[tokio::test]
async fn a_write_that_is_tried_again_counts_once() {
    let config = Config { quota_bytes: Some(1 << 20), ..Config::default() };
    let store = Store::in_memory(config).unwrap();
    store.put(vec![1; 600_000], Class::Acknowledged).await.unwrap();
    let mut writer = store.writer(Class::Acknowledged);
    writer.write(Bytes::from(vec![2; 200_000])).await.unwrap();
    let refused = writer.write(Bytes::from(vec![3; 400_000])).await;
    assert!(matches!(refused, Err(Error::Quota { .. })), "{refused:?}");
    // The caller makes room and goes on.
    store.collect(Collect { grace: Duration::ZERO, ..Collect::default() }).await.unwrap();
    writer.write(Bytes::from(vec![3; 400_000])).await.unwrap();
    let put = writer.finish().await.unwrap();
    let got = store.get(&put.address).await;
    assert!(
        matches!(&got, Ok(Some(bytes)) if bytes.len() == 600_000),
        "put {put:?}, got {:?}",
        got.map(|b| b.map(|b| b.len()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memo_remembered_twice_in_a_batch_keeps_the_greater_promise() {
    let disk = Arc::new(Gate::default());
    let hand = Hand::default();
    let store = Store::open_on(disk.clone(), hand.config()).unwrap();
    let output = store.put("output", Class::Derivable).await.unwrap().address;
    let derivation = Address::of(b"derivation");
    let blocked = block_writer(&store, &disk);
    let made = NewMemo { derivation, output, size: 6, cost: Cost::default(), inputs: &[] };
    let mut first = Box::pin(store.remember(made, Class::Acknowledged));
    assert!((&mut first).now_or_never().is_none());
    let mut second = Box::pin(store.remember(made, Class::Derivable));
    assert!((&mut second).now_or_never().is_none());
    disk.open_up();
    first.await.unwrap();
    second.await.unwrap();
    blocked.await;
    hand.forward(Duration::from_secs(1000));
    let terms = Collect { scope: Scope::Derivable, ..Collect::default() };
    store.collect(terms).await.unwrap();
    assert!(store.recall(&derivation).await.unwrap().is_some(), "acknowledged, collected as derivable");
}

#[tokio::test]
async fn room_is_made_for_a_put_below_nine_tenths() {
    let hand = Hand::default();
    let config = Config { quota_bytes: Some(1_000_000), ..hand.config() };
    let store = Store::in_memory(config).unwrap();
    for number in 0..17u8 {
        store.put(vec![number; 50_000], Class::Derivable).await.unwrap();
    }
    hand.forward(Duration::from_secs(1000));
    store.put(vec![77; 200_000], Class::Acknowledged).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unpin_undoes_a_pin_that_was_given_up() {
    let disk = Arc::new(Gate::default());
    let store = Store::open_on(disk.clone(), Config::default()).unwrap();
    let address = store.put("thing", Class::Derivable).await.unwrap().address;
    let blocked = block_writer(&store, &disk);
    {
        let mut pin = Box::pin(store.pin(&address));
        assert!((&mut pin).now_or_never().is_none());
    }
    let mut unpin = Box::pin(store.unpin(&address));
    assert!((&mut unpin).now_or_never().is_none());
    disk.open_up();
    unpin.await.unwrap();
    blocked.await;
    assert!(!store.status(&address).await.unwrap().pinned, "unpinned, and pinned");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_file_stays() {
    let disk = Arc::new(Gate::default());
    let hand = Hand::default();
    let store = Store::open_on(disk.clone(), hand.config()).unwrap();
    let large = store.put(vec![9; 200_000], Class::Acknowledged).await.unwrap().address;
    let small = store.put("small", Class::Acknowledged).await.unwrap().address;
    let sink: Arc<Mutex<Vec<u8>>> = Arc::default();
    struct To(Arc<Mutex<Vec<u8>>>);
    impl io::Write for To {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    store.export(&[large, small], To(sink.clone())).await.unwrap();
    let archive = sink.lock().unwrap().clone();
    hand.forward(Duration::from_secs(1000));
    // The import is answered, then a collection with the usual grace comes: just imported is young?
    store.import(io::Cursor::new(archive), anabranch_content::Import::default()).await.unwrap();
    store.collect(Collect::default()).await.unwrap();
    let left = (store.get(&large).await.unwrap().is_some(), store.get(&small).await.unwrap().is_some());
    assert_eq!(left, (true, true), "imported this moment, collected as old");
}
