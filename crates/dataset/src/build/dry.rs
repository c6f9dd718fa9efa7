//! Dry runs of a build: nothing is paid for, and nothing is written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anabranch_engine::limit::LimitKey;

use super::{Build, learned};
use crate::begin::groups_on_disk;
use crate::dataset::{BuildOptions, Dataset};
use crate::dry::{CellForecast, DryRun, DryWatch, EarlierBuild, ModelFacts, Observe, RowTrace};
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::job;
use crate::journal::Journal;
use crate::output::{Folder, FolderStatus, Metadata};
use crate::run::{Groups, run_groups};
use crate::stop::{StopReason, StopSwitch};

impl Dataset {
    /// Finds out what a build would pay for, without paying: the cells whose replies the journal has, and those that it
    /// lacks. It contacts no server, takes no limit of a model and writes no file. The journal of the folder is read, which
    /// one process at a time can do.
    pub async fn dry_run(self, options: &BuildOptions) -> Result<DryRun, Error> {
        self.dry(options, None).await
    }

    /// A dry run that shows each cell once. The observer is called by several threads.
    pub async fn dry_run_with(
        self,
        options: &BuildOptions,
        observe: impl Fn(&CellForecast<'_>) + Send + Sync + 'static,
    ) -> Result<DryRun, Error> {
        self.dry(options, Some(Box::new(observe))).await
    }

    /// Everything that is known of one row: its values, and the recorded calls that made them. `None` if the dataset has no
    /// such row.
    pub async fn trace_row(self, options: &BuildOptions, row: u64) -> Result<Option<RowTrace>, Error> {
        if row >= options.rows {
            return Ok(None);
        }
        let mut build = Build::new(self, options.rows)?;
        let found = build.look(options).await?;
        let group = row / build.groups.size;
        let watch = build.watched(&found, DryWatch::new(&build.shared.program, 0, Some(row)));
        let ran = build.run_dry(std::iter::once(group)).await;
        found.release().await?;
        ran.map(|()| watch.take_trace())
    }

    async fn dry(mut self, options: &BuildOptions, observe: Option<Observe>) -> Result<DryRun, Error> {
        let models = std::mem::take(&mut self.models);
        let mut build = Build::new(self, options.rows)?;
        let found = build.look(options).await?;
        if let Some(journal) = &found.journal {
            learned::load(journal.path(), &build.shared.limits);
        }
        let limit = |(facts, key): (ModelFacts, LimitKey)| {
            let limit = build.shared.limits.status(key).limit;
            ModelFacts { limit, ..facts }
        };
        let mut run = DryRun {
            rows: options.rows,
            rows_on_disk: found.rows_on_disk,
            is_complete: found.is_complete,
            differ: found.differ.clone(),
            inputs_digest: inputs::digest(&build.inputs),
            earlier: found.earlier.clone(),
            models: models.into_iter().map(limit).collect(),
            ..DryRun::default()
        };
        let ran = build.fill(&mut run, &found, observe).await;
        found.release().await?;
        ran.map(|()| run)
    }
}

/// The state of a folder that a build would begin with.
#[derive(Default)]
struct FoundFolder {
    journal: Option<Journal>,
    kept: BTreeSet<u64>,
    rows_on_disk: u64,
    is_complete: bool,
    differ: Vec<String>,
    earlier: Option<EarlierBuild>,
    retry_rounds: u32,
}

impl FoundFolder {
    /// Lets other processes at the journal.
    async fn release(&self) -> Result<(), Error> {
        match &self.journal {
            Some(journal) => Ok(journal.release().await?),
            None => Ok(()),
        }
    }
}

impl Build {
    async fn look(&self, options: &BuildOptions) -> Result<FoundFolder, Error> {
        let (groups, inputs, stop) = self.terms();
        let options = options.clone();
        job::blocking(&self.shared.engine, move || look(&options, &inputs, groups, stop)).await?
    }

    /// Runs all row groups that a build would run, and one of those on disk as a sample.
    async fn fill(
        &mut self,
        run: &mut DryRun,
        found: &FoundFolder,
        observe: Option<Observe>,
    ) -> Result<(), Error> {
        let rows_before = found.earlier.as_ref().map_or(0, |earlier| earlier.rows);
        let is_complete = run.is_complete;
        let due = (0..self.groups.count()).filter(|group| !is_complete && !found.kept.contains(group));
        let watch = DryWatch::new(&self.shared.program, rows_before, None).observed(observe);
        let watch = self.watched(found, watch);
        self.run_dry(due).await?;
        (run.columns, run.dropped) = watch.take_columns();
        if let (false, Some(group)) = (is_complete, found.kept.first()) {
            watch.begin_sample();
            self.run_dry(std::iter::once(*group)).await?;
            (run.sampled, _) = watch.take_columns();
        }
        Ok(())
    }

    /// Makes the build a dry one that a watch sees.
    fn watched(&mut self, found: &FoundFolder, watch: DryWatch) -> Arc<DryWatch> {
        if let Some(journal) = &found.journal {
            let _ = self.journal.set(journal.clone());
        }
        self.rounds.store(found.retry_rounds, Relaxed);
        let shared = Arc::get_mut(&mut self.shared).expect("the build has not begun");
        let watch = Arc::new(watch);
        shared.dry = Some(Arc::clone(&watch));
        watch
    }

    /// Runs the row groups that are `due` without paying.
    async fn run_dry(&self, due: impl Iterator<Item = u64>) -> Result<(), Error> {
        run_groups(&self.shared, self.groups, due, |_| {}).await?;
        match self.shared.stop.reason() {
            Some(StopReason::Journal(error)) => Err(Error::Journal(Arc::clone(error))),
            Some(_) => Err(Error::Stopped),
            None => Ok(()),
        }
    }
}

/// Looks at a folder as a build would, and changes nothing. Blocks.
fn look(
    options: &BuildOptions,
    inputs: &Inputs,
    groups: Groups,
    stop: StopSwitch,
) -> Result<FoundFolder, Error> {
    let mut found = FoundFolder::default();
    let path = &options.out;
    let before = Metadata::read(path)?.filter(|_| !options.replace);
    let has_rows = !options.replace && Folder::has_rows(path);
    found.earlier = earlier(path)?;
    match before {
        Some(before) => {
            let is_smaller = groups.rows < before.target_num_records;
            found.differ = inputs::difference(inputs, &before.inputs);
            found.differ.extend(is_smaller.then(|| "number of rows".to_owned()));
            if !has_rows {
                found.differ.clear();
            }
            let is_retry = options.retry_failed;
            if found.differ.is_empty() && has_rows {
                let (kept, _) = groups_on_disk(&Folder::open(path)?, groups, is_retry)?;
                found.rows_on_disk = kept.values().map(|group| group.ids.end - group.ids.start).sum();
                found.kept = kept.into_keys().collect();
                let is_tried = is_retry && !before.errors.is_empty();
                found.is_complete =
                    before.is_complete && before.target_num_records == groups.rows && !is_tried;
                found.retry_rounds = before.retry_rounds + u32::from(is_retry);
            }
        }
        None if has_rows => found.differ.push("metadata.json".to_owned()),
        None => {}
    }
    if found.is_complete {
        found.rows_on_disk = groups.rows;
    }
    let journal = options.journal_folder().filter(has_entries);
    found.journal = journal.map(|path| Journal::open(&path, stop)).transpose()?;
    Ok(found)
}

/// The build that is in a folder. Blocks.
fn earlier(path: &Path) -> Result<Option<EarlierBuild>, Error> {
    let Some(metadata) = Metadata::read(path)? else { return Ok(None) };
    // A build that was killed at once has no status.
    let status = FolderStatus::read(path).ok();
    Ok(Some(EarlierBuild {
        rows: metadata.target_num_records,
        columns: metadata.columns.into_iter().map(|column| column.name).collect(),
        cells: status.map_or_else(Vec::new, |status| status.build.progress.columns),
    }))
}

/// True for a folder that is not empty.
fn has_entries(path: &PathBuf) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
