//! The index, when the disk does not read, and beside a busy log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Waker};
use std::time::Duration;

use anabranch_content::{Address, Class, Config, Error, Event, Scrub, Stats, Store};
use anabranch_testkit::{Crash, CrashDisk, Rng};
use futures_util::FutureExt as _;

use super::hooked::{Call, HookedDisk};
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
        let hooked = HookedDisk::new(&driver.disk, move |call, path| {
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

/// A store with values in its index's runs, and the path and length of one run.
async fn with_run(disk: &CrashDisk, config: &Config) -> (Vec<Address>, (PathBuf, u64)) {
    let store = open(disk, config);
    let mut put = Vec::new();
    for seed in 0..500 {
        put.push(store.put(random(seed, 30), Class::Acknowledged).await.unwrap().address);
    }
    store.pin(&put[0]).await.unwrap();
    store.name("name", Some(put[1])).await.unwrap();
    store.close().await.unwrap();
    (put, disk.files().into_iter().find(|(path, _)| is_run(path)).unwrap())
}

fn is_run(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with("index/run"))
}

#[tokio::test]
async fn a_damaged_index_is_rebuilt_while_the_store_is_in_use() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let listener = move |event: &Event| match event {
        Event::IndexDamaged { .. } => listening.lock().unwrap().push("damaged"),
        Event::IndexRebuilt { replayed, .. } => {
            assert!(*replayed >= 500);
            listening.lock().unwrap().push("rebuilt");
        }
        _ => {}
    };
    let config = Config {
        segment_bytes: 1 << 14,
        recent_bytes: 1 << 20,
        listener: Some(Arc::new(listener)),
        ..small(&hand)
    };
    let (put, (run, len)) = with_run(&disk, &config).await;
    let store = open(&disk, &config);
    let mut fresh = Vec::new();
    for round in 1..=3 {
        // Values that the log has and the damaged runs do not.
        for seed in 0..20 {
            fresh
                .push(store.put(random(1000 * round + seed, 30), Class::Acknowledged).await.unwrap().address);
        }
        let before = store.stats();
        // The first round damages the run that the store was opened with, later ones those that there are.
        assert!(round > 1 || disk.files().contains(&(run.clone(), len)));
        disk.edit_all(is_run, |bytes| bytes.chunks_exact_mut(512).for_each(|block| block[100] ^= 1));
        for address in put.iter().chain(&fresh) {
            assert!(store.get(address).await.unwrap().is_some());
        }
        // Reads find the new index before it is on the disk.
        while store.stats().health.index_rebuilt < round {
            tokio::task::yield_now().await;
        }
        let after = store.stats();
        assert_eq!((after.health.index_damaged, after.health.index_rebuilt), (false, round));
        assert_eq!(heard.lock().unwrap().len() as u64, 2 * round);
        let counts =
            |stats: &Stats| (stats.blobs, stats.blob_bytes, stats.pins, stats.names, stats.used_bytes);
        assert_eq!(counts(&after), counts(&before));
    }
    assert_eq!(store.pins(None, 9).await.unwrap(), [put[0]]);
    assert_eq!(store.names().await.unwrap(), [("name".to_owned(), put[1])]);
    assert!(store.scrub(Scrub { bytes_per_second: None }).await.unwrap().index.is_none());
    store.close().await.unwrap();
    let store = open(&disk, &config);
    assert_eq!(store.opened().rebuilt, None);
    for address in put.iter().chain(&fresh) {
        assert!(store.get(address).await.unwrap().is_some());
    }
}

/// Calls that meet damage may be on async workers: the index thread marks the store and tells the listener, under no
/// lock, so that a listener may read the store.
#[tokio::test]
async fn damage_of_the_index_is_announced_by_the_index_thread() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let threads = Arc::new(Mutex::new(Vec::new()));
    let note = move |threads: &Mutex<Vec<(String, &'static str)>>, what| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        threads.lock().unwrap().push((name, what));
    };
    let reading: Arc<OnceLock<(Store, Address)>> = Arc::default();
    let (noted, read_by) = (Arc::clone(&threads), Arc::clone(&reading));
    let listener = move |event: &Event| {
        let Event::IndexDamaged { .. } = event else { return };
        note(&noted, "told");
        let (store, address) = read_by.get().unwrap();
        if std::thread::current().name() == Some("content-index") {
            // It meets the same damage.
            assert!(store.get(address).now_or_never().is_none());
        }
    };
    let config = Config { recent_bytes: 1 << 20, listener: Some(Arc::new(listener)), ..small(&hand) };
    let (put, (run, len)) = with_run(&disk, &config).await;
    let noted = Arc::clone(&threads);
    let hooked = HookedDisk::new(&disk, move |call, path| {
        if call == Call::Sync && path.ends_with("rebuild") {
            note(&noted, "marked");
        }
        Ok(())
    });
    let store = Store::open_on(Arc::new(hooked), config).unwrap();
    reading.set((store.clone(), put[7])).unwrap();
    (0..len / 512).for_each(|block| disk.flip(&run, block * 512 + 100, 1));
    assert!(store.get(&put[7]).await.unwrap().is_some());
    let index = || "content-index".to_owned();
    assert_eq!(*threads.lock().unwrap(), [(index(), "marked"), (index(), "told")]);
    store.close().await.unwrap();
}

/// The store closes before the index is rebuilt: the next open does it.
#[tokio::test]
async fn a_damaged_index_is_rebuilt_when_the_store_is_opened_if_not_before() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let config = Config { segment_bytes: 1 << 20, recent_bytes: 1 << 20, ..small(&hand) };
    let (put, (run, len)) = with_run(&disk, &config).await;
    disk.flip(run, len / 3, 1);
    // The log cannot be read while the index is to be rebuilt.
    let (armed, inner) = (Arc::new(AtomicBool::new(false)), disk.clone());
    let hook = Arc::clone(&armed);
    let hooked = HookedDisk::new(&inner, move |call, path| {
        let fails = call == Call::Read
            && path.starts_with("log")
            && hook.load(Ordering::Relaxed)
            && std::thread::current().name() == Some("content-index");
        if fails { Err(io::Error::other("this read failed")) } else { Ok(()) }
    });
    let store = Store::open_on(Arc::new(hooked), config.clone()).unwrap();
    armed.store(true, Ordering::Relaxed);
    let mut damaged = 0;
    for address in &put {
        match store.get(address).await {
            Ok(found) => assert!(found.is_some()),
            Err(Error::Index { .. }) => damaged += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(damaged > 0);
    let health = store.stats().health;
    assert!(health.index_damaged && health.index_rebuilt == 0 && health.failures > 0, "{health}");
    // The index that this writes is of no use.
    let _ = store.close().await;
    let store = open(&disk, &config);
    assert!(store.opened().rebuilt.is_some());
    for address in &put {
        assert!(store.get(address).await.unwrap().is_some());
    }
}

/// Writes and reads of many callers go on while the index is damaged and rebuilt again and again.
#[tokio::test]
async fn callers_do_not_notice_that_the_index_is_rebuilt() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let config = Config { segment_bytes: 1 << 14, recent_bytes: 4000, ..small(&hand) };
    let (put, _) = with_run(&disk, &config).await;
    let store = open(&disk, &config);
    let mut known = put;
    for round in 0..20u64 {
        disk.edit_all(is_run, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
        let writes =
            (0..30).map(|seed| store.put(random(10_000 + 100 * round + seed, 30), Class::Acknowledged));
        let reads = known.iter().map(|address| store.get(address));
        let (written, read) =
            tokio::join!(futures_util::future::join_all(writes), futures_util::future::join_all(reads));
        assert!(read.into_iter().all(|found| found.unwrap().is_some()));
        // A write that meets the damage in the log's thread is refused, and may be tried again.
        for (seed, written) in written.into_iter().enumerate() {
            match written {
                Ok(put) => known.push(put.address),
                Err(Error::Index { .. }) => {
                    let bytes = random(10_000 + 100 * round + seed as u64, 30);
                    known.push(store.put(bytes, Class::Acknowledged).await.unwrap().address);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    assert!(store.stats().health.index_rebuilt > 0);
    store.close().await.unwrap();
    let store = open(&disk, &config);
    for address in &known {
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
    let hooked = HookedDisk::new(&disk, move |call, path| {
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
