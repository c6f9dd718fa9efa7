//! The index by itself, without a log or a store: for the measurements and the bit-flip experiment in `bench/`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use crate::index::{Index, Key, Settings};
use crate::log::Position;
use crate::{Folder, Wait};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// An index in a folder, with the settings that a store gives it. Its background work is done by the caller's thread.
pub struct BareIndex {
    index: Index,
    /// The position in the log that each batch stands for: any that grows will do.
    batches: u64,
}

impl BareIndex {
    /// Opens the index in this folder; begins an empty one when there is none.
    pub fn open(folder: &Path) -> Result<BareIndex> {
        let disk = Arc::new(Folder::new(folder)?);
        let (index, covered) = Index::open(disk, Path::new("index"), Settings::default())?;
        Ok(BareIndex { index, batches: covered.map_or(0, |covered| covered.position.offset) })
    }

    /// Inserts entries; a full table is written to disk, and due merges are done, before this returns.
    pub fn insert<'a>(&mut self, entries: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<()> {
        self.batches += 1;
        let changes = entries.into_iter().map(|(key, value)| {
            let key = Key::new(key).expect("a key has 1 to 65 bytes");
            (key, Some(value.into()))
        });
        let position = Position { segment: 0, offset: self.batches };
        self.index.apply(changes, position, Vec::new);
        while self.index.should_work() {
            self.index.work()?;
        }
        Ok(())
    }

    /// Makes all entries durable, and does the merges that are then due.
    pub fn sync(&self) -> Result<()> {
        self.index.freeze_all(Vec::new);
        while self.index.should_work() {
            self.index.work()?;
        }
        Ok(())
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Box<[u8]>>> {
        let Some(key) = Key::new(key) else { return Ok(None) };
        Ok(self.index.get(&key, Wait::Yes)?)
    }

    /// Reads all files and checks them.
    pub fn verify(&self) -> Result<()> {
        Ok(self.index.verify(&mut |_| {})?)
    }
}
