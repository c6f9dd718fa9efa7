//! The store's own index. Its background work is done between batches by the same thread, as if there were no second.

use std::path::Path;

use anabranch_content::bare_index::BareIndex;

use super::{Contender, Entry, Key, Result};

/// A store hands over what one commit of its log brought.
const AT_ONCE: usize = 1_000;

pub(super) struct Ours(BareIndex);

impl Ours {
    pub(super) fn open(folder: &Path) -> Result<Ours> {
        BareIndex::open(folder).map(Ours)
    }
}

impl Contender for Ours {
    fn insert(&mut self, batch: &mut [Entry]) -> Result<()> {
        for entries in batch.chunks(AT_ONCE) {
            self.0.insert(entries.iter().map(|(key, value)| (&key[..], &value[..])))?;
        }
        self.0.sync()
    }

    fn build(&mut self, entries: &mut [Entry]) -> Result<()> {
        self.insert(entries)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn look(&self, key: &Key, see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.get(key)?;
        if let Some(value) = &value {
            see(value);
        }
        Ok(value.is_some())
    }

    fn check(&mut self) -> Option<Result<()>> {
        Some(self.0.verify())
    }
}
