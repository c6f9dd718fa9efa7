//! The index, when the disk does not read, and beside a busy log.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::time::Duration;

use anabranch_content::{Class, Config, Error, Event, Scrub, Store};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use super::hooked::{Call, Hooked};
use super::{open, small};
use crate::crash::driver::Driver;
use crate::crash::generations::any_op;
use crate::crash::times;
use crate::crash::world::random;
use crate::store::Hand;

async fn work_with_failing_reads(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut driver = Driver::new(CrashDisk::new(seed));
    driver.config.recent_bytes = 300;
    let armed = Arc::new(AtomicBool::new(false));
    let luck = Mutex::new(Rng::new(seed));
    for _ in 0..4 {
        let percent = *rng.choose(&[1, 5, 30]);
        let (hook, luck) = (Arc::clone(&armed), Mutex::new(luck.lock().unwrap().clone()));
        let hooked = Hooked::new(&driver.disk, move |call, path| {
            let fails = call == Call::Read
                && path.starts_with("index")
                && hook.load(Ordering::Relaxed)
                && luck.lock().unwrap().percent(percent);
            if fails { Err(io::Error::other("this read failed")) } else { Ok(()) }
        });
        driver.recover_on(Arc::new(hooked), Crash::Kill).await;
        armed.store(true, Ordering::Relaxed);
        for _ in 0..50 {
            // What fails is in the model.
            let _ = driver.step(any_op(&mut rng)).await;
        }
        let _ = driver.close().await;
        armed.store(false, Ordering::Relaxed);
        driver = driver.crashed(seed, Crash::Kill);
        if rng.percent(50) {
            driver.lose_index();
        }
    }
    driver.recover(Crash::Kill).await;
}

#[tokio::test]
async fn a_read_that_fails_costs_nothing_that_was_acknowledged() {
    for seed in 0..30 * times() {
        println!("seed {seed}");
        work_with_failing_reads(seed).await;
    }
}

#[tokio::test]
async fn a_damaged_index_says_so_and_is_made_anew_when_the_store_is_opened_again() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let config = Config { segment_bytes: 1 << 20, recent_bytes: 1 << 20, ..small(&hand) };
    let store = open(&disk, &config);
    let mut put = Vec::new();
    for seed in 0..500 {
        put.push(store.put(random(seed, 30), Class::Derivable).await.unwrap().address);
    }
    store.close().await.unwrap();
    let is_run = |path: &Path| path.to_str().is_some_and(|path| path.starts_with("index/run"));
    let (run, len) = disk.files().into_iter().find(|(path, _)| is_run(path)).unwrap();
    disk.flip(run, len / 3, 1);
    let store = open(&disk, &config);
    assert_eq!(store.opened().rebuilt, None);
    let mut damaged = 0;
    for address in &put {
        match store.get(address).await {
            Ok(found) => assert!(found.is_some()),
            Err(Error::Index { .. }) => damaged += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(damaged > 0);
    assert!(store.scrub(Scrub { bytes_per_second: None }).await.unwrap().index.is_some());
    // What this writes is of no use.
    let _ = store.close().await;
    let store = open(&disk, &config);
    assert!(store.opened().rebuilt.is_some());
    for address in &put {
        assert!(store.get(address).await.unwrap().is_some());
    }
}

/// While the index has the log made durable, more comes into the log.
#[tokio::test]
async fn the_index_on_disk_never_knows_more_than_the_log_on_disk() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let (indexed, rests) = mpsc::channel();
    let listener = move |event: &Event| {
        if matches!(event, Event::Indexed) {
            // Nobody waits at the end.
            let _ = indexed.send(());
        }
    };
    let config = Config { segment_bytes: 1 << 20, recent_bytes: 2200, ..small(&hand) };
    let busy = Arc::new(Busy::new(&disk));
    let other = Arc::clone(&busy);
    let hooked = Hooked::new(&disk, move |call, path| {
        other.beside(call, path);
        Ok(())
    });
    let listened = Config { listener: Some(Arc::new(listener)), ..config.clone() };
    let store = Store::open_on(Arc::new(hooked), listened).unwrap();
    *busy.store.lock().unwrap() = Some(store.clone());
    for _ in 0..40 {
        busy.left.store(2, Ordering::Relaxed);
        // Enough for the index to have something to write, not so much that it falls behind.
        busy.put(&store, 14).await;
        while rests.recv_timeout(Duration::from_millis(200)).is_err() {
            busy.put(&store, 4).await;
        }
        for found in busy.found.lock().unwrap().drain(..) {
            assert_eq!(open(&found, &config).opened().rebuilt, None);
        }
    }
    busy.store.lock().unwrap().take();
    store.close().await.unwrap();
}

/// Puts while the index is at work, and looks what is on the disk.
struct Busy {
    disk: CrashDisk,
    store: Mutex<Option<Store>>,
    count: AtomicU64,
    /// How often it may yet put, before the index must get some rest.
    left: AtomicU64,
    found: Mutex<Vec<CrashDisk>>,
}

impl Busy {
    fn new(disk: &CrashDisk) -> Busy {
        let (count, left) = (AtomicU64::new(0), AtomicU64::new(0));
        Busy { disk: disk.clone(), store: Mutex::default(), count, left, found: Mutex::default() }
    }

    fn beside(&self, call: Call, path: &Path) {
        if std::thread::current().name() != Some("content-index") {
            return;
        }
        let store = self.store.lock().unwrap().clone();
        if let Some(store) = store.filter(|_| call == Call::Synced && path.starts_with("log"))
            && self.may_put()
        {
            // If the writer itself waits for the index, this does not wait for the writer.
            let mut puts = Box::pin(self.put(&store, 4));
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..10_000 {
                if puts.as_mut().poll(&mut context).is_ready() {
                    break;
                }
                std::thread::yield_now();
            }
        }
        if call == Call::Other && path == Path::new("index") {
            self.found.lock().unwrap().push(self.disk.crash(1, Crash::Total));
        }
    }

    /// Now and then, but not too often.
    fn may_put(&self) -> bool {
        let now = Rng::new(self.count.load(Ordering::Relaxed)).percent(50);
        let fewer = |left: u64| left.checked_sub(1);
        now && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok()
    }

    async fn put(&self, store: &Store, count: usize) {
        for _ in 0..count {
            let bytes = random(self.count.fetch_add(1, Ordering::Relaxed), 30);
            // In the end the store is closed, but for this all are answered.
            let _ = store.put(bytes, Class::Derivable).await;
        }
    }
}
