//! fjall 3.1, a log-structured merge tree: sorted tables with a journal before them, merged by threads of its own.

use std::path::Path;
use std::time::Duration;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Contender, Entry, Key, Result};

pub(super) struct Fjall {
    keyspace: Keyspace,
    database: Database,
}

/// How often fjall must be found idle, and how long to wait in between.
const IDLE_LOOKS: usize = 10;
const PAUSE: Duration = Duration::from_millis(1);

impl Fjall {
    pub(super) fn open(folder: &Path, cache_bytes: u64) -> Result<Fjall> {
        let database = Database::builder(folder).cache_size(cache_bytes).open()?;
        let keyspace = database.keyspace("memos", KeyspaceCreateOptions::default)?;
        Ok(Fjall { keyspace, database })
    }
}

impl Contender for Fjall {
    fn insert(&mut self, batch: &mut [Entry]) -> Result<()> {
        let mut write = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in &*batch {
            write.insert(&self.keyspace, &key[..], &value[..]);
        }
        Ok(write.commit()?)
    }

    /// Past the journal, in key order: fjall's way to load much at once.
    fn build(&mut self, entries: &mut [Entry]) -> Result<()> {
        entries.sort_unstable_by_key(|entry| entry.0);
        let mut ingestion = self.keyspace.start_ingestion()?;
        for (key, value) in &*entries {
            ingestion.write(&key[..], &value[..])?;
        }
        Ok(ingestion.finish()?)
    }

    fn settle(&mut self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        let mut idle = 0;
        while idle < IDLE_LOOKS {
            let busy = self.database.outstanding_flushes() + self.database.active_compactions() > 0;
            idle = if busy { 0 } else { idle + 1 };
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn look(&self, key: &Key, see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.keyspace.get(key)?;
        if let Some(value) = &value {
            see(value);
        }
        Ok(value.is_some())
    }

    /// fjall offers no check of all its files.
    fn check(&mut self) -> Option<Result<()>> {
        None
    }
}
