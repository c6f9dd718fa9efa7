//! The index: finds the newest entry of a key without reading the log.
//!
//! The index is made from the log: entries that are lost or damaged here are read from the log again. Entries
//! first go to a table in memory. A full table is frozen and written as a run, a sorted file that never changes; runs
//! of one level are merged into one of the next. A manifest names the runs that count and the log position they cover,
//! so that a crash at any moment leaves an index that covers less, and never a wrong one.
//!
//! Reading order: the modules as listed.

mod key;
mod error;
mod pairs;
mod table;
mod home;
mod span;
mod block;
mod top;
mod filter;
mod footer;
mod manifest;
mod run;
mod writer;
mod cursor;
mod merged;
mod get;
mod scan;
mod work;
mod verify;
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

pub(crate) use crate::address::BuildAddress as BuildBits;
pub(crate) use error::Error;
pub(crate) use get::View;
pub(crate) use key::Key;
pub(crate) use scan::Scan;

use crate::Disk;
use crate::log::Position;
use block::VALUE_MOST;
use home::{Home, Name};
use manifest::{Manifest, NOTE_MOST};
use run::Run;
pub(crate) use table::Change;
use table::Table;
use work::Work;

/// The index. Shared by reference: any thread reads, one thread applies changes, one does the background work.
pub(crate) struct Index {
    settings: Settings,
    home: Home,
    state: RwLock<Arc<State>>,
    /// Held while the recent table changes or is frozen.
    writing: Mutex<CoveredPositions>,
    work: Mutex<Work>,
}

/// Bounds on the memory of an index and on its merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The recent table is frozen at about this size.
    pub(crate) recent_bytes: usize,
    /// The number of runs of a level that are merged into one run of the next, at least 2.
    pub(crate) fan_in: usize,
    /// The writer should pause when this many frozen tables wait to be written.
    pub(crate) frozen_most: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { recent_bytes: 16 << 20, fan_in: 4, frozen_most: 4 }
    }
}

/// The log position up to which the runs cover the log, and the owner's note at that position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogCoverage {
    pub(crate) position: Position,
    pub(crate) note: Vec<u8>,
}

/// The size of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// In memory and in runs. A key that was changed twice counts twice until a merge drops the older change.
    pub(crate) entries: u64,
    pub(crate) runs: usize,
    pub(crate) disk_bytes: u64,
    pub(crate) memory_bytes: usize,
}

/// The log positions up to which the log is covered.
struct CoveredPositions {
    /// By tables and runs.
    applied: Option<Position>,
    /// By frozen tables and runs, without the recent table.
    frozen: Option<Position>,
}

/// The tables and runs in which a key is looked up. It is replaced, never changed, so that a reader's copy stays
/// consistent.
struct State {
    recent: Arc<Table>,
    /// Newest first.
    frozen: Vec<Arc<FrozenTable>>,
    /// Newest first.
    runs: Vec<Arc<Run>>,
    generation: Generation,
}

/// What the runs hold: a new one for each table that is written as a run, not for merged runs. No two indexes of a process
/// have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Generation {
    fn next() -> Generation {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Generation(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A table that no longer changes.
struct FrozenTable {
    table: Arc<Table>,
    covered: LogCoverage,
}

impl Index {
    /// Opens the runs that the newest manifest names; without a manifest, an empty index that covers nothing.
    ///
    /// [`Error::Damaged`]: reset the index and rebuild it from the log.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        settings: Settings,
    ) -> Result<(Index, Option<LogCoverage>), Error> {
        let home = Home::new(disk, folder)?;
        let names = home.list()?;
        let newest = names.iter().filter_map(Name::manifest).max();
        let manifest = newest.map(|number| Manifest::read(&home, number)).transpose()?;
        let listed = manifest.as_ref().map_or(&[][..], |manifest| &manifest.runs);
        let runs = listed.iter().map(|listed| Run::open(&home, listed).map(Arc::new));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        home.remove_all(|name| match name {
            Name::Manifest(number) => Some(number) != newest,
            Name::Run(number) => listed.iter().all(|run| run.number != number),
            Name::Draft(_) => true,
        })?;
        let covered = manifest.map(|manifest| manifest.covered);
        Ok((Index::new(home, &names, settings, runs, covered.clone()), covered))
    }

    /// Removes all files of an index, damaged or not, and opens an empty one.
    pub(crate) fn reset(disk: Arc<dyn Disk>, folder: &Path, settings: Settings) -> Result<Index, Error> {
        let home = Home::new(disk, folder)?;
        let names = home.list()?;
        home.remove_all(|_| true)?;
        home.sync()?;
        Ok(Index::new(home, &names, settings, Vec::new(), None))
    }

    fn new(
        home: Home,
        used: &[Name],
        settings: Settings,
        runs: Vec<Arc<Run>>,
        covered: Option<LogCoverage>,
    ) -> Index {
        let generation = Generation::next();
        let state = State { recent: Arc::default(), frozen: Vec::new(), runs, generation };
        let position = covered.as_ref().map(|covered| covered.position);
        let last_number = used.iter().map(Name::number).max().unwrap_or(0);
        Index {
            settings: Settings { fan_in: settings.fan_in.max(2), ..settings },
            home,
            state: RwLock::new(Arc::new(state)),
            writing: Mutex::new(CoveredPositions { applied: position, frozen: position }),
            work: Mutex::new(Work { last_number, covered, merges: Vec::new() }),
        }
    }

    /// Applies the changes that the log has up to `position`; later lookups see them. Called by one thread.
    ///
    /// If the recent table is full after that, it is frozen and `note` is called, so that the note belongs to exactly
    /// this position. A value is at most [`VALUE_MOST`] bytes long, a note [`NOTE_MOST`].
    pub(crate) fn apply(
        &self,
        changes: impl IntoIterator<Item = (Key, Change)>,
        position: Position,
        note: impl FnOnce() -> Vec<u8>,
    ) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = Arc::clone(&self.state().recent);
        for (key, change) in changes {
            let len = change.as_ref().map_or(0, |value| value.len());
            assert!(len <= VALUE_MOST, "a value of the index has at most {VALUE_MOST} bytes, not {len}");
            recent.insert(key, change);
        }
        writing.applied = Some(position);
        if recent.bytes() >= self.settings.recent_bytes {
            self.freeze(&mut writing, LogCoverage { position, note: note() });
        }
    }

    /// The log position up to which changes were applied; `None` for an empty index.
    pub(crate) fn applied(&self) -> Option<Position> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner).applied
    }

    /// An empty index in the same folder, to take the place of this one by [`Index::replace`]. Once it writes its first
    /// run, the files of this index are removed; readers have them open. This index does no background work meanwhile.
    pub(crate) fn beside(&self) -> Result<Index, Error> {
        let used = self.home.list()?;
        let index = Index::new(self.home.clone(), &used, self.settings, Vec::new(), None);
        let last_number = self.work.lock().unwrap_or_else(PoisonError::into_inner).last_number;
        let mut work = index.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.last_number = work.last_number.max(last_number);
        drop(work);
        Ok(index)
    }

    /// Takes the tables and runs of another index in the same folder. Nothing is applied meanwhile.
    pub(crate) fn replace(&self, other: Index) {
        let Index { state, writing, work, .. } = other;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner), work);
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) =
            writing.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        // Files of unfinished merges.
        drop(before);
    }

    /// Freezes all changes that were applied, for [`Index::write_frozen`] to make it durable. `note` is called as in
    /// [`Index::apply`], if there is something to freeze.
    pub(crate) fn freeze_all(&self, note: impl FnOnce() -> Vec<u8>) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_frozen = writing.applied == writing.frozen && self.state().recent.len() == 0;
        if let Some(position) = writing.applied.filter(|_| !is_frozen) {
            self.freeze(&mut writing, LogCoverage { position, note: note() });
        }
    }

    /// The entries whose key starts with `prefix` and is behind `after`, in key order.
    ///
    /// It is a snapshot: it has all changes of one [`Index::apply`] or none of them.
    pub(crate) fn scan(&self, prefix: &[u8], after: Option<&Key>) -> Result<Scan, Error> {
        let from = scan::start(prefix, after);
        let mut changes = BTreeMap::new();
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        for table in state.tables() {
            table.collect(prefix, from.as_ref(), &mut changes);
        }
        drop(writing);
        Scan::new(prefix, from.as_ref(), changes, &state.runs)
    }

    /// Whether lookups read this file, or the file is not known. False for a run that was merged or replaced: damage that
    /// a reader found there is no longer damage of the index.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        !self.home.is_run(path) || self.state().runs.iter().any(|run| run.file.path == path)
    }

    /// The size of the index.
    pub(crate) fn stats(&self) -> Stats {
        let state = self.state();
        let mut stats = Stats { runs: state.runs.len(), ..Stats::default() };
        for table in state.tables() {
            stats.entries += table.len() as u64;
            stats.memory_bytes += table.bytes();
        }
        for run in &state.runs {
            stats.entries += run.listed.entries;
            stats.disk_bytes += run.listed.bytes;
            stats.memory_bytes += run.memory();
        }
        stats
    }

    /// Begins a new recent table.
    fn freeze(&self, writing: &mut CoveredPositions, covered: LogCoverage) {
        let len = covered.note.len();
        assert!(len <= NOTE_MOST, "a note in the index has at most {NOTE_MOST} bytes, not {len}");
        writing.frozen = Some(covered.position);
        self.change(|state| {
            let mut frozen = state.frozen.clone();
            frozen.insert(0, Arc::new(FrozenTable { table: Arc::clone(&state.recent), covered }));
            let State { generation, .. } = *state;
            State { recent: Arc::default(), frozen, runs: state.runs.clone(), generation }
        });
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&State) -> State) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let changed = Arc::new(change(&state));
        let before = std::mem::replace(&mut *state, changed);
        drop(state);
        // Not under the lock: this may free a whole table.
        drop(before);
    }
}

impl State {
    /// The tables in memory, newest first.
    fn tables(&self) -> impl Iterator<Item = &Table> {
        std::iter::once(&*self.recent).chain(self.frozen.iter().map(|frozen| &*frozen.table))
    }
}
