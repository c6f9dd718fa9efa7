//! The reserve: a file that is given up when the disk is full, so that a collection has room to write what it removes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Core, Event};
use crate::{Disk, Error, Open};

const RESERVE_FILE: &str = "reserve";

/// A store that uses this many times the reserve's bytes has one: a reserve should be small beside its store.
const STORE_TIMES: u64 = 4;

#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Held while the file is made or removed.
    changing: Mutex<()>,
    is_there: AtomicBool,
    /// Whether the keeper was asked to make it: once, as the disk may have no room.
    is_asked_for: AtomicBool,
    /// Whether a collection works with the reserve's room, which no other write may take.
    is_in_use: AtomicBool,
}

impl Reserve {
    /// The reserve that the disk has.
    pub(crate) fn find(disk: &dyn Disk) -> Reserve {
        let is_there = disk.open(Path::new(RESERVE_FILE), Open::Read).is_ok();
        Reserve { is_there: AtomicBool::new(is_there), ..Reserve::default() }
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.is_in_use.load(Ordering::Relaxed)
    }

    /// Removes the file; false if there is none, or the disk refuses.
    fn give_up(&self, disk: &dyn Disk) -> bool {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_there.swap(false, Ordering::Relaxed) && disk.remove(Path::new(RESERVE_FILE)).is_ok()
    }

    /// Writes the file. If that fails, there is none.
    fn make(&self, disk: &dyn Disk, bytes: u64) -> std::io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = Path::new(RESERVE_FILE);
        let write = || {
            let file = disk.open(path, Open::Create)?;
            // Bytes that no file system can compress.
            let (mut noise, mut piece) = (blake3::Hasher::new().finalize_xof(), vec![0; 64 << 10]);
            let mut written = 0;
            while written < bytes {
                piece.truncate((bytes - written).min(64 << 10) as usize);
                noise.fill(&mut piece);
                file.write_at(&piece, written)?;
                written += piece.len() as u64;
            }
            file.sync()
        };
        let written = write();
        match &written {
            Ok(()) => self.is_there.store(true, Ordering::Relaxed),
            Err(_) => _ = disk.remove(path),
        }
        written
    }
}

struct ReserveGuard<'a>(&'a Reserve);

impl Drop for ReserveGuard<'_> {
    fn drop(&mut self) {
        self.0.is_in_use.store(false, Ordering::Relaxed);
    }
}

impl Core {
    /// Whether the store should have a reserve and has none.
    fn lacks_reserve(&self, used: u64) -> bool {
        let bytes = self.config.reserve_bytes;
        bytes > 0
            && used >= bytes.saturating_mul(STORE_TIMES)
            && !self.reserve.is_there.load(Ordering::Relaxed)
    }

    /// Whether it is time to wake the keeper for the reserve.
    pub(super) fn should_ask_for_reserve(&self, used: u64) -> bool {
        self.lacks_reserve(used) && !self.reserve.is_asked_for.swap(true, Ordering::Relaxed)
    }

    /// Makes the reserve, if the store should have one and the disk has room.
    pub(super) fn make_reserve(&self) {
        if !self.lacks_reserve(self.space.taken().used) {
            return;
        }
        if let Err(cause) = self.reserve.make(&*self.disk, self.config.reserve_bytes) {
            let error = Error::disk("write", Path::new(RESERVE_FILE), cause);
            self.tell(&Event::Failed { doing: "make the reserve", error });
        }
    }

    /// Runs work that removes data. If the disk is full, the work is run once more in the room of the reserve. The
    /// reserve is made again by the keeper, once the log is cleaned.
    pub(super) fn with_reserve<T>(&self, work: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        match work() {
            Err(error) if error.is_disk_full() && self.reserve.give_up(&*self.disk) => {
                self.reserve.is_in_use.store(true, Ordering::Relaxed);
                let _in_use = ReserveGuard(&self.reserve);
                work()
            }
            done => done,
        }
    }
}
