//! The index, when the disk does not read, and beside a busy log.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use anabranch_content::{Class, Config, Event, Store};
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

/// While the index has the log made durable, more comes into the log.
#[tokio::test]
async fn the_index_on_disk_never_knows_more_than_the_log_on_disk() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let (indexed, rest) = std::sync::mpsc::channel();
    let listener = move |event: &Event| {
        if matches!(event, Event::Indexed) {
            // Nobody waits at the end.
            let _ = indexed.send(());
        }
    };
    let config = Config { segment_bytes: 1 << 20, ..small(&hand) };
    let busy = Arc::new(Busy { disk: disk.clone(), ..Busy::default() });
    let other = Arc::clone(&busy);
    let hooked = Hooked::new(&disk, move |call, path| {
        other.beside(call, path);
        Ok(())
    });
    let listened = Config { listener: Some(Arc::new(listener)), ..config.clone() };
    assert!(busy.store.set(Store::open_on(Arc::new(hooked), listened).unwrap()).is_ok());
    for _ in 0..40 {
        busy.left.store(2, Ordering::Relaxed);
        while rest.try_recv().is_err() {
            busy.put(1).await;
        }
        for found in busy.found.lock().unwrap().drain(..) {
            assert_eq!(open(&found, &config).opened().rebuilt, None);
        }
    }
}

/// Puts while the index is at work, and looks what is on the disk.
struct Busy {
    disk: CrashDisk,
    store: OnceLock<Store>,
    turn: tokio::sync::Mutex<()>,
    count: AtomicU64,
    /// How often it may yet put, before the index must get some rest.
    left: AtomicU64,
    found: Mutex<Vec<CrashDisk>>,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy {
            disk: CrashDisk::new(0),
            store: OnceLock::new(),
            turn: tokio::sync::Mutex::default(),
            count: AtomicU64::new(0),
            left: AtomicU64::new(0),
            found: Mutex::default(),
        }
    }
}

impl Busy {
    fn beside(&self, call: Call, path: &Path) {
        if std::thread::current().name() != Some("content-index") {
            return;
        }
        if call == Call::Synced && path.starts_with("log") && self.may_put() {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(self.put(6));
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

    /// One at a time, so that never both wait for the index.
    async fn put(&self, count: usize) {
        let _turn = self.turn.lock().await;
        for _ in 0..count {
            let bytes = random(self.count.fetch_add(1, Ordering::Relaxed), 30);
            self.store.get().unwrap().put(bytes, Class::Derivable).await.unwrap();
        }
    }
}
