//! Building a dataset: from generators to files, or to rows in memory.

mod learned;
mod report;
mod spend;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use anabranch_engine::limit::LimitKey;
use anabranch_value::Value;
use futures_util::future::{Either, select};

pub use report::{BuildReport, MAX_ERRORS, Preview};

use crate::begin::Beginning;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::generator::Output;
use crate::inputs::Inputs;
use crate::job;
use crate::journal::JournalSlot;
use crate::output::{
    BuildState, BuildStatus, ColumnMetadata, Folder, GroupOnDisk, LimitReport, Lock, Metadata, ModelMetadata,
    write_status,
};
use crate::program::Program;
use crate::progress::Progress;
use crate::run::{Groups, Shared, run_groups};
use crate::stop::{ErrorWatch, StopReason, StopSwitch};
use spend::Spend;

/// A build that was set up: its counters can be read while it runs.
pub struct Build {
    shared: Arc<Shared>,
    groups: Groups,
    name: String,
    source: Arc<str>,
    spend: Spend,
    inputs: Inputs,
    journal: JournalSlot,
    rounds: Arc<AtomicU32>,
    /// The earlier build that this one continues; `None` for rows in memory.
    continued: Option<Continued>,
}

/// The state of the folder that a build continues.
struct Continued {
    _lock: Lock,
    before: Option<Metadata>,
    kept: BTreeMap<u64, GroupOnDisk>,
    retry_rounds: u32,
}

/// The time between two reports of a build that runs.
const REPORT_EVERY: Duration = Duration::from_secs(1);

impl Build {
    /// Sets a build up. It keeps its rows in memory, in one group, until it is given a folder.
    pub(crate) fn new(dataset: Dataset, rows: u64) -> Result<Build, Error> {
        let between: Vec<Output> = dataset.processors.iter().flat_map(|processor| processor.adds()).collect();
        let split = dataset.processors.iter().any(|processor| processor.points().before_batch);
        let stop = StopSwitch::default();
        let run = &dataset.run;
        let mut program = Program::new(dataset.tasks, &between, split).map_err(Error::Setup)?;
        if !run.disable_early_shutdown {
            let mut watches: HashMap<LimitKey, Arc<ErrorWatch>> = HashMap::new();
            program.watch(|limit| {
                if Some(limit) == dataset.tasks_limit {
                    return None;
                }
                let watch = watches.entry(limit).or_insert_with(|| {
                    let (rate, window) = (run.shutdown_error_rate, run.shutdown_error_window);
                    Arc::new(ErrorWatch::new(dataset.limits.name(limit), rate, window, stop.clone()))
                });
                Some(Arc::clone(watch))
            });
        }
        let progress = Arc::new(Progress::new(rows, program.task_names()));
        let (kept, dropped) = output_columns(&program, &dataset.order, &dataset.dropped);
        let mut inputs = dataset.inputs;
        inputs.insert("columns".to_owned(), columns_digest(&program));
        let groups =
            Groups { rows, size: run.buffer_size.max(1), at_once: run.max_concurrent_row_groups.max(1) };
        let shared = Shared {
            started: dataset.engine.clock().now(),
            ran_before: Duration::ZERO,
            engine: dataset.engine,
            program,
            limits: dataset.limits,
            processors: dataset.processors,
            progress,
            kept,
            dropped,
            preserve_dropped: run.preserve_dropped_columns,
            tasks_in_flight: match dataset.tasks_limit {
                // The limit decides, and it is fair. A run that is full itself would only ask for its first rows.
                Some(_) => run.max_in_flight_tasks.saturating_mul(2).saturating_add(64),
                None => run.max_in_flight_tasks.max(1),
            },
            seed: dataset.seed,
            folder: None,
            journal: None,
            has_replies: false,
            stop,
        };
        Ok(Build {
            shared: Arc::new(shared),
            groups,
            name: dataset.name,
            source: dataset.source,
            spend: Spend::new(dataset.usage, dataset.prices),
            inputs,
            journal: dataset.journal,
            rounds: dataset.rounds,
            continued: None,
        })
    }

    /// The terms under which a folder is prepared for the build.
    pub(crate) fn terms(&self) -> (Groups, Inputs, StopSwitch) {
        (self.groups, self.inputs.clone(), self.shared.stop.clone())
    }

    /// Takes the folder that the build writes to.
    pub(crate) fn begin(&mut self, beginning: Beginning) -> Result<(), Error> {
        let Beginning { folder, lock, journal, before, kept, retry_rounds } = beginning;
        let journal = self.spend.begin(folder.path(), before.as_ref(), &self.name, journal.as_ref());
        if let Some(journal) = &journal {
            learned::load(journal.path(), &self.shared.limits);
            let _ = self.journal.set(journal.clone());
        }
        self.rounds.store(retry_rounds, Relaxed);
        let shared = Arc::get_mut(&mut self.shared).expect("the build has not begun");
        shared.ran_before = self.spend.ran_before;
        for group in kept.values() {
            let dropped = group.errors.iter().filter(|error| !error.kept).count() as u64;
            shared.progress.found_group(group.rows, dropped);
        }
        shared.has_replies = journal.as_ref().is_some_and(|journal| !journal.was_empty());
        (shared.folder, shared.journal) = (Some(folder), journal);
        let continued = Continued { _lock: lock, before, kept, retry_rounds };
        if let Some(before) = continued.done(self.groups) {
            shared.progress.found_group(before.actual_num_records, before.dropped_num_records);
        }
        self.continued = Some(continued);
        Ok(())
    }

    /// True if an earlier build was complete, so that nothing is left to do.
    pub fn was_complete(&self) -> bool {
        self.continued.as_ref().is_some_and(|continued| continued.done(self.groups).is_some())
    }

    /// The counters of the build.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.shared.progress
    }

    /// The limits of the models, for displays.
    pub fn limits(&self) -> Vec<LimitReport> {
        let now = self.shared.engine.clock().now();
        let limits = self.shared.limits.list().into_iter();
        let models = limits.filter(|(name, _)| name != crate::models::TASKS_LIMIT);
        models.map(|(name, status)| LimitReport::new(name, &status, now)).collect()
    }

    /// The calls, tokens and money of the build so far, by alias: of all of its runs.
    pub fn usage(&self) -> BTreeMap<String, ModelMetadata> {
        self.spend.models()
    }

    /// The part of this run in the calls and tokens.
    pub fn usage_of_run(&self) -> BTreeMap<String, ModelMetadata> {
        self.spend.models_of_run()
    }

    /// Ends the build early: what is in flight is finished and saved, and [`Build::run`] returns.
    pub fn stop(&self) {
        self.shared.stop.stop(StopReason::Asked);
    }

    /// Builds all rows in memory.
    pub async fn preview(&self) -> Result<Preview, Error> {
        let mut preview = Preview::default();
        let groups = Groups { size: self.groups.rows.max(1), ..self.groups };
        run_groups(&self.shared, groups, 0..groups.count(), |end| {
            if let Some(files) = end.files {
                preview = Preview {
                    rows: files.rows,
                    dropped: files.dropped,
                    processed: files.processed,
                    errors: files.errors,
                };
            }
        })
        .await?;
        Ok(preview)
    }

    /// Builds all rows into the folder.
    pub async fn run(&self) -> Result<BuildReport, Error> {
        let (Some(folder), Some(continued)) = (self.shared.folder.clone(), &self.continued) else {
            return Err(Error::Setup("a preview has no folder to build into".to_owned()));
        };
        if let Some(before) = continued.done(self.groups) {
            let report = BuildReport::of_metadata(before);
            self.write_status(BuildState::Complete, None).await?;
            self.close_journal().await?;
            return Ok(report);
        }
        let result = self.build(&folder, continued).await;
        let closed = self.close_journal().await;
        let (state, reason) = match &result {
            Ok(BuildReport { stopped: None, .. }) => (BuildState::Complete, None),
            Ok(BuildReport { stopped: Some(reason), .. }) => (BuildState::Stopped, Some(reason.to_string())),
            Err(error) => (BuildState::Failed, Some(error.to_string())),
        };
        let written = self.write_status(state, reason).await;
        let report = result?;
        closed?;
        written?;
        match &report.stopped {
            Some(StopReason::Journal(error)) => Err(Error::Journal(Arc::clone(error))),
            _ => Ok(report),
        }
    }

    async fn build(&self, folder: &Folder, continued: &Continued) -> Result<BuildReport, Error> {
        let mut metadata = self.metadata(continued);
        let (first, source, start) = (folder.clone(), Arc::clone(&self.source), metadata.clone());
        let resumed: u64 = continued.kept.values().map(|group| group.rows).sum();
        let counts =
            [("rows", self.groups.rows), ("row_groups", self.groups.count()), ("resumed_rows", resumed)];
        let began = self.event("start", counts);
        job::blocking(&self.shared.engine, move || {
            // First of all: a folder with other files and without metadata is not taken for a build.
            first.write_metadata(&start)?;
            first.write_config(&source)?;
            first.write_event(&began)
        })
        .await??;
        let mut report = BuildReport { resumed, ..BuildReport::default() };
        for (group, found) in &continued.kept {
            report.note_group(&mut metadata, *group, found.clone());
        }
        let due = (0..self.groups.count()).filter(|group| !continued.kept.contains_key(group));
        let run = run_groups(&self.shared, self.groups, due, |end| {
            let found = GroupOnDisk {
                ids: self.groups.ids(end.group),
                rows: end.rows,
                unfinished: end.unfinished,
                errors: end.errors,
            };
            report.note_group(&mut metadata, end.group, found);
        });
        self.with_reports(run).await?;
        report.stopped = self.shared.stop.reason().cloned().filter(|_| metadata.is_unfinished());
        self.end(folder, metadata, report).await
    }

    /// Runs the row groups, and writes the state of the build now and then.
    async fn with_reports(&self, run: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let clock = Arc::clone(self.shared.engine.clock());
        let mut run = std::pin::pin!(run);
        self.write_status(BuildState::Running, None).await?;
        loop {
            match select(run.as_mut(), clock.sleep_until(clock.now() + REPORT_EVERY)).await {
                Either::Left((ended, _)) => return ended,
                Either::Right(_) => {}
            }
            let report = std::pin::pin!(async {
                if let Some(journal) = &self.shared.journal {
                    journal.sync().await?;
                }
                self.write_status(BuildState::Running, None).await
            });
            match select(run.as_mut(), report).await {
                Either::Left((ended, _)) => return ended,
                Either::Right((written, _)) => written?,
            }
        }
    }

    async fn end(
        &self,
        folder: &Folder,
        mut metadata: Metadata,
        mut report: BuildReport,
    ) -> Result<BuildReport, Error> {
        report.errors.sort_by_key(|error| error.row);
        metadata.file_paths.sort_by_key(|path| (path.len(), path.clone()));
        self.spend.note(&mut metadata, self.shared.elapsed());
        report.models.clone_from(&metadata.models);
        report.models_of_run = self.spend.models_of_run();
        metadata.is_complete = report.stopped.is_none();
        let (shared, groups, folder) = (Arc::clone(&self.shared), self.groups.count(), folder.clone());
        let name = if metadata.is_complete { "end" } else { "stop" };
        let ended = [("rows", report.rows), ("dropped", report.dropped), ("errors", report.error_count)];
        let ended = self.event(name, ended);
        job::blocking(&self.shared.engine, move || {
            folder.write_errors(groups)?;
            if metadata.is_complete {
                crate::output::after_generation(&folder, &shared.processors, &mut metadata)?;
            }
            folder.write_event(&ended)?;
            folder.write_metadata(&metadata).map_err(Error::from)
        })
        .await??;
        Ok(report)
    }

    async fn write_status(&self, state: BuildState, reason: Option<String>) -> Result<(), Error> {
        let Some(folder) = self.shared.folder.clone() else { return Ok(()) };
        let mut status = BuildStatus {
            state,
            elapsed_ms: self.shared.elapsed().as_millis() as u64,
            progress: self.shared.progress.snapshot(),
            limits: self.limits(),
            reason,
            ..BuildStatus::default()
        };
        self.spend.note_status(&mut status);
        let learned = self.shared.journal.as_ref().map(|journal| journal.path().to_owned());
        let limits = self.shared.limits.clone();
        job::blocking(&self.shared.engine, move || {
            if let Some(journal) = learned {
                learned::save(&journal, &limits)?;
            }
            write_status(folder.path(), &status)
        })
        .await?
        .map_err(Error::from)
    }

    async fn close_journal(&self) -> Result<(), Error> {
        match &self.shared.journal {
            Some(journal) => journal.close().await.map_err(Error::from),
            None => Ok(()),
        }
    }

    fn event<const N: usize>(&self, name: &str, counts: [(&str, u64); N]) -> Value {
        let mut event = vec![("at_ms", self.shared.elapsed_ms()), ("event", name.into())];
        event.extend(counts.map(|(name, count)| (name, Value::Int(count as i64))));
        Value::map(event)
    }

    fn metadata(&self, continued: &Continued) -> Metadata {
        let Shared { program, kept, dropped, .. } = &*self.shared;
        let column = |number: &usize, dropped: bool| {
            let column = &program.columns[*number];
            let column_type = crate::output::type_name(&column.column_type);
            ColumnMetadata { name: column.name.clone(), column_type, dropped }
        };
        let columns = kept.iter().map(|number| column(number, false));
        let columns = columns.chain(dropped.iter().map(|number| column(number, true)));
        let mut metadata = Metadata {
            dataset_name: self.name.clone(),
            anabranch_version: env!("CARGO_PKG_VERSION").to_owned(),
            target_num_records: self.groups.rows,
            total_num_batches: self.groups.count(),
            buffer_size: self.groups.size,
            seed: self.shared.seed,
            columns: columns.collect(),
            inputs: self.inputs.clone(),
            retry_rounds: continued.retry_rounds,
            ..Metadata::default()
        };
        self.spend.note(&mut metadata, self.shared.elapsed());
        metadata
    }
}

impl Continued {
    /// The metadata of a build that is complete already.
    fn done(&self, groups: Groups) -> Option<&Metadata> {
        let is_retry =
            |before: &Metadata| before.retry_rounds < self.retry_rounds && !before.errors.is_empty();
        self.before.as_ref().filter(|before| {
            before.is_complete && before.target_num_records == groups.rows && !is_retry(before)
        })
    }
}

/// Names and types: a dataset of generators that are made by hand has no other digest.
fn columns_digest(program: &Program) -> String {
    let columns: Vec<String> = program
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, crate::output::type_name(&column.column_type)))
        .collect();
    blake3::hash(columns.join("\n").as_bytes()).to_hex()[..16].to_owned()
}

/// The numbers of the kept columns in order, and of the dropped ones.
fn output_columns(program: &Program, order: &[String], dropped: &[String]) -> (Vec<usize>, Vec<usize>) {
    let named = order.iter().filter_map(|name| program.column(name));
    let mut all: Vec<usize> = named.collect();
    let rest: Vec<usize> = (0..program.columns.len()).filter(|number| !all.contains(number)).collect();
    all.extend(rest);
    let is_dropped = |number: &usize| dropped.contains(&program.columns[*number].name);
    all.into_iter().partition(|number| !is_dropped(number))
}
