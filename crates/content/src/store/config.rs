//! The settings of a store.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::event::Event;
use crate::facts::Time;

/// A function that receives the events of a store.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Settings of a store. The defaults suit a server with a few gigabytes of memory.
#[derive(Clone)]
pub struct Config {
    /// Bytes of memory for the cache of values; 0 turns it off. Default 256 MiB.
    pub cache_bytes: u64,
    /// Blobs up to this many bytes are packed into the log; larger ones are files. Default 64 KiB, at most 16 MiB.
    pub packed_most: usize,
    /// The largest blob or range, in bytes, that is read into one piece of memory. Default 1 GiB.
    pub whole_most: u64,
    /// The log begins a new segment file after this many bytes. Default 64 MiB, at most 1 GiB.
    pub segment_bytes: u64,
    /// Bytes of memory for index entries that are not yet on disk. Default 16 MiB.
    pub recent_bytes: usize,
    /// Bytes of queued writes; callers wait (backpressure) while the queue is full. Default 64 MiB.
    pub queue_bytes: u32,
    /// Threads for hashing and for reads and writes that wait for the disk. Default one per core, at least 4.
    pub io_threads: usize,
    /// The limit on bytes of live blobs and records; from 9/10 of it on, derivable data is collected. Default no limit.
    pub quota_bytes: Option<u64>,
    /// Collection for the quota keeps data younger than this, held or not. Default 5 minutes.
    pub quota_grace: Duration,
    /// Bytes of the reserve, a file that is given up when the disk is full, so that the store can still be collected. It is
    /// made once the store uses four times as many bytes. 0: no reserve. Default 8 MiB.
    pub reserve_bytes: u64,
    /// The number of changes of a name that its history keeps, with their addresses held. Default 16, at most 32.
    pub history_kept: usize,
    /// The most names whose order is kept in memory, about 120 bytes each, for [`Store::names_after`](super::Store::names_after).
    /// In a store with more names, each page reads all of them. Default 250,000.
    pub names_kept: usize,
    /// The time for which the store remembers when and why data was removed. Default 30 days.
    pub gone_kept: Duration,
    /// A put of an existing blob that is older than this makes it young again, at the price of a small record. Default
    /// 1 minute.
    pub touch_after: Duration,
    /// The clock. Default the system's clock.
    pub clock: Arc<dyn Fn() -> Time + Send + Sync>,
    /// Receives the store's events, on the thread where each happens, so it must be quick, and must not wait for the
    /// store. Default none.
    pub listener: Option<Listener>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            cache_bytes: 256 << 20,
            packed_most: 64 << 10,
            whole_most: 1 << 30,
            segment_bytes: 64 << 20,
            recent_bytes: 16 << 20,
            queue_bytes: 64 << 20,
            io_threads: std::thread::available_parallelism().map_or(4, |cores| cores.get().clamp(4, 64)),
            quota_bytes: None,
            quota_grace: Duration::from_secs(300),
            reserve_bytes: 8 << 20,
            history_kept: 16,
            names_kept: 250_000,
            gone_kept: Duration::from_secs(30 * 24 * 3600),
            touch_after: Duration::from_secs(60),
            clock: Arc::new(system_time),
            listener: None,
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Config")
            .field("cache_bytes", &self.cache_bytes)
            .field("packed_most", &self.packed_most)
            .field("quota_bytes", &self.quota_bytes)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Returns the settings, or an error if one is out of its range.
    pub(crate) fn checked(self) -> Result<Config, crate::Error> {
        let wrong = |setting, allowed| Err(crate::Error::Setting { setting, allowed });
        match () {
            () if self.packed_most > 16 << 20 => wrong("packed_most", "0 to 16 MiB"),
            () if !(4 << 10..=1 << 30).contains(&self.segment_bytes) => {
                wrong("segment_bytes", "4 KiB to 1 GiB")
            }
            () if self.recent_bytes == 0 => wrong("recent_bytes", "at least 1"),
            () if !(1..=1 << 30).contains(&self.queue_bytes) => wrong("queue_bytes", "1 byte to 1 GiB"),
            () if !(1..=1024).contains(&self.io_threads) => wrong("io_threads", "1 to 1024"),
            () if !(1..=32).contains(&self.history_kept) => wrong("history_kept", "1 to 32"),
            () => Ok(self),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the seam that the ban leads to")]
fn system_time() -> Time {
    SystemTime::now().into()
}
