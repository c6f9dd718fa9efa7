//! One stage of a build: its row groups, from generators to files or to rows in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::limit::LimitKey;
use anabranch_value::Value;
use futures_util::future::{Either, select};

use super::learned;
use super::progress_events::ProgressEvents;
use super::report::{BuildReport, Preview};

use crate::admission::{Admission, MoreGroups};
use crate::begin::{FoundGroups, WantedGroups, find_groups};
use crate::budget::Cap;
use crate::column_type::ColumnType;
use crate::config::Accept;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::estimate::{BuildPlan, Totals};
use crate::generator::Output;
use crate::grid::ValueMemory;
use crate::inputs;
use crate::job;
use crate::journal::Journal;
use crate::output::{
    BuildState, BuildStatus, ColumnMetadata, Folder, GroupOnDisk, LimitReport, Metadata, StageReport,
    StageView, write_status,
};
use crate::program::Program;
use crate::progress::Progress;
use crate::run::{GroupEnd, Groups, Shared, run_groups};
use crate::stages::{StageRows, columns_after};
use crate::stop::{ErrorWatch, StopReason};

/// One stage of a build: its rows come from the stage before, or from nothing.
pub(crate) struct StageBuild {
    pub(crate) shared: Arc<Shared>,
    pub(super) dataset: Arc<Dataset>,
    pub(crate) groups: Groups,
    /// The most rows that are generated, if they are accepted or not.
    pub(crate) most: Option<u64>,
    pub(crate) place: StagePlace,
    found: FoundGroups,
}

/// The place of a stage in its build.
#[derive(Clone, Debug, Default)]
pub(crate) struct StagePlace {
    pub(crate) number: usize,
    /// The stages before it.
    pub(crate) earlier: Vec<StageReport>,
    /// The number of rows that were requested from the build.
    pub(crate) asked: u64,
    pub(crate) retry_rounds: u32,
    /// The start of the build; `None` for now, in the first stage.
    pub(crate) started: Option<Instant>,
}

/// The folder and the journal of a build, as its stages use them.
#[derive(Clone)]
pub(crate) struct StageHome {
    pub(crate) folder: Folder,
    pub(crate) journal: Option<Journal>,
    pub(crate) is_retry: bool,
}

/// The time between two reports of a build that runs.
const REPORT_EVERY: Duration = Duration::from_secs(1);

impl StageBuild {
    /// Sets a stage up. It keeps its rows in memory, in one group, until it is given a folder.
    pub(crate) fn new(
        dataset: &Arc<Dataset>,
        place: StagePlace,
        input: Option<Arc<StageRows>>,
    ) -> Result<StageBuild, Error> {
        let started = place.started.unwrap_or_else(|| dataset.engine.clock().now());
        let place = StagePlace { started: Some(started), ..place };
        let given = input.as_ref().map_or(&[][..], |input| &input.columns);
        let CompiledStage { mut program, kept, dropped } = CompiledStage::new(dataset, place.number, given)?;
        watch_errors(&mut program, dataset);
        let run = &dataset.run;
        let spec = &dataset.stages[place.number];
        let available = input.as_ref().map(|input| input.len());
        let rows = match (available, spec.rows) {
            (None, _) => place.asked,
            // No row can be made from no rows.
            (Some(0), _) => 0,
            (Some(available), rows) => rows.unwrap_or(available),
        };
        // A later stage without a number of rows takes each row once.
        let is_counted = available.is_none() || spec.rows.is_some();
        let most = spec
            .accept
            .filter(|_| is_counted && rows > 0)
            .map(|most| most.unwrap_or(rows.saturating_mul(Accept::CANDIDATES_PER_ROW)).max(rows));
        let mut progress = Progress::new(rows, program.task_names());
        if spec.accept.is_some() {
            progress = progress.accepting(most.unwrap_or(rows));
        }
        if dataset.watches_cells {
            progress = progress.watching_cells();
        }
        let is_last = place.number + 1 == dataset.stages.len();
        let groups =
            Groups { rows, size: run.buffer_size.max(1), at_once: run.max_concurrent_row_groups.max(1) };
        let shared = Shared {
            started,
            ran_before: dataset.spend.ran_before,
            engine: dataset.engine.clone(),
            program,
            limits: dataset.limits.clone(),
            processors: if is_last { dataset.processors.clone() } else { Vec::new() },
            progress: Arc::new(progress),
            input,
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
            memory: dataset.memory_most.map(|most| ValueMemory::new(most, dataset.stop.clone())),
            stop: dataset.stop.clone(),
            dry: None,
        };
        let (shared, dataset) = (Arc::new(shared), Arc::clone(dataset));
        Ok(StageBuild { shared, dataset, groups, most, place, found: FoundGroups::default() })
    }

    /// Takes the folder that the stage writes to, with the row groups that are in it. Blocks.
    pub(crate) fn begin(mut self, home: &StageHome) -> Result<StageBuild, Error> {
        let is_last = self.place.number + 1 == self.dataset.stages.len();
        let folder = match is_last {
            true => home.folder.clone(),
            false => home.folder.stage(&self.folder_name())?,
        };
        let wanted = WantedGroups {
            groups: self.groups,
            accepts: self.most.is_some(),
            inputs: &self.dataset.inputs,
            input_digest: self.input_digest(),
            is_retry: home.is_retry,
            has_journal: home.journal.is_some(),
        };
        let found = find_groups(&folder, &wanted)?;
        let shared = Arc::get_mut(&mut self.shared).expect("the stage has not begun");
        for group in found.kept.values() {
            let dropped = group.errors.iter().filter(|error| !error.kept).count() as u64;
            shared.progress.found_group(group.rows, dropped, group.rejected);
            shared.progress.found_cells(group.ids.clone(), &group.errors);
        }
        if let Some(done) = &found.done {
            let (rows, rejected) = (done.actual_num_records, done.rejected_num_records);
            shared.progress.found_group(rows, BuildReport::of_stage(done).dropped, rejected);
        }
        shared.has_replies = home.journal.as_ref().is_some_and(|journal| !journal.was_empty());
        (shared.folder, shared.journal) = (Some(folder), home.journal.clone());
        self.found = found;
        Ok(self)
    }

    fn folder_name(&self) -> String {
        crate::stages::folder_name(self.place.number, &self.dataset.stages[self.place.number].name)
    }

    fn input_digest(&self) -> &str {
        self.shared.input.as_ref().map_or("", |input| &input.digest)
    }

    /// The names and types of the columns in its files.
    pub(crate) fn columns(&self) -> Vec<(String, ColumnType)> {
        let columns = self.shared.kept.iter().map(|number| &self.shared.program.columns[*number]);
        columns.map(|column| (column.name.clone(), column.column_type.clone())).collect()
    }

    /// Builds all rows in memory.
    pub(crate) async fn preview(&self) -> Result<Preview, Error> {
        let mut preview = Preview::default();
        let rows = self.groups.rows;
        let all = Admission::of(std::iter::once((0, 0..rows)).filter(move |_| rows > 0));
        run_groups(&self.shared, all, 1, |end| {
            if let Some(files) = end.files {
                preview = Preview {
                    rows: files.rows,
                    dropped: files.dropped,
                    processed: files.processed,
                    errors: files.errors,
                    rejected: end.rejected,
                };
            }
        })
        .await?;
        Ok(preview)
    }

    /// Builds all rows into the folder.
    pub(crate) async fn run(&self) -> Result<BuildReport, Error> {
        let Some(folder) = self.shared.folder.clone() else {
            return Err(Error::Setup("a preview has no folder to build into".to_owned()));
        };
        match &self.found.done {
            Some(done) => Ok(BuildReport::of_stage(done)),
            None => self.build(&folder).await,
        }
    }

    /// Says which groups are due.
    fn admission(&self) -> Admission {
        let groups = self.groups;
        let Some(most) = self.most else {
            let kept: BTreeSet<u64> = self.found.kept.keys().copied().collect();
            let due = (0..groups.count()).filter(move |group| !kept.contains(group));
            return Admission::of(due.map(move |group| (group, groups.ids(group))));
        };
        let FoundGroups { kept, again, .. } = &self.found;
        let ends = kept.values().map(|group| group.ids.end).chain(again.iter().map(|(_, rows)| rows.end));
        let more = MoreGroups {
            wanted: groups.rows,
            most,
            size: groups.size,
            next_group: (kept.len() + again.len()) as u64,
            next_row: ends.max().unwrap_or(0),
            accepted: kept.values().map(|group| group.rows).sum(),
            under_way: 0,
        };
        Admission::until_accepted(again.clone().into_iter(), more)
    }

    async fn build(&self, folder: &Folder) -> Result<BuildReport, Error> {
        let mut metadata = self.metadata();
        let (first, source, start) = (folder.clone(), Arc::clone(&self.dataset.source), metadata.clone());
        let resumed: u64 = self.found.kept.values().map(|group| group.rows).sum();
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
        let mut groups = self.found.kept.clone();
        let run = run_groups(&self.shared, self.admission(), self.groups.at_once, |end| {
            let GroupEnd { group, ids, rows, unfinished, errors, rejected, .. } = end;
            groups.insert(group, GroupOnDisk { ids, rows, unfinished, errors, rejected });
        });
        self.with_reports(run).await?;
        // A stopped build has not reached all groups of the previous one.
        self.found
            .parts
            .iter()
            .for_each(|(group, part)| _ = groups.entry(*group).or_insert_with(|| part.clone()));
        if self.most.is_some() {
            metadata.surplus_num_records = self.cut(folder, &mut groups).await?;
        }
        let candidates = groups.values().map(|group| group.ids.end).max().unwrap_or(0);
        for (group, found) in groups {
            report.note_group(&mut metadata, group, found);
        }
        report.stopped = self.stopped(&metadata, candidates);
        metadata.stages.push(self.report(&metadata, candidates));
        self.end(folder, metadata, report).await
    }

    /// The reason why rows are missing; `None` if none are.
    fn stopped(&self, metadata: &Metadata, candidates: u64) -> Option<StopReason> {
        let rows = metadata.actual_num_records;
        let is_unfinished = match self.most {
            Some(_) => rows < self.groups.rows,
            None => metadata.is_unfinished(),
        };
        let reason = self.shared.stop.reason().cloned();
        let none_left = || StopReason::Candidates { rows, wanted: self.groups.rows, candidates };
        is_unfinished.then(|| reason.unwrap_or_else(none_left))
    }

    fn report(&self, metadata: &Metadata, candidates: u64) -> StageReport {
        let is_last = self.place.number + 1 == self.dataset.stages.len();
        StageReport {
            name: self.dataset.stages[self.place.number].name.clone(),
            folder: if is_last { String::new() } else { self.folder_name() },
            candidates,
            rows: metadata.actual_num_records,
            dropped: metadata.dropped_num_records,
            rejected: metadata.rejected_num_records,
            surplus: metadata.surplus_num_records,
            steps: Vec::new(),
            errors: metadata.errors.clone(),
        }
    }

    /// Takes the rows out that were accepted when there were enough: the last ones. Returns their number.
    async fn cut(&self, folder: &Folder, groups: &mut BTreeMap<u64, GroupOnDisk>) -> Result<u64, Error> {
        let (mut left, mut cuts, mut surplus) = (self.groups.rows, Vec::new(), 0);
        for (group, found) in groups {
            let rows = found.rows.min(left);
            left -= rows;
            if rows < found.rows {
                surplus += found.rows - rows;
                cuts.push((*group, rows as usize));
                found.rows = rows;
            }
        }
        let folder = folder.clone();
        job::blocking(&self.shared.engine, move || {
            cuts.into_iter().try_for_each(|(group, rows)| folder.cut_group(group, rows))
        })
        .await??;
        Ok(surplus)
    }

    /// Runs the row groups, and writes the state of the build now and then.
    async fn with_reports(&self, run: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let clock = Arc::clone(self.shared.engine.clock());
        let mut run = std::pin::pin!(run);
        let mut events = ProgressEvents::default();
        self.write_status(BuildState::Running, None).await?;
        loop {
            let (next, end_by) = (clock.now() + REPORT_EVERY, self.dataset.spend.end_by);
            let end_by = end_by.filter(|_| self.shared.stop.reason().is_none());
            let due = end_by.map_or(next, |(_, end)| next.min(end));
            match select(run.as_mut(), clock.sleep_until(due)).await {
                Either::Left((ended, _)) => return ended,
                Either::Right(_) => {}
            }
            if let Some((after, end)) = end_by
                && clock.now() >= end
            {
                self.shared.stop.stop(StopReason::Budget(Cap::Deadline(after)));
            }
            let event = events.next(self);
            let report = std::pin::pin!(async {
                if let Some(journal) = &self.shared.journal {
                    journal.sync().await?;
                }
                self.write_progress(event).await?;
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
        let spend = &self.dataset.spend;
        spend.note(&mut metadata, self.shared.elapsed());
        let home = folder.home().to_owned();
        let plan = job::blocking(&self.shared.engine, move || BuildPlan::read(&home)).await??;
        let spent = Totals::of(spend, self.shared.elapsed());
        let (digest, asked) = (inputs::digest(&self.dataset.inputs), self.place.asked);
        metadata.plan = plan.and_then(|plan| plan.check(&digest, asked, &spent));
        report.plan.clone_from(&metadata.plan);
        report.models.clone_from(&metadata.models);
        report.models_of_run = spend.models_of_run();
        metadata.is_complete = report.stopped.is_none();
        report.stages.clone_from(&metadata.stages);
        // Columns of all stages have names of their own.
        for stage in &self.place.earlier {
            metadata.dropped_num_records += stage.dropped;
            metadata.errors.extend(stage.errors.clone());
        }
        let (shared, folder) = (Arc::clone(&self.shared), folder.clone());
        let is_last = self.place.number + 1 == self.dataset.stages.len();
        let earlier = self.place.earlier.iter().map(|stage| folder.home().join(&stage.folder));
        let earlier: Vec<PathBuf> = if is_last { earlier.collect() } else { Vec::new() };
        let name = if metadata.is_complete { "end" } else { "stop" };
        let ended = [("rows", report.rows), ("dropped", report.dropped), ("errors", report.error_count)];
        let ended = self.event(name, ended);
        job::blocking(&self.shared.engine, move || {
            folder.write_errors(&earlier)?;
            if metadata.is_complete {
                crate::output::after_generation(&folder, &shared.processors, &mut metadata)?;
            }
            folder.write_event(&ended)?;
            folder.write_metadata(&metadata).map_err(Error::from)
        })
        .await??;
        Ok(report)
    }

    async fn write_progress(&self, event: Option<Value>) -> Result<(), Error> {
        let (Some(folder), Some(event)) = (self.shared.folder.clone(), event) else { return Ok(()) };
        job::blocking(&self.shared.engine, move || folder.write_event(&event)).await?.map_err(Error::from)
    }

    /// Writes the state of the build.
    pub(crate) async fn write_status(&self, state: BuildState, reason: Option<String>) -> Result<(), Error> {
        let Some(folder) = self.shared.folder.clone() else { return Ok(()) };
        let mut status = BuildStatus {
            state,
            elapsed_ms: self.shared.elapsed().as_millis() as u64,
            progress: self.shared.progress.snapshot(),
            limits: self.limits(),
            reason,
            raise: match self.shared.stop.reason() {
                Some(StopReason::Budget(cap)) if !matches!(cap, Cap::Deadline(_)) => {
                    Some(cap.flag().to_owned())
                }
                _ => None,
            },
            stage: self.view(),
            ..BuildStatus::default()
        };
        self.dataset.spend.note_status(&mut status);
        let learned = self.shared.journal.as_ref().map(|journal| journal.path().to_owned());
        let limits = self.shared.limits.clone();
        job::blocking(&self.shared.engine, move || {
            if let Some(journal) = learned {
                learned::save(&journal, &limits)?;
            }
            write_status(folder.home(), &status)
        })
        .await?
        .map_err(Error::from)
    }

    /// The limits of the models, for displays.
    pub(crate) fn limits(&self) -> Vec<LimitReport> {
        let now = self.shared.engine.clock().now();
        let limits = self.shared.limits.list().into_iter();
        let models = limits.filter(|(name, _)| name != crate::models::TASKS_LIMIT);
        models.map(|(name, status)| LimitReport::new(name, &status, now)).collect()
    }

    /// The position of the stage among several; `None` if there is only one.
    pub(crate) fn view(&self) -> Option<StageView> {
        let (number, count) = (self.place.number + 1, self.dataset.stages.len());
        let name = self.dataset.stages[self.place.number].name.clone();
        (count > 1).then_some(StageView { name, number, count })
    }

    fn event<const N: usize>(&self, name: &str, counts: [(&str, u64); N]) -> Value {
        let mut event = vec![("at_ms", self.shared.elapsed_ms()), ("event", name.into())];
        event.extend(self.view().map(|stage| ("stage", stage.name.into())));
        event.extend(counts.map(|(name, count)| (name, Value::Int(count as i64))));
        Value::map(event)
    }

    /// The metadata of the stage before it has rows.
    pub(crate) fn metadata(&self) -> Metadata {
        let Shared { program, kept, dropped, .. } = &*self.shared;
        let column = |number: &usize, dropped: bool| {
            let column = &program.columns[*number];
            let column_type = crate::output::type_name(&column.column_type);
            ColumnMetadata { name: column.name.clone(), column_type, dropped }
        };
        let columns = kept.iter().map(|number| column(number, false));
        let columns = columns.chain(dropped.iter().map(|number| column(number, true)));
        let mut metadata = Metadata {
            dataset_name: self.dataset.name.clone(),
            anabranch_version: env!("CARGO_PKG_VERSION").to_owned(),
            target_num_records: self.groups.rows,
            asked_num_records: self.place.asked,
            total_num_batches: if self.most.is_some() { 0 } else { self.groups.count() },
            buffer_size: self.groups.size,
            seed: self.shared.seed,
            columns: columns.collect(),
            inputs: self.dataset.inputs.clone(),
            input_digest: self.input_digest().to_owned(),
            stages: self.place.earlier.clone(),
            retry_rounds: self.place.retry_rounds,
            ..Metadata::default()
        };
        self.dataset.spend.note(&mut metadata, self.shared.elapsed());
        metadata
    }
}

/// Lets the calls of each model stop the build if too many of them fail.
fn watch_errors(program: &mut Program, dataset: &Dataset) {
    let run = &dataset.run;
    if run.disable_early_shutdown {
        return;
    }
    let mut watches: HashMap<LimitKey, Arc<ErrorWatch>> = HashMap::new();
    program.watch(|limit| {
        if Some(limit) == dataset.tasks_limit {
            return None;
        }
        let watch = watches.entry(limit).or_insert_with(|| {
            let (rate, window) = (run.shutdown_error_rate, run.shutdown_error_window);
            Arc::new(ErrorWatch::new(dataset.limits.name(limit), rate, window, dataset.stop.clone()))
        });
        Some(Arc::clone(watch))
    });
}

/// A stage as tasks with numbered columns.
pub(crate) struct CompiledStage {
    program: Program,
    kept: Vec<usize>,
    dropped: Vec<usize>,
}

impl CompiledStage {
    /// A stage that starts from rows with these columns.
    fn new(dataset: &Dataset, number: usize, given: &[(String, ColumnType)]) -> Result<CompiledStage, Error> {
        let is_last = number + 1 == dataset.stages.len();
        let processors = if is_last { &dataset.processors[..] } else { &[] };
        let mut outputs: Vec<Output> = given
            .iter()
            .map(|(name, column_type)| Output { name: name.clone(), column_type: column_type.clone() })
            .collect();
        outputs.extend(processors.iter().flat_map(|processor| processor.adds()));
        let split = processors.iter().any(|processor| processor.points().before_batch);
        let program =
            Program::new(dataset.stages[number].tasks.clone(), &outputs, split).map_err(Error::Setup)?;
        // Columns that are dropped in the end may be read until then.
        let dropped = if is_last { &dataset.dropped[..] } else { &[] };
        let (kept, dropped) = output_columns(&program, &dataset.order, dropped);
        Ok(CompiledStage { program, kept, dropped })
    }

    /// Checks all stages of a dataset, and returns a digest of their columns.
    pub(crate) fn check(dataset: &Dataset) -> Result<String, Error> {
        let mut given = Vec::new();
        let mut digests = Vec::new();
        for (number, stage) in dataset.stages.iter().enumerate() {
            let CompiledStage { program, kept, .. } = CompiledStage::new(dataset, number, &given)?;
            digests.push(columns_digest(&program));
            let column = |number: &usize| {
                let column = &program.columns[*number];
                (column.name.clone(), column.column_type.clone())
            };
            given = columns_after(kept.iter().map(column).collect(), &stage.steps).map_err(Error::Setup)?;
        }
        Ok(digests.join(" "))
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
