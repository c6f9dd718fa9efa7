//! Background work: writes frozen tables as runs, merges runs, and writes a manifest for each change.

use std::ops::Bound;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::cursor::Cursor;
use super::home::{Draft, Name};
use super::manifest::Manifest;
use super::merged::{MergedSources, Source};
use super::run::Run;
use super::writer::Writer;
use super::{Error, FrozenTable, Generation, Index, LogCoverage, State};

/// The part of a merge done per piece of work, in bytes. A table that is frozen in the meantime waits no longer than
/// this.
const SLICE: usize = 8 << 20;

/// The writer should pause when a level has this many times the runs of one merge.
const LEVEL_MOST: usize = 3;

/// The state of the background thread between two pieces of work.
pub(super) struct Work {
    /// The highest number of any file so far.
    pub(super) last_number: u64,
    /// The last manifest.
    pub(super) covered: Option<LogCoverage>,
    /// At most one per level.
    pub(super) merges: Vec<Merge>,
}

/// A merge of several runs into one.
pub(super) struct Merge {
    /// Some runs of one level, newest first.
    inputs: Vec<Arc<Run>>,
    merged: MergedSources,
    output: Writer,
    /// No run is older than the inputs, so deletions need not be kept.
    is_oldest: bool,
}

impl Index {
    /// Is there background work to do?
    pub(crate) fn should_work(&self) -> bool {
        let state = self.state();
        !state.frozen.is_empty() || self.due(&state).is_some()
    }

    /// Should the writer pause until more background work is done, so that memory and runs stay bounded? While
    /// [`Index::work`] fails, a pause does not help.
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.state();
        state.frozen.len() >= self.settings.frozen_most
            || state.levels().any(|runs| runs.len() >= LEVEL_MOST * self.settings.fan_in)
    }

    /// Does one bounded piece of background work: writes one frozen table, or does a part of a merge. Returns
    /// whether there is more to do. Called by one thread. An error loses no entry, and the next call tries again.
    pub(crate) fn work(&self) -> Result<bool, Error> {
        let mut work = self.working();
        let state = self.state();
        match (state.frozen.last(), self.due(&state)) {
            (Some(frozen), _) => self.write_table(&mut work, frozen)?,
            (None, Some(runs)) => self.go_on_merging(&mut work, &state, runs)?,
            (None, None) => {}
        }
        Ok(self.should_work())
    }

    /// The number of frozen tables that wait to be written.
    pub(crate) fn frozen(&self) -> usize {
        self.state().frozen.len()
    }

    /// Writes the oldest frozen tables as runs, at most `most` of them. The caller has made the part of the log that
    /// they cover durable.
    pub(crate) fn write_frozen(&self, most: usize) -> Result<(), Error> {
        let mut work = self.working();
        for _ in 0..most {
            let state = self.state();
            let Some(frozen) = state.frozen.last() else { break };
            self.write_table(&mut work, frozen)?;
        }
        Ok(())
    }

    /// Does a part of a merge, if one is due; writes no frozen table.
    pub(crate) fn merge(&self) -> Result<(), Error> {
        let mut work = self.working();
        let state = self.state();
        match self.due(&state) {
            Some(runs) => self.go_on_merging(&mut work, &state, runs),
            None => Ok(()),
        }
    }

    fn working(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runs to merge next: the oldest of the lowest level that is full. Low levels first, because they fill up
    /// fastest, and a lookup costs more with each run.
    fn due<'a>(&self, state: &'a State) -> Option<&'a [Arc<Run>]> {
        let runs = state.levels().find(|runs| runs.len() >= self.settings.fan_in)?;
        Some(&runs[runs.len() - self.settings.fan_in..])
    }

    fn write_table(&self, work: &mut Work, frozen: &Arc<FrozenTable>) -> Result<(), Error> {
        let mut output = Writer::create(&self.home, work.next_number(), 0, frozen.table.points() as u64)?;
        frozen.table.in_order(|key, change| output.add(key.as_bytes(), change.as_deref()))?;
        let fresh = output.finish()?;
        self.commit(work, Replacement { frozen: Some(frozen), inputs: &[], fresh })
    }

    fn go_on_merging(&self, work: &mut Work, state: &State, inputs: &[Arc<Run>]) -> Result<(), Error> {
        let level = inputs[0].listed.level;
        let begun = work.merges.iter().position(|merge| merge.inputs[0].listed.level == level);
        let mut merge = match begun {
            Some(number) => work.merges.swap_remove(number),
            None => self.begin_merging(work, state, inputs)?,
        };
        if !merge.go_on()? {
            work.merges.push(merge);
            return Ok(());
        }
        let fresh = merge.output.finish()?;
        self.commit(work, Replacement { frozen: None, inputs: &merge.inputs, fresh })
    }

    fn begin_merging(&self, work: &mut Work, state: &State, inputs: &[Arc<Run>]) -> Result<Merge, Error> {
        let level = inputs[0].listed.level;
        let mut sources = Vec::with_capacity(inputs.len());
        for run in inputs {
            sources.extend(Cursor::new(Arc::clone(run), Bound::Unbounded)?.map(Source::Run));
        }
        let points = inputs.iter().map(|run| run.footer.points).sum();
        Ok(Merge {
            inputs: inputs.to_vec(),
            merged: MergedSources::new(sources),
            output: Writer::create(&self.home, work.next_number(), level.saturating_add(1), points)?,
            is_oldest: state.runs.iter().all(|run| run.listed.level <= level),
        })
    }

    /// Installs a replacement: first on the disk, then for readers; then the replaced files are removed.
    fn commit(&self, work: &mut Work, replacement: Replacement<'_>) -> Result<(), Error> {
        let Replacement { frozen, inputs, fresh } = replacement;
        let covered = frozen.map(|frozen| &frozen.covered).or(work.covered.as_ref());
        let covered = covered.expect("runs came with a manifest that covers something").clone();
        let (fresh, mut guard) = fresh.unzip();
        let mut runs = self.state().runs.clone();
        runs.retain(|run| inputs.iter().all(|input| !Arc::ptr_eq(run, input)));
        runs.extend(fresh.map(Arc::new));
        runs.sort_by_key(|run| run.listed.age());
        let manifest = Manifest { covered, runs: runs.iter().map(|run| run.listed.clone()).collect() };
        let number = self.write_manifest(work, &manifest, guard.as_mut())?;
        work.covered = Some(manifest.covered);
        self.change(|state| {
            let mut waiting = state.frozen.clone();
            waiting.retain(|other| frozen.is_none_or(|frozen| !Arc::ptr_eq(other, frozen)));
            let generation = frozen.map_or(state.generation, |_| Generation::next());
            State { recent: Arc::clone(&state.recent), frozen: waiting, runs, generation }
        });
        self.home.remove_all(|name| match name {
            Name::Manifest(other) => other != number,
            Name::Run(other) => manifest.runs.iter().all(|run| run.number != other),
            Name::Draft(_) => false,
        })
    }

    fn write_manifest(
        &self,
        work: &mut Work,
        manifest: &Manifest,
        fresh: Option<&mut Draft>,
    ) -> Result<u64, Error> {
        let number = work.next_number();
        let mut draft = self.home.create(Name::Manifest(number))?;
        draft.append(&manifest.encode())?;
        draft.sync()?;
        if let Some(fresh) = fresh {
            // From here on, even if the rest fails, a manifest on the disk may name the run. If none does, writing the
            // next manifest removes the run.
            fresh.keep();
        }
        draft.publish()?;
        draft.keep();
        Ok(number)
    }
}

/// A new run, and what it replaces: a frozen table or the inputs of a merge. There is no run if these held no entry.
struct Replacement<'a> {
    frozen: Option<&'a Arc<FrozenTable>>,
    inputs: &'a [Arc<Run>],
    fresh: Option<(Run, Draft)>,
}

impl Work {
    fn next_number(&mut self) -> u64 {
        self.last_number = self.last_number.saturating_add(1);
        self.last_number
    }
}

impl Merge {
    /// Merges one slice; true when all is merged.
    fn go_on(&mut self) -> Result<bool, Error> {
        let mut done = 0;
        while done < SLICE {
            let Some((key, value)) = self.merged.entry() else { return Ok(true) };
            if value.is_some() || !self.is_oldest {
                self.output.add(key, value)?;
            }
            done += key.len() + value.map_or(0, <[u8]>::len);
            self.merged.step()?;
        }
        self.output.sync()?;
        Ok(false)
    }
}

impl State {
    /// The runs of each level, from the lowest that has any; in a level, newest first.
    fn levels(&self) -> impl Iterator<Item = &[Arc<Run>]> {
        self.runs.chunk_by(|run, next| run.listed.level == next.listed.level)
    }
}
