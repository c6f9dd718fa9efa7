//! A build: its stages one after another, each from the rows of the one before.

pub(crate) mod learned;
mod progress_events;
mod report;
mod stage;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

pub use report::{BuildReport, MAX_ERRORS, Preview};
use stage::StageHome;
pub(crate) use stage::{CompiledStage, StageBuild, StagePlace};

use crate::begin::{Beginning, begin};
use crate::call_times::CallTimes;
use crate::columns::PaidModel;
use crate::dataset::{BuildOptions, Dataset};
use crate::error::Error;
use crate::job;
use crate::output::{BuildState, LimitReport, Lock, Metadata, ModelMetadata, StageReport, StageView};
use crate::progress::Progress;
use crate::stages::{StageRows, StepReport, StepSetting, after_steps, gather, select};
use crate::stop::StopReason;

/// A build that was set up: its counters can be read while it runs.
pub struct Build {
    dataset: Arc<Dataset>,
    /// The current stage.
    current: Mutex<Arc<StageBuild>>,
    /// `None` for rows in memory.
    home: Option<Home>,
}

/// The output folder of a build.
struct Home {
    _lock: Lock,
    stage: StageHome,
    /// The metadata of a build that was complete before.
    done: Option<Metadata>,
}

impl Build {
    /// A build that keeps its rows in memory.
    pub(crate) fn in_memory(dataset: Dataset, rows: u64) -> Result<Build, Error> {
        CompiledStage::check(&dataset)?;
        let dataset = Arc::new(dataset);
        let first = StageBuild::new(&dataset, StagePlace { asked: rows, ..StagePlace::default() }, None)?;
        Ok(Build { dataset, current: Mutex::new(Arc::new(first)), home: None })
    }

    /// A build into a folder.
    pub(crate) async fn into_folder(mut dataset: Dataset, options: BuildOptions) -> Result<Build, Error> {
        let columns = CompiledStage::check(&dataset)?;
        dataset.inputs.insert("columns".to_owned(), columns);
        let (asked, budget) = (options.rows, options.budget);
        dataset.spend.check(&budget)?;
        let (inputs, stop) = (dataset.inputs.clone(), dataset.stop.clone());
        let beginning = job::blocking(&dataset.engine, move || begin(&options, &inputs, stop)).await??;
        let Beginning { folder, lock, journal, before, is_retry, retry_rounds } = beginning;
        let name = dataset.name.clone();
        let journal = dataset.spend.begin(folder.path(), before.as_ref(), &name, journal.as_ref());
        dataset.meter.begin(budget, dataset.spend.metered(), dataset.stop.clone());
        dataset.spend.end_by = budget.deadline.map(|after| (after, dataset.engine.clock().now() + after));
        if let Some(journal) = &journal {
            learned::load(journal.path(), &dataset.limits);
            let _ = dataset.journal.set(journal.clone());
        }
        dataset.rounds.store(retry_rounds, Relaxed);
        let is_new = before.is_none();
        let done = before.filter(|before| {
            let has_failures = is_retry && !before.errors.is_empty();
            before.is_complete && before.asked_num_records == asked && !has_failures
        });
        let dataset = Arc::new(dataset);
        let place = StagePlace { asked, retry_rounds, ..StagePlace::default() };
        let first = StageBuild::new(&dataset, place, None)?;
        let stage = StageHome { folder, journal, is_retry };
        let home = stage.clone();
        let first = job::blocking(&dataset.engine, move || {
            let first = first.begin(&home)?;
            if is_new {
                // First of all: a folder with other files and without metadata is not taken for a build.
                home.folder.write_metadata(&first.metadata())?;
            }
            Ok::<_, Error>(first)
        });
        let first = Mutex::new(Arc::new(first.await??));
        Ok(Build { dataset, current: first, home: Some(Home { _lock: lock, stage, done }) })
    }

    fn stage(&self) -> Arc<StageBuild> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if an earlier build was complete, so that nothing is left to do.
    pub fn was_complete(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.done.is_some())
    }

    /// The counters of the current stage.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.stage().shared.progress)
    }

    /// The current stage; `None` if there is only one.
    pub fn stage_view(&self) -> Option<StageView> {
        self.stage().view()
    }

    /// The limits of the models, for displays.
    pub fn limits(&self) -> Vec<LimitReport> {
        self.stage().limits()
    }

    /// The calls, tokens and money of the build so far, by alias: of all of its runs.
    pub fn usage(&self) -> BTreeMap<String, ModelMetadata> {
        self.dataset.spend.models()
    }

    /// The part of this run in the calls, tokens and money.
    pub fn usage_of_run(&self) -> BTreeMap<String, ModelMetadata> {
        self.dataset.spend.models_of_run()
    }

    /// The times of the model calls of this run, by alias.
    pub fn call_times(&self) -> BTreeMap<String, CallTimes> {
        self.dataset.paid_models.iter().map(PaidModel::call_times).collect()
    }

    /// Stops the build early: calls in flight finish and are saved, and [`Build::run`] returns.
    pub fn stop(&self) {
        self.dataset.stop.stop(StopReason::Asked);
    }

    /// Builds all rows in memory.
    pub async fn preview(&self) -> Result<Preview, Error> {
        let (mut errors, mut rejected) = (Vec::new(), 0);
        loop {
            let stage = self.stage();
            let mut preview = stage.preview().await?;
            errors.append(&mut preview.errors);
            rejected += preview.rejected;
            let spec = &self.dataset.stages[stage.place.number];
            if stage.place.number + 1 == self.dataset.stages.len() || preview.rows.ids.is_empty() {
                return Ok(Preview { errors, rejected, ..preview });
            }
            let rows = StageRows::in_memory(preview.rows);
            let selection = select(&rows, StepSetting { steps: &spec.steps, seed: self.dataset.seed })?;
            let table = gather(&rows, &selection, 0..selection.len())?;
            let place = StagePlace { number: stage.place.number + 1, ..stage.place.clone() };
            let next = StageBuild::new(&self.dataset, place, Some(Arc::new(StageRows::in_memory(table))))?;
            self.go_on(next);
        }
    }

    fn go_on(&self, next: StageBuild) -> Arc<StageBuild> {
        let next = Arc::new(next);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&next);
        next
    }

    /// Builds all rows into the folder.
    pub async fn run(&self) -> Result<BuildReport, Error> {
        let Some(home) = &self.home else {
            return Err(Error::Setup("a preview has no folder to build into".to_owned()));
        };
        let result = match &home.done {
            Some(done) => Ok(BuildReport::of_metadata(done)),
            None => self.run_stages(home).await,
        };
        let closed = match &home.stage.journal {
            Some(journal) => journal.close().await.map_err(Error::from),
            None => Ok(()),
        };
        let (state, reason) = match &result {
            Ok(BuildReport { stopped: None, .. }) => (BuildState::Complete, None),
            Ok(BuildReport { stopped: Some(reason), .. }) => (BuildState::Stopped, Some(reason.to_string())),
            Err(error) => (BuildState::Failed, Some(error.to_string())),
        };
        let written = self.stage().write_status(state, reason).await;
        let report = result?;
        closed?;
        written?;
        match &report.stopped {
            Some(StopReason::Journal(error)) => Err(Error::Journal(Arc::clone(error))),
            _ => Ok(report),
        }
    }

    async fn run_stages(&self, home: &Home) -> Result<BuildReport, Error> {
        let mut stage = self.stage();
        let mut before = BuildReport::default();
        loop {
            let report = before.followed_by(stage.run().await?);
            if report.stopped.is_some() || stage.place.number + 1 == self.dataset.stages.len() {
                return Ok(report);
            }
            let (rows, steps) = self.after(&stage).await?;
            let mut earlier: Vec<StageReport> = report.stages.clone();
            earlier.iter_mut().last().into_iter().for_each(|last| last.steps.clone_from(&steps));
            let place = StagePlace { number: stage.place.number + 1, earlier, ..stage.place.clone() };
            let (next, home) =
                (StageBuild::new(&self.dataset, place, Some(Arc::new(rows)))?, home.stage.clone());
            let next = job::blocking(&self.dataset.engine, move || next.begin(&home)).await??;
            stage = self.go_on(next);
            before = report;
        }
    }

    /// The rows that the next stage starts from.
    async fn after(&self, stage: &StageBuild) -> Result<(StageRows, Vec<StepReport>), Error> {
        let Some(folder) = stage.shared.folder.clone() else { return Err(Error::Stopped) };
        let (dataset, number, columns) = (Arc::clone(&self.dataset), stage.place.number, stage.columns());
        job::blocking(&self.dataset.engine, move || {
            let setting = StepSetting { steps: &dataset.stages[number].steps, seed: dataset.seed };
            after_steps(&folder, columns, setting, dataset.run.buffer_size as usize)
        })
        .await?
    }
}

impl BuildReport {
    /// The report of all stages up to the next one.
    fn followed_by(self, next: BuildReport) -> BuildReport {
        let mut errors = self.errors;
        errors.extend(next.errors);
        errors.truncate(MAX_ERRORS);
        BuildReport {
            dropped: self.dropped + next.dropped,
            error_count: self.error_count + next.error_count,
            errors,
            ..next
        }
    }
}
