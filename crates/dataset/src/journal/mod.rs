//! The journal: every reply that was paid for, so that none is paid for twice.
//!
//! A reply is recorded under a key: the model's identity and parameters, the whole request, and its sample (the row's
//! stable number and the attempt). It is appended before anything that depends on it starts, so a killed build finds it
//! when it is run again. Replies that could not be used are recorded too: they were paid for.

mod entry;
mod key;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_content::{Address, Config, Cost, NewMemo, Store};
use futures_util::FutureExt;

pub(crate) use entry::{Entry, RecordedReply, RecordedVector};
pub(crate) use key::Keys;

use crate::stop::{StopReason, StopSwitch};

/// Where the journal of a build is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JournalPlace {
    /// In the output folder.
    #[default]
    OutputFolder,
    /// In this folder, which several datasets can share, one after another.
    Folder(PathBuf),
    /// There is none: a build that is interrupted pays again for the row groups that are not on disk.
    Nowhere,
}

/// A journal could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the journal {}: {cause}", path.display())]
pub struct Error {
    /// What failed, as a verb.
    pub action: &'static str,
    /// The journal's folder.
    pub path: PathBuf,
    #[source]
    pub cause: anabranch_content::Error,
}

/// The recorded replies of a build. Clones share them.
#[derive(Clone)]
pub(crate) struct Journal {
    path: Arc<Path>,
    store: Store,
    stop: StopSwitch,
}

/// A journal that the models of a dataset use once it is open.
pub(crate) type JournalSlot = Arc<OnceLock<Journal>>;

/// The settings of the store: entries are small, and each is read once at most.
fn config() -> Config {
    Config {
        cache_bytes: 4 << 20,
        packed_most: 1 << 20,
        recent_bytes: 8 << 20,
        queue_bytes: 16 << 20,
        io_threads: 2,
        ..Config::default()
    }
}

impl Journal {
    /// Opens a journal, or makes one. An entry that cannot be written stops the build by `stop`. Blocks.
    pub(crate) fn open(path: &Path, stop: StopSwitch) -> Result<Journal, Error> {
        let store = Store::open(path, config()).map_err(|cause| Error {
            action: "open",
            path: path.to_owned(),
            cause,
        })?;
        Ok(Journal { path: path.into(), store, stop })
    }

    /// The journal's folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether an entry is missing for sure, without a look at the disk.
    pub(crate) fn surely_lacks(&self, key: &Address) -> bool {
        matches!(self.store.recall(key).now_or_never(), Some(Ok(None)))
    }

    /// The entry under a key.
    pub(crate) async fn find(&self, key: &Address) -> Result<Option<Entry>, Error> {
        let failed = |cause| self.failed("read", cause);
        let Some(memo) = self.store.recall(key).await.map_err(failed)? else { return Ok(None) };
        // A power cut may have taken the bytes and left the memo.
        let bytes = self.store.get(&memo.output).await.map_err(failed)?;
        Ok(bytes.and_then(|bytes| Entry::decode(&bytes)))
    }

    /// Records an entry: a crash of the process does not lose it once this returns.
    pub(crate) async fn record(&self, key: Address, entry: &Entry) -> Result<(), Error> {
        let bytes = entry.encode();
        let made = NewMemo {
            derivation: key,
            output: Address::of(&bytes),
            size: bytes.len() as u64,
            cost: Cost { cpu: Duration::ZERO, tokens: entry.tokens(), micros: 0 },
            inputs: &[],
        };
        self.store.append(made, bytes).await.map_err(|cause| self.failed("write", cause))
    }

    /// Waits until all entries survive a power cut.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        self.store.sync().await.map_err(|cause| self.failed("sync", cause))
    }

    /// Writes everything and releases the folder.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        self.store.clone().close().await.map_err(|cause| self.failed("close", cause))
    }

    /// A build whose journal fails must not go on to pay for replies that nobody keeps.
    fn failed(&self, action: &'static str, cause: anabranch_content::Error) -> Error {
        let error = |cause| Error { action, path: self.path.to_path_buf(), cause };
        self.stop.stop(StopReason::Journal(Arc::new(error(cause.clone()))));
        error(cause)
    }
}
