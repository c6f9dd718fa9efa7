//! redb 4.4, a B-tree in one file: a transaction per durable point, the entries of a batch in key order.

use std::path::Path;
use std::sync::OnceLock;

use redb::{Database, ReadOnlyTable, ReadableDatabase, TableDefinition};

use super::{Contender, Entry, Key, Result};

const TABLE: TableDefinition<'_, &[u8; 33], &[u8]> = TableDefinition::new("memos");

pub(super) struct Redb {
    /// What lookups read, until the next batch: one transaction for many lookups is redb's fastest way.
    snapshot: OnceLock<ReadOnlyTable<&'static [u8; 33], &'static [u8]>>,
    database: Database,
}

impl Redb {
    pub(super) fn open(folder: &Path, cache_bytes: u64) -> Result<Redb> {
        let path = folder.join("index.redb");
        let mut builder = Database::builder();
        builder.set_cache_size(cache_bytes as usize);
        let database = match path.exists() {
            true => builder.open(path)?,
            false => builder.create(path)?,
        };
        Ok(Redb { snapshot: OnceLock::new(), database })
    }
}

impl Contender for Redb {
    fn insert(&mut self, batch: &mut [Entry]) -> Result<()> {
        self.snapshot = OnceLock::new();
        batch.sort_unstable_by_key(|entry| entry.0);
        let transaction = self.database.begin_write()?;
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in &*batch {
            table.insert(key, &value[..])?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }

    fn build(&mut self, entries: &mut [Entry]) -> Result<()> {
        self.insert(entries)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn look(&self, key: &Key, see: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = match self.snapshot.get() {
            Some(table) => table,
            None => {
                let table = self.database.begin_read()?.open_table(TABLE)?;
                self.snapshot.get_or_init(|| table)
            }
        };
        let value = table.get(key)?;
        if let Some(value) = &value {
            see(value.value());
        }
        Ok(value.is_some())
    }

    fn check(&mut self) -> Option<Result<()>> {
        self.snapshot = OnceLock::new();
        Some(match self.database.check_integrity() {
            Ok(true) => Ok(()),
            Ok(false) => Err("redb had to repair it".into()),
            Err(error) => Err(error.into()),
        })
    }
}
