//! The store: combines the log, the index, the files and the cache.

mod config;
mod event;
mod report;
mod counters;
mod tables;
mod tally;
mod pending;
mod recalled;
mod catalogue;
mod overlay;
mod guard;
mod commit;
mod admit;
mod background;
mod pipeline;
mod keeper;
mod quota;
mod reserve;
mod owner;
mod format;
mod open;
mod heal;
mod repair;
mod put;
mod put_file;
mod get;
mod derivations;
mod memos;
mod derived;
mod append;
mod lookup;
mod roots;
mod names;
mod collect;
mod mark;
mod sweep;
mod clean;
mod scrub;
mod archive;
mod import;
mod imports;
mod imported_names;
mod listing;
mod usage;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub use archive::ExportReport;
pub use catalogue::AddressStatus;
pub use collect::{Collect, CollectReport, DryRun, Scope};
pub use config::{Config, Listener};
pub use derivations::NewDerivation;
pub use event::{Event, OpenReport, Operation, Outcome, Stats, UnreadableStretch};
pub use get::Reader;
use get::RecentReads;
pub use import::{Import, ImportReport, ImportedName};
pub use imports::{DroppedImport, ImportRecord};
pub use listing::{ListedBlob, ListedDerivation, RemovedItems};
pub use lookup::Lookup;
pub use memos::NewMemo;
pub use put::{Put, Writer};
pub use report::Health;
pub use roots::Lease;
pub use scrub::{Scrub, ScrubReport};
pub use usage::{Holder, Root, RootSpace, Space, Usage};

pub(crate) use format::parse_format;
pub(crate) use tables::decode_row;

use background::Background;
use catalogue::Catalogue;
use collect::WaitingCollection;
use commit::{Answer, Order, Request};
use counters::{Counters, Kind};
use guard::Guard;
use imports::ImportsUnderWay;
use keeper::Keeper;
use names::NameOrder;
use owner::Owner;
use quota::{Claim, Room};
use report::Reporter;
use reserve::Reserve;
use tally::Tally;

use crate::cache::Cache;
use crate::facts::{Class, Time};
use crate::files::Files;
use crate::io::Pool;
use crate::log::{Fact, Gather, Record, Segments};
use crate::{Disk, Error, Folder, Memory, Wait};

/// A store of content by address. Clones are handles to the same store, which closes with the last of them.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    pool: Arc<Pool>,
    opened: OpenReport,
    background: Mutex<Option<JoinHandle<()>>>,
    ended: Mutex<Option<oneshot::Receiver<Result<(), Error>>>>,
    owner: Arc<Mutex<Option<Owner>>>,
    turns: LongWorkLimits,
}

/// Limits on long work. It runs on threads of its own, so that it never takes an I/O thread from a read.
struct LongWorkLimits {
    /// One collection or cleaning at a time.
    keeping: Arc<Semaphore>,
    /// One scrub at a time.
    scrubbing: Arc<Semaphore>,
    /// A few archives at a time: each may wait for a slow reader or writer.
    archiving: Arc<Semaphore>,
    /// One look at the usage at a time: each has the graph of all held items in memory.
    measuring: Arc<Semaphore>,
    /// Collections that wait for their turn, each with its callers.
    waiting: Arc<Mutex<Vec<WaitingCollection>>>,
}

impl Default for LongWorkLimits {
    fn default() -> LongWorkLimits {
        let turns = |count| Arc::new(Semaphore::new(count));
        LongWorkLimits {
            keeping: turns(1),
            scrubbing: turns(1),
            archiving: turns(4),
            measuring: turns(1),
            waiting: Arc::default(),
        }
    }
}

/// The state that all threads of a store share.
pub(crate) struct Core {
    config: Config,
    disk: Arc<dyn Disk>,
    reporter: Arc<Reporter>,
    segments: Arc<Segments>,
    catalogue: Catalogue,
    files: Arc<Files>,
    cache: Cache,
    read_before: RecentReads,
    guard: Guard,
    imports: ImportsUnderWay,
    tally: Mutex<Tally>,
    /// The bytes that count against the quota.
    space: Room,
    counters: Counters,
    orders: Gather<Request>,
    room: Arc<Semaphore>,
    background: Arc<Background>,
    keeper: Keeper,
    reserve: Reserve,
    /// The segment that the writer appends to.
    tail: AtomicU32,
    next_file: AtomicU64,
    /// Whether there may be files that no record names.
    unsettled: AtomicBool,
    /// Held during a collection or cleaning: one at a time.
    keeping: Mutex<()>,
    /// Held while a batch is decided, written and applied to the index, and while another index takes its place.
    applying: Mutex<()>,
    names: NameOrder,
}

impl Store {
    /// Opens the store in a folder, or creates one there. The store is locked until it is closed.
    pub fn open(folder: impl AsRef<Path>, config: Config) -> Result<Store, Error> {
        let folder = folder.as_ref();
        let disk = Folder::new(folder).map_err(|cause| Error::disk("make", folder, cause))?;
        let owner = Owner::take(folder)?;
        open::open(Arc::new(disk), config, Some(owner))
    }

    /// Whether a folder holds a store, of any format.
    pub fn is_in(folder: impl AsRef<Path>) -> bool {
        folder.as_ref().join(format::FORMAT_FILE).is_file()
    }

    /// Creates a store in memory. Its content is lost with the last handle.
    pub fn in_memory(config: Config) -> Result<Store, Error> {
        Store::open_on(Arc::new(Memory::new()), config)
    }

    /// Opens the store on a disk that no one else uses.
    pub fn open_on(disk: Arc<dyn Disk>, config: Config) -> Result<Store, Error> {
        open::open(disk, config, None)
    }

    /// The damage that opening the store found and repaired.
    pub fn opened(&self) -> &OpenReport {
        &self.inner.opened
    }

    /// Marks the upgrade from an older format ([`OpenReport::upgrade_from`]) as done: the caller has converted its
    /// data.
    pub async fn finish_upgrade(&self) -> Result<(), Error> {
        self.blocking(|core| format::finish_upgrade(&*core.disk, core.segments.salt())).await
    }

    /// The address that the process that owns the store in a folder listens on, if there is such a process.
    pub fn announced(folder: impl AsRef<Path>) -> Option<String> {
        Owner::announced(folder.as_ref())
    }

    /// Records the address that this process listens on, for other processes that find the store in use.
    pub fn announce(&self, listen: &str) -> Result<(), Error> {
        match &*lock(&self.inner.owner) {
            Some(owner) => owner.announce(listen),
            None => Ok(()),
        }
    }

    /// Writes all pending data and closes the store; other handles get [`Error::Closed`] from now on.
    pub async fn close(self) -> Result<(), Error> {
        self.inner.core.orders.close();
        let ended = lock(&self.inner.ended).take();
        let result = match ended {
            Some(ended) => ended.await.unwrap_or(Err(Error::Panicked)),
            None => Ok(()),
        };
        lock(&self.inner.owner).take();
        result
    }

    /// The store's size, and its activity since it was opened.
    pub fn stats(&self) -> Stats {
        let core = &self.inner.core;
        let tally = core.tally().clone();
        Stats {
            blobs: tally.blobs,
            put_blobs: tally.put_blobs.unwrap_or_default(),
            blob_bytes: tally.blob_bytes,
            derivations: tally.derivations,
            memos: tally.memos,
            pins: tally.pins,
            names: tally.names,
            gone: tally.gone,
            used_bytes: tally.used_bytes(),
            index_bytes: core.catalogue.index().stats().disk_bytes,
            cache: core.cache.stats(),
            operations: core.counters.list(),
            health: core.health(tally.used_bytes()),
        }
    }

    /// Runs work that may wait for the disk on an I/O thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = Arc::clone(&self.inner.core);
        self.inner.pool.run(move || work(&core)).await?
    }

    /// Runs long work on a thread of its own, in its turn. The turn ends with the work, which goes on even if the
    /// caller stops waiting for it.
    async fn in_turn<T: Send + 'static>(
        &self,
        turn: fn(&LongWorkLimits) -> &Arc<Semaphore>,
        work: impl FnOnce(&Core) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = Arc::clone(turn(&self.inner.turns)).acquire_owned().await.map_err(|_| Error::Closed)?;
        self.in_given_turn(turn, work).await
    }

    async fn in_given_turn<T: Send + 'static>(
        &self,
        turn: OwnedSemaphorePermit,
        work: impl FnOnce(&Core) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = Arc::clone(&self.inner.core);
        let (done, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("content-long".to_owned());
        let started = thread.spawn(move || {
            let _turn = turn;
            let work = std::panic::AssertUnwindSafe(|| work(&core));
            // The caller may have stopped waiting.
            let _ = done.send(std::panic::catch_unwind(work).unwrap_or(Err(Error::Panicked)));
        });
        started.map_err(|cause| Error::disk("start a thread for", Path::new("."), cause))?;
        answer.await.unwrap_or(Err(Error::Panicked))
    }

    /// Runs `work`, which only reads, on the calling thread if it need not wait for the disk, else on an I/O thread.
    async fn quick<T: Send + 'static>(
        &self,
        work: impl Fn(&Core, Wait) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        match work(&self.inner.core, Wait::No) {
            // Boxed, so that the futures of callers, which seldom come here, stay small.
            Err(Error::WouldBlock | Error::Index { .. }) => {
                Box::pin(self.reading(move |core| work(core, Wait::Yes))).await
            }
            done => done,
        }
    }

    /// Runs `work`, which only reads, on an I/O thread; once more if the index was damaged and is rebuilt.
    async fn reading<T: Send + 'static>(
        &self,
        work: impl Fn(&Core) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let work = Arc::new(work);
        let first = Arc::clone(&work);
        match self.blocking(move |core| first(core)).await {
            Err(Error::Index { .. }) if self.inner.core.healed().await => {
                self.blocking(move |core| work(core)).await
            }
            done => done,
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Store").field("disk", &self.inner.core.disk).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    /// Closes the store. On a plain thread this waits until everything is written. Inside an async runtime it must not
    /// block, so the store's own threads finish the writes and release the lock ([`Store::close`] waits for that).
    fn drop(&mut self) {
        self.core.orders.close();
        let thread = lock(&self.background).take();
        if let Some(thread) = thread.filter(|_| tokio::runtime::Handle::try_current().is_err()) {
            // That thread has sent its error to the caller of `close`.
            let _ = thread.join();
        }
    }
}

impl Core {
    fn now(&self) -> Time {
        (self.config.clock)()
    }

    fn tell(&self, event: &Event) {
        self.reporter.tell(event);
    }

    /// The current health.
    fn health(&self, used_bytes: u64) -> Health {
        let mut health = self.reporter.health();
        // The quota was exceeded once; deletions since then may have made room.
        health.over_quota &= self.config.quota_bytes.is_some_and(|quota| used_bytes > quota / 10 * 9);
        health
    }

    /// Counts an operation and reports it; `bytes` says how many bytes it moved, `None` if it found or changed nothing.
    fn count<T>(
        &self,
        kind: Kind,
        result: Result<T, Error>,
        bytes: impl FnOnce(&T) -> Option<u64>,
    ) -> Result<T, Error> {
        let outcome = match result.as_ref().map(bytes) {
            Ok(Some(bytes)) => Outcome::Bytes(bytes),
            Ok(None) => Outcome::Nothing,
            Err(_) => Outcome::Failed,
        };
        self.counters.count(kind, outcome);
        if self.config.listener.is_some() {
            self.tell(&Event::Done { operation: kind.name(), outcome });
        }
        result
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Sends an order to the writer and waits for its answer.
    async fn submit(&self, order: Order, bytes: usize, claim: Claim) -> Result<Answer, Error> {
        let room = self.queue_room(bytes).await?;
        let (done, answer) = oneshot::channel();
        self.leave(Request { order, done: Some(done), room: Some(room), claim })?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Waits for room in the queue.
    async fn queue_room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let units = u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1, self.config.queue_bytes);
        Arc::clone(&self.room).acquire_many_owned(units).await.map_err(|_| Error::Closed)
    }

    /// Sends an order to the writer and waits for its answer, on a thread that may block.
    fn submit_blocking(&self, order: Order) -> Result<Answer, Error> {
        let (done, answer) = oneshot::channel();
        self.leave(Request { order, done: Some(done), room: None, claim: Claim::default() })?;
        answer.blocking_recv().unwrap_or(Err(Error::Closed))
    }

    fn leave(&self, request: Request) -> Result<(), Error> {
        self.orders.push(request).map_err(|_| Error::Closed)
    }

    /// Writes one fact, in the room of this claim.
    async fn write(&self, fact: Fact, class: Class, claim: Claim) -> Result<Answer, Error> {
        let (bytes, crc) = (fact.size_hint(), fact.long_body_crc());
        let record = Record { at: self.now(), class, fact };
        self.submit(Order::Write(record, crc), bytes, claim).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
