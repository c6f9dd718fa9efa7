//! A dataset that can be built: generators, processors and options.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use anabranch_engine::limit::{LimitKey, Limits};
use anabranch_engine::retry::Retry;
use anabranch_engine::{Engine, Policy};

use crate::budget::{Budget, Meter};
use crate::build::Build;
use crate::columns::{Accepts, PaidModel};
use crate::config::{Accept, OnRowError, RunOptions, Skip, StepConfig};
use crate::dry::{InDryRun, ModelFacts};
use crate::error::Error;
use crate::generator::Generator;
use crate::inputs::Inputs;
use crate::journal::{JournalPlace, JournalSlot};
use crate::output::JOURNAL;
use crate::processor::Processor;
use crate::program::TaskSpec;
use crate::spend::Spend;
use crate::stop::StopSwitch;

/// A dataset that can be built: generators, processors and options.
///
/// ```
/// use anabranch_dataset::generator::{Cells, Contract, Grain, Output, Row, Work};
/// use anabranch_dataset::{ColumnSettings, ColumnType, Dataset, Generator};
/// use anabranch_engine::{Config, Engine};
/// use anabranch_value::Value;
///
/// struct Square(Contract);
///
/// impl Generator for Square {
///     fn contract(&self) -> &Contract {
///         &self.0
///     }
///
///     fn cell(&self, row: Row<'_>) -> Work<Cells> {
///         Work::Ready(Ok([Value::Int((row.id * row.id) as i64)].into_iter().collect()))
///     }
/// }
///
/// let fills = vec![Output { name: "square".to_owned(), column_type: ColumnType::Int }];
/// let square = Square(Contract { grain: Grain::Cell, reads: Vec::new(), fills, stateful: false });
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// let preview = runtime.block_on(async {
///     let engine = Engine::new(&Config::default())?;
///     let mut dataset = Dataset::new("squares", &engine);
///     dataset.column(square, ColumnSettings::default());
///     Ok::<_, Box<dyn std::error::Error>>(dataset.preview(4)?.preview().await?)
/// })?;
/// assert_eq!(preview.rows.columns[0].values, [0, 1, 4, 9].map(Value::Int));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dataset {
    pub(crate) name: String,
    /// The text of the configuration, if there is one.
    pub(crate) source: Arc<str>,
    pub(crate) engine: Engine,
    pub(crate) limits: Limits,
    /// At least one.
    pub(crate) stages: Vec<StageSpec>,
    pub(crate) processors: Vec<Arc<dyn Processor>>,
    /// The order of the columns. Columns that are not named here follow.
    pub(crate) order: Vec<String>,
    /// The columns that are written to separate files.
    pub(crate) dropped: Vec<String>,
    pub(crate) run: RunOptions,
    pub(crate) seed: u64,
    pub(crate) spend: Spend,
    /// The models that columns call.
    pub(crate) paid_models: Vec<PaidModel>,
    pub(crate) meter: Meter,
    /// Digests of everything that decides about the values.
    pub(crate) inputs: Inputs,
    /// The journal of paid replies, once a build has opened it.
    pub(crate) journal: JournalSlot,
    /// Rounds of conversations after the first, set by a build that tries failed rows again.
    pub(crate) rounds: Arc<AtomicU32>,
    /// The limit of all tasks in flight.
    pub(crate) tasks_limit: Option<LimitKey>,
    /// The models with their limits, for plans.
    pub(crate) models: Vec<(ModelFacts, LimitKey)>,
    /// Ends the build early.
    pub(crate) stop: StopSwitch,
    /// The states of single cells are kept for displays.
    pub(crate) watches_cells: bool,
    /// The most bytes of the values of unfinished row groups.
    pub(crate) memory_most: Option<usize>,
}

/// Columns that are generated together.
#[derive(Clone, Default)]
pub(crate) struct StageSpec {
    pub(crate) name: String,
    /// The number of rows, if the configuration says it.
    pub(crate) rows: Option<u64>,
    /// Rows are accepted or not, with the most that are generated, if the configuration says it.
    pub(crate) accept: Option<Option<u64>>,
    pub(crate) tasks: Vec<TaskSpec>,
    /// Steps behind it. The last stage has none.
    pub(crate) steps: Vec<StepConfig>,
}

/// The size of a build and its output folder.
///
/// A build into a folder that holds an earlier build of the same dataset continues it.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    pub rows: u64,
    /// The output folder.
    pub out: PathBuf,
    /// Removes the dataset that is in the folder. The journal stays.
    pub replace: bool,
    /// Tries the failed rows of the earlier build again.
    pub retry_failed: bool,
    /// The location of the journal of paid replies.
    pub journal: JournalPlace,
    /// The spending limits of the build.
    pub budget: Budget,
}

impl BuildOptions {
    /// The folder of the journal; `None` if there is no journal.
    pub(crate) fn journal_folder(&self) -> Option<PathBuf> {
        match &self.journal {
            JournalPlace::Nowhere => None,
            JournalPlace::OutputFolder => Some(self.out.join(JOURNAL)),
            JournalPlace::Folder(journal) => Some(journal.clone()),
        }
    }
}

/// The scheduling of a column's cells, and the handling of their failures.
#[derive(Clone, Debug)]
pub struct ColumnSettings {
    /// The condition under which a cell is skipped. Default: never.
    pub skip: Option<Skip>,
    /// Whether a cell is also skipped if a column that it reads was skipped. Default: yes.
    pub propagate_skip: bool,
    /// Default: the row is dropped.
    pub on_error: OnRowError,
    /// A limit of [`Dataset::limits`] that each cell counts against. Default: none.
    pub limit: Option<LimitKey>,
    /// The retries of a cell after transient failures. Default: none.
    pub retry: Option<Retry>,
    /// The time limit of one attempt. Default: none.
    pub timeout: Option<Duration>,
    /// Whether it runs before the processors that see a row group first, like samplers and seeds. Default: no.
    pub is_initial: bool,
    /// The aliases of the models that its cells ask, for plans and reports. Default: none.
    pub models: Vec<String>,
    /// The column's part in dry runs. Default: it is called for row groups whose inputs are known.
    pub in_dry_run: InDryRun,
}

impl Default for ColumnSettings {
    fn default() -> ColumnSettings {
        ColumnSettings {
            skip: None,
            propagate_skip: true,
            on_error: OnRowError::default(),
            limit: None,
            retry: None,
            timeout: None,
            is_initial: false,
            models: Vec::new(),
            in_dry_run: InDryRun::default(),
        }
    }
}

impl Dataset {
    /// A dataset without columns.
    pub fn new(name: impl Into<String>, engine: &Engine) -> Dataset {
        Dataset {
            name: name.into(),
            source: "".into(),
            engine: engine.clone(),
            limits: Limits::new(Arc::clone(engine.clock())),
            stages: vec![StageSpec::default()],
            processors: Vec::new(),
            order: Vec::new(),
            dropped: Vec::new(),
            run: RunOptions::default(),
            seed: 0,
            spend: Spend::default(),
            paid_models: Vec::new(),
            meter: Meter::default(),
            inputs: Inputs::new(),
            journal: JournalSlot::default(),
            rounds: Arc::default(),
            tasks_limit: None,
            models: Vec::new(),
            stop: StopSwitch::default(),
            watches_cells: false,
            memory_most: None,
        }
    }

    /// Adds the columns of a generator.
    pub fn column(&mut self, generator: impl Generator, settings: ColumnSettings) {
        let last = self.stages.len() - 1;
        self.shared_column(last, Arc::new(generator), settings);
    }

    pub(crate) fn shared_column(
        &mut self,
        stage: usize,
        generator: Arc<dyn Generator>,
        settings: ColumnSettings,
    ) {
        let policy = Policy {
            limit: settings.limit,
            retry: settings.retry,
            timeout: settings.timeout,
            ..Policy::default()
        };
        let task = TaskSpec {
            generator,
            skip: settings.skip,
            propagate_skip: settings.propagate_skip,
            on_error: settings.on_error,
            policy,
            is_initial: settings.is_initial,
            accepts: false,
            models: settings.models,
            in_dry_run: settings.in_dry_run,
        };
        self.stages[stage].tasks.push(task);
    }

    /// Keeps only the rows of a stage for which all conditions are true.
    pub(crate) fn accept(&mut self, stage: usize, accept: &Accept) {
        self.shared_column(stage, Arc::new(Accepts::new(&accept.when)), ColumnSettings::default());
        let stage = &mut self.stages[stage];
        stage.accept = Some(accept.max_candidates);
        if let Some(mut task) = stage.tasks.pop() {
            task.accepts = true;
            // In front of the columns that read the same ones: they are not paid for if the row is not accepted.
            stage.tasks.insert(0, task);
        }
    }

    /// Adds a processor. Processors are called in the order in which they were added.
    pub fn processor(&mut self, processor: impl Processor) {
        self.processors.push(Arc::new(processor));
    }

    /// Keeps the state of each cell while the dataset is built, for displays: [`Progress::cells`](crate::Progress::cells).
    pub fn watch_cells(&mut self) {
        self.watches_cells = true;
    }

    /// Stops the build once the values of its unfinished row groups take more than about so many bytes, for configurations by
    /// users who may not have all memory. To write a group takes a few times the memory of its values in addition.
    pub fn bound_memory(&mut self, most: usize) {
        self.memory_most = Some(most);
    }

    /// The options of the build run.
    pub fn run_options(&mut self) -> &mut RunOptions {
        &mut self.run
    }

    /// The limits that columns can count against.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Leaves columns out of the rows; they are written apart.
    pub fn drop_columns(&mut self, names: impl IntoIterator<Item = String>) {
        self.dropped.extend(names);
    }

    /// A build of rows in memory, as one row group: for a look before the real thing.
    pub fn preview(self, rows: u64) -> Result<Build, Error> {
        Build::in_memory(self, rows)
    }

    /// A build into a folder. If the folder holds an earlier build of the same dataset, it is continued: with the row
    /// groups that are on disk, and the replies that are in its journal.
    pub async fn build(self, options: BuildOptions) -> Result<Build, Error> {
        Build::into_folder(self, options).await
    }
}
