//! redb 4.4: a B-tree in one file, as the peer that keeps small values durably by key.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, TableDefinition};

use super::callers::{Rate, address};
use crate::watch::Watch;

const TABLE: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("memos");

/// As long as a memo's row in the store's index.
const VALUE: [u8; 117] = [0x5a; 117];

pub(super) struct Redb(Database);

impl Redb {
    pub(super) fn create(path: &Path) -> Redb {
        let redb = Redb(Database::create(path).expect("redb makes a file"));
        redb.insert(0..0);
        redb
    }

    pub(super) fn open(path: &Path) -> Redb {
        Redb(Database::open(path).expect("redb opens its file"))
    }

    /// Inserts entries, durably, in one transaction.
    pub(super) fn insert(&self, numbers: Range<u64>) {
        let transaction = self.0.begin_write().expect("redb writes");
        let mut table = transaction.open_table(TABLE).expect("redb has the table");
        for number in numbers {
            table.insert(address(number).as_bytes(), &VALUE[..]).expect("redb inserts");
        }
        drop(table);
        transaction.commit().expect("redb commits");
    }

    /// Inserts for so long, so many at a time, with numbers from the first on.
    pub(super) fn insert_for(&self, at_a_time: u64, mut first: u64, window: Duration) -> Rate {
        let (watch, begin, end) = (Watch::start(), first, Instant::now() + window);
        while Instant::now() < end {
            self.insert(first..first + at_a_time);
            first += at_a_time;
        }
        Rate::of(first - begin, watch.stop())
    }

    /// Looks these up, in one transaction.
    pub(super) fn get(&self, numbers: impl IntoIterator<Item = u64>) {
        let transaction = self.0.begin_read().expect("redb reads");
        let table = transaction.open_table(TABLE).expect("redb has the table");
        for number in numbers {
            let value = table.get(address(number).as_bytes()).expect("redb looks up");
            // A copy, as the store gives one.
            let value = value.expect("it was inserted").value().to_vec();
            std::hint::black_box(value);
        }
    }
}
