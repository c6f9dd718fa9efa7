//! Dry runs of a build: nothing is paid for, and nothing is written.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Compiled, StageBuild, StagePlace};
use crate::admission::Admission;
use crate::begin::groups_on_disk;
use crate::dataset::{BuildOptions, Dataset};
use crate::dry::{CellForecast, DryRun, DryWatch, Observe, RowTrace};
use crate::error::Error;
use crate::inputs::{self, Inputs};
use crate::job;
use crate::journal::Journal;
use crate::output::{Folder, Metadata};
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
        let mut build = StageBuild::dry(self, options.rows)?;
        let found = build.look(options).await?;
        let group = row / build.groups.size;
        let watch = DryWatch::new(&build.shared.program, None, Some(row));
        let watch = build.run_dry(found, watch, std::iter::once(group)).await?;
        Ok(watch.take_trace())
    }

    async fn dry(self, options: &BuildOptions, observe: Option<Observe>) -> Result<DryRun, Error> {
        let mut build = StageBuild::dry(self, options.rows)?;
        let found = build.look(options).await?;
        let mut run = DryRun {
            rows: options.rows,
            rows_on_disk: found.rows_on_disk,
            is_complete: found.is_complete,
            differ: found.differ.clone(),
            inputs_digest: inputs::digest(&build.dataset.inputs),
            ..DryRun::default()
        };
        let (groups, kept) = (build.groups.count(), found.kept.clone());
        let is_complete = run.is_complete;
        let due = (0..groups).filter(move |group| !is_complete && !kept.contains(group));
        let watch = DryWatch::new(&build.shared.program, observe, None);
        let watch = build.run_dry(found, watch, due).await?;
        (run.columns, run.dropped) = watch.columns();
        Ok(run)
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
    retry_rounds: u32,
}

impl StageBuild {
    /// The first stage of a dataset, for a dry run.
    fn dry(mut dataset: Dataset, rows: u64) -> Result<StageBuild, Error> {
        let columns = Compiled::check(&dataset)?;
        dataset.inputs.insert("columns".to_owned(), columns);
        StageBuild::new(&Arc::new(dataset), StagePlace { asked: rows, ..StagePlace::default() }, None)
    }

    async fn look(&self, options: &BuildOptions) -> Result<FoundFolder, Error> {
        let (groups, inputs, stop) = (self.groups, self.dataset.inputs.clone(), self.dataset.stop.clone());
        let options = options.clone();
        job::blocking(&self.shared.engine, move || look(&options, &inputs, groups, stop)).await?
    }

    /// Runs the row groups that are `due` without paying.
    async fn run_dry(
        &mut self,
        found: FoundFolder,
        watch: DryWatch,
        due: impl Iterator<Item = u64> + Send + 'static,
    ) -> Result<Arc<DryWatch>, Error> {
        if let Some(journal) = &found.journal {
            let _ = self.dataset.journal.set(journal.clone());
        }
        self.dataset.rounds.store(found.retry_rounds, Relaxed);
        let shared = Arc::get_mut(&mut self.shared).expect("the build has not begun");
        let watch = Arc::new(watch);
        shared.dry = Some(Arc::clone(&watch));
        let groups = self.groups;
        let due = Admission::of(due.map(move |group| (group, groups.ids(group))));
        let ran = run_groups(&self.shared, due, groups.at_once, |_| {}).await;
        if let Some(journal) = &found.journal {
            journal.release().await?;
        }
        ran?;
        match self.shared.stop.reason() {
            Some(StopReason::Journal(error)) => Err(Error::Journal(Arc::clone(error))),
            Some(_) => Err(Error::Stopped),
            None => Ok(watch),
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
    match before {
        Some(before) => {
            let is_smaller = options.rows < before.asked_num_records;
            let (differ, columns) = inputs::difference(inputs, &before.inputs);
            found.differ = differ;
            found.differ.extend((!columns.is_empty()).then(|| "columns".to_owned()));
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

/// True for a folder that is not empty.
fn has_entries(path: &PathBuf) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
