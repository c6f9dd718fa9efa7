//! The journal: every reply that was paid for, so that none is paid for twice.
//!
//! A reply is recorded under a key: the model's identity and parameters, the whole request, and its sample (the row's
//! stable number and the attempt). It is appended before anything that depends on it starts, so a killed build finds it
//! when it is run again. Replies that could not be used are recorded too: they were paid for.

mod origin;
mod entry;
mod ledger;
mod key;
mod page;
mod tail;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anabranch_content::{Address, Config, Cost, NewMemo, Store};
use anabranch_model::Identity;
use bytes::Bytes;
use futures_util::FutureExt;

pub(crate) use entry::{Entry, RecordedEntry, RecordedReply, RecordedVector};
pub(crate) use key::Keys;
pub use ledger::Figures;
pub(crate) use ledger::LedgerTotals;
pub(crate) use origin::{Origin, OriginNames};

use crate::stop::{StopReason, StopSwitch};
use page::Page;
use tail::{MovingEntries, Tail};

/// The location of a build's journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JournalPlace {
    /// In the output folder.
    #[default]
    OutputFolder,
    /// In this folder, which several datasets can share, one after another.
    Folder(PathBuf),
    /// There is no journal. An interrupted build pays again for the row groups that are not on disk.
    Nowhere,
}

/// A journal could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the journal {}: {cause}", path.display())]
pub struct Error {
    /// The action that failed, as a verb.
    pub action: &'static str,
    /// The journal's folder.
    pub path: PathBuf,
    #[source]
    pub cause: Cause,
}

/// The failure below a journal.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Cause {
    /// The store of the journal failed.
    #[error("{0}")]
    Store(#[source] Box<anabranch_content::Error>),
    /// The file of the latest entries failed.
    #[error("{0}")]
    File(#[source] Arc<io::Error>),
}

impl From<anabranch_content::Error> for Cause {
    fn from(error: anabranch_content::Error) -> Cause {
        Cause::Store(Box::new(error))
    }
}

impl From<io::Error> for Cause {
    fn from(error: io::Error) -> Cause {
        Cause::File(Arc::new(error))
    }
}

/// The recorded replies of a build. Clones share them.
#[derive(Clone)]
pub(crate) struct Journal {
    path: Arc<Path>,
    store: Store,
    tail: Arc<Tail>,
    /// Held while entries move from the tail to the store.
    moving: Arc<tokio::sync::Mutex<()>>,
    /// It had no entry when it was opened.
    was_empty: bool,
    /// The names of the dataset and of its build, for the origins of entries.
    build: Arc<(String, String)>,
    stop: StopSwitch,
}

/// Entries in the tail, in bytes, at which they move to the store at once.
const TAIL_MOST: usize = 4 << 20;

/// A journal that the models of a dataset use once it is open.
pub(crate) type JournalSlot = Arc<OnceLock<Journal>>;

/// The settings of the store: entries are small, and each is read once at most.
fn config() -> Config {
    Config {
        cache_bytes: 4 << 20,
        packed_most: 1 << 20,
        recent_bytes: 4 << 20,
        queue_bytes: 8 << 20,
        io_threads: 2,
        ..Config::default()
    }
}

impl Journal {
    /// Opens a journal, or makes one. An entry that cannot be written stops the build by `stop`. Blocks.
    pub(crate) fn open(path: &Path, stop: StopSwitch) -> Result<Journal, Error> {
        let failed = |cause: Cause| Error { action: "open", path: path.to_owned(), cause };
        let store = Store::open(path, config()).map_err(|error| failed(error.into()))?;
        let tail = Tail::open(path).map_err(|error| failed(error.into()))?;
        let was_empty = tail.is_empty() && store.stats().memos == 0;
        let (tail, moving) = (Arc::new(tail), Arc::default());
        Ok(Journal { path: path.into(), store, tail, moving, was_empty, build: Arc::default(), stop })
    }

    /// The journal for a build of a dataset: its entries are counted under these names.
    pub(crate) fn for_build(&self, dataset: &str, build: &str) -> Journal {
        Journal { build: Arc::new((dataset.to_owned(), build.to_owned())), ..self.clone() }
    }

    /// The origin of the replies that a column gets from a model.
    pub(crate) fn origin(&self, column: &str, alias: &str, model: &Identity) -> Origin {
        let (dataset, build) = &*self.build;
        let model = format!("{}/{}", model.provider, model.model);
        let (column, alias) = (column.to_owned(), alias.to_owned());
        Origin::new(&OriginNames { dataset: dataset.clone(), build: build.clone(), column, alias, model })
    }

    /// True if the journal had no entry when it was opened: then it has none for a request that was not made since.
    pub(crate) fn was_empty(&self) -> bool {
        self.was_empty
    }

    /// The journal's folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if the journal certainly has no entry under a key, for a request that was not made since it was opened. It
    /// does not read the disk.
    pub(crate) fn surely_lacks(&self, key: &Address) -> bool {
        self.was_empty || self.lacks(key)
    }

    /// True if the journal has no entry under a key at this moment. It does not read the disk.
    pub(crate) fn lacks(&self, key: &Address) -> bool {
        self.tail.find(key).is_none() && matches!(self.store.recall(key).now_or_never(), Some(Ok(None)))
    }

    /// The entry under a key.
    pub(crate) async fn find(&self, key: &Address) -> Result<Option<Entry>, Error> {
        Ok(self.bytes(key).await?.and_then(|entry| Entry::decode(&entry)))
    }

    /// The entry under a key, with its part of the ledger.
    pub(crate) async fn recorded(&self, key: &Address) -> Result<Option<RecordedEntry>, Error> {
        Ok(self.bytes(key).await?.and_then(|entry| RecordedEntry::decode(&entry)))
    }

    async fn bytes(&self, key: &Address) -> Result<Option<Bytes>, Error> {
        if let Some(entry) = self.tail.find(key) {
            return Ok(Some(entry));
        }
        let failed = |cause: anabranch_content::Error| self.failed("read", cause.into());
        let Some(memo) = self.store.recall(key).await.map_err(failed)? else { return Ok(None) };
        // A power cut may have taken the bytes and left the memo.
        let page = self.store.get(&memo.output).await.map_err(failed)?;
        Ok(page.and_then(|page| page::find(&page, key)))
    }

    /// The calls, tokens and time of all entries that were ever recorded, by origin.
    pub(crate) fn ledger(&self) -> LedgerTotals {
        self.tail.ledger().totals()
    }

    /// Records an entry, and counts it: a crash of the process does not lose it once this returns.
    pub(crate) async fn record(
        &self,
        key: Address,
        (origin, figures): (&Origin, Figures),
        entry: &Entry,
    ) -> Result<(), Error> {
        let bytes = Bytes::from(entry.encode(origin, &figures));
        let written = self.tail.append(key, bytes, (origin, figures));
        match written.map_err(|error| self.failed("write", error.into()))? {
            TAIL_MOST.. => self.empty_tail().await,
            _ => Ok(()),
        }
    }

    /// Waits until all entries survive a power cut.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        self.empty_tail().await?;
        self.store.sync().await.map_err(|error| self.failed("write", error.into()))
    }

    /// Moves the entries of the tail to the store.
    async fn empty_tail(&self) -> Result<(), Error> {
        let _turn = self.moving.lock().await;
        let Some(moving) = self.tail.rotate() else { return Ok(()) };
        let kept = keep(&self.store, &moving).await;
        kept.map_err(|error| self.failed("write", error.into()))?;
        let counted = moving.ledger.write(&self.path, moving.last);
        counted.map_err(|error| self.failed("write", error.into()))?;
        self.tail.moved().map_err(|error| self.failed("write", error.into()))
    }

    /// Writes everything and releases the folder.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        let synced = self.sync().await;
        let closed = self.store.clone().close().await;
        synced.and(closed.map_err(|error| self.failed("close", error.into())))
    }

    /// Releases the folder of a journal that was only read.
    pub(crate) async fn release(&self) -> Result<(), Error> {
        self.store.clone().close().await.map_err(|error| self.failed("close", error.into()))
    }

    /// Stops a build whose journal fails, because it must not pay for replies that are not recorded.
    fn failed(&self, action: &'static str, cause: Cause) -> Error {
        let error = |cause| Error { action, path: self.path.to_path_buf(), cause };
        self.stop.stop(StopReason::Journal(Arc::new(error(cause.clone()))));
        error(cause)
    }
}

/// Stores entries.
async fn keep(store: &Store, moving: &MovingEntries) -> Result<(), anabranch_content::Error> {
    let mut known = Vec::new();
    if moving.again {
        let keys: Vec<Address> = moving.entries.keys().copied().collect();
        known = store.recall_many(&keys).await?;
    }
    let mut place = 0;
    while let Some(Page { bytes, keys }) = page::next_page(&moving.entries, &known, &mut place) {
        let (output, size) = (Address::of(&bytes), bytes.len() as u64);
        let memo =
            |key: &Address| NewMemo { derivation: *key, output, size, cost: Cost::default(), inputs: &[] };
        let made: Vec<NewMemo<'_>> = keys.iter().map(memo).collect();
        store.append(bytes, &made).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
