//! From a configuration to a dataset that can be built.

mod confine;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_engine::retry::{Retry, Salvage};
use anabranch_model::conversation::Turns;
use anabranch_sampler::ColumnKey;

use crate::ask::ModelQuestions;
use crate::columns::{Embedding, Expression, Llm, ModelCall, PaidModel, SamplerParts, Samplers, SeedColumns};
use crate::config::{
    Column, ColumnKind, Config, Constraint, Problem, Problems, ProcessorKind, RunOptions, Setting,
    StageConfig, Validator, WorkerConfig, matches, read_file,
};
use crate::custom::{self, WorkerOptions};
use crate::dataset::{ColumnSettings, Dataset, StageSpec};
use crate::dry::InDryRun;
use crate::error::Error;
use crate::inputs;
use crate::models::{ModelSource, Models};
use crate::post::Post;
use crate::processors::SchemaTransform;
use crate::seed::Seed;
use crate::spend::Spend;
use crate::validation::{self, Services, Tools};

/// The files that describe a dataset.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The configuration.
    pub config: PathBuf,
    /// A file with `model_configs` and `providers`, for configurations that have none.
    pub models: Option<PathBuf>,
    /// A file with run options.
    pub run: Option<PathBuf>,
    /// Seeds all random values. The same seed gives the same samples and prompts.
    pub seed: u64,
    /// The folders that seeds may be read from, for configurations by users who may not read other files. Relative
    /// paths start at the first one. Default: any file.
    pub seed_folders: Option<Vec<PathBuf>>,
}

/// A configuration with its seed opened.
#[derive(Clone)]
pub struct LoadedConfig {
    pub config: Config,
    pub warnings: Vec<Problem>,
    pub(crate) seed_rows: Option<Arc<Seed>>,
    pub(crate) seed: u64,
    /// The folder that relative paths start at.
    pub(crate) folder: PathBuf,
}

impl LoadedConfig {
    /// Reads and checks a configuration, and opens its seed. Blocks.
    pub fn read(sources: &Sources) -> Result<LoadedConfig, Problems> {
        let text = read_file(&sources.config)?;
        let file = |path: &Option<PathBuf>| -> Result<Option<(String, String)>, Problems> {
            path.as_ref().map(|path| Ok((path.display().to_string(), read_file(path)?))).transpose()
        };
        let (models, run) = (file(&sources.models)?, file(&sources.run)?);
        let folder = folder_of(&sources.config);
        let mut seed_rows = None;
        let mut open = |config: &crate::config::SeedConfig| {
            let confined;
            let (config, folder) = match &sources.seed_folders {
                None => (config, seed_folder(config, &folder)),
                Some(folders) => {
                    confined = confine::confine(config, folders)?;
                    (&confined, PathBuf::new())
                }
            };
            let seed = Seed::open(config, &folder, sources.seed).map_err(|error| error.to_string())?;
            let names = seed.columns().iter().map(|(name, _)| name.clone()).collect();
            seed_rows = Some(Arc::new(seed));
            Ok(names)
        };
        let environment = |name: &str| std::env::var(name).ok();
        let mut setting = Setting {
            models: models.as_ref().map(|(name, text)| (&**name, &**text)),
            run: run.as_ref().map(|(name, text)| (&**name, &**text)),
            seed_columns: Some(&mut open),
            environment: Some(&environment),
        };
        let (config, warnings) = Config::parse(&sources.config.display().to_string(), &text, &mut setting)?;
        Ok(LoadedConfig { config, warnings, seed_rows, seed: sources.seed, folder })
    }

    /// The number of rows of the seed dataset, if there is one. Rows beyond it start over.
    pub fn seed_row_count(&self) -> Option<u64> {
        self.seed_rows.as_ref().map(|seed| seed.len())
    }
}

/// The folder of a file, which is never empty, because a process cannot start in a folder with an empty name.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The folder for relative paths of a seed: the working folder, as in DataDesigner, or else the configuration's folder.
fn seed_folder(config: &crate::config::SeedConfig, folder: &Path) -> PathBuf {
    use crate::config::SeedSource;
    let (SeedSource::Local { path }
    | SeedSource::Directory { path, .. }
    | SeedSource::FileContents { path, .. }) = &config.source;
    let here = path.parent().unwrap_or(path);
    // Messages name the path as it is written, without `./` in front.
    if folder == Path::new(".")
        || path.exists()
        || (path.to_string_lossy().contains('*') && here.exists() && !folder.join(here).exists())
    {
        return PathBuf::new();
    }
    folder.to_owned()
}

impl Dataset {
    /// The dataset that a configuration describes. `post` makes the requests of remote validators and custom columns.
    pub fn from_config(
        loaded: &LoadedConfig,
        engine: &Engine,
        models: &ModelSource,
        post: &Arc<dyn Post>,
    ) -> Result<Dataset, Error> {
        let config = &loaded.config;
        let mut dataset = Dataset::new(config.name.clone(), engine);
        dataset.source = Arc::clone(&config.source);
        dataset.run = config.run.clone();
        dataset.seed = loaded.seed;
        let stage = |stage: &StageConfig| StageSpec {
            name: stage.name.clone(),
            rows: stage.rows,
            steps: stage.steps.clone(),
            ..StageSpec::default()
        };
        dataset.stages = config.stages.iter().map(stage).collect();
        let calls = Models::connect(config, models, &dataset)?;
        for stage in 0..config.stages.len() {
            dataset.add_initial(loaded, stage)?;
        }
        for column in &config.columns {
            dataset.add_column(loaded, column, &calls, post)?;
        }
        dataset.add_custom(loaded, &calls, post);
        for (number, stage) in config.stages.iter().enumerate() {
            stage.accept.iter().for_each(|accept| dataset.accept(number, accept));
        }
        dataset.add_processors(config);
        dataset.set_order(loaded);
        dataset.tasks_limit = Some(calls.tasks);
        dataset.inputs = inputs::of(loaded, &calls);
        dataset.models = calls.facts();
        let used: Vec<PaidModel> = calls.by_alias.values().map(|call| call.model.clone()).collect();
        dataset.paid_models.clone_from(&used);
        let usage = Arc::new(move || used.iter().flat_map(PaidModel::spent).collect());
        dataset.spend = Spend::new(usage, config.prices.clone());
        Ok(dataset)
    }

    /// Adds the columns of the seed and of all samplers, which every row of a stage starts with.
    fn add_initial(&mut self, loaded: &LoadedConfig, stage: usize) -> Result<(), Error> {
        let initial = ColumnSettings { is_initial: true, ..ColumnSettings::default() };
        if let Some(seed) = loaded.seed_rows.as_ref().filter(|_| stage == 0) {
            self.shared_column(stage, Arc::new(SeedColumns::new(Arc::clone(seed))), initial.clone());
        }
        let samplers: Vec<SamplerParts<'_>> = loaded
            .config
            .columns
            .iter()
            .filter(|column| column.stage == stage)
            .filter_map(|column| match &column.kind {
                ColumnKind::Sampler(sampler) => {
                    Some(SamplerParts { name: &column.name, sampler, key: column_key(loaded.seed, column) })
                }
                _ => None,
            })
            .collect();
        if !samplers.is_empty() {
            let is_here = |constraint: &&Constraint| {
                samplers.iter().any(|sampler| sampler.name == constraint.target_column)
            };
            let constraints: Vec<Constraint> =
                loaded.config.constraints.iter().filter(is_here).cloned().collect();
            let samplers = Samplers::new(&samplers, &constraints).map_err(Error::Setup)?;
            self.shared_column(stage, Arc::new(samplers), initial);
        }
        Ok(())
    }

    fn add_column(
        &mut self,
        loaded: &LoadedConfig,
        column: &Column,
        calls: &Models,
        post: &Arc<dyn Post>,
    ) -> Result<(), Error> {
        let settings = ColumnSettings {
            skip: column.skip.clone(),
            propagate_skip: column.propagate_skip,
            on_error: column.on_error,
            models: column.model_aliases().into_iter().map(str::to_owned).collect(),
            in_dry_run: in_dry_run(column),
            ..ColumnSettings::default()
        };
        let run = &loaded.config.run;
        let (retry, stage) = (retry(run), column.stage);
        match &column.kind {
            ColumnKind::Sampler(_) | ColumnKind::Custom(_) => {}
            ColumnKind::Expression { expr, dtype } => {
                let expression = Expression::new(&column.name, expr.clone(), *dtype);
                self.shared_column(stage, Arc::new(expression), settings);
            }
            ColumnKind::Llm(llm) => {
                let call = calls.get(&llm.model_alias)?.clone();
                let turns = Turns {
                    corrections: run.max_conversation_correction_steps,
                    restarts: run.max_conversation_restarts,
                    rounds: 0,
                };
                let settings = ColumnSettings { limit: Some(call.limit), retry: Some(retry), ..settings };
                let sample = (loaded.seed, salt(loaded.seed, column.twin));
                let llm = Llm::new(&column.name, llm, call, turns, sample).map_err(Error::Setup)?;
                let llm = llm.with_rounds(Arc::clone(&self.rounds));
                self.shared_column(stage, Arc::new(llm), settings);
            }
            ColumnKind::Embedding { target_column, model_alias } => {
                let call = calls.get(model_alias)?;
                let settings = ColumnSettings { limit: Some(call.limit), retry: Some(retry), ..settings };
                let embedding = Embedding::new(&column.name, target_column, call, call.parallel as usize);
                self.shared_column(stage, Arc::new(embedding), settings);
            }
            ColumnKind::Validation(validation) => {
                let services = Services {
                    tools: Tools::on_path(),
                    post: Arc::clone(post),
                    clock: Arc::clone(self.engine.clock()),
                };
                let validation =
                    validation::generator(&column.name, validation, &services).map_err(Error::Setup)?;
                let settings = ColumnSettings { limit: Some(calls.tasks), ..settings };
                self.shared_column(stage, validation.into(), settings);
            }
        }
        Ok(())
    }

    /// Adds all custom columns together: those with the same command share a worker.
    fn add_custom(&mut self, loaded: &LoadedConfig, calls: &Models, post: &Arc<dyn Post>) {
        let custom: Vec<(&Column, &crate::config::CustomColumn)> = loaded
            .config
            .columns
            .iter()
            .filter_map(|column| match &column.kind {
                ColumnKind::Custom(custom) => Some((column, custom)),
                _ => None,
            })
            .collect();
        if custom.is_empty() {
            return;
        }
        let models_of = |(column, custom): &(&Column, &crate::config::CustomColumn)| {
            let aliases = custom.model_aliases.iter();
            let models = aliases.filter_map(|alias| {
                let call = calls.by_alias.get(alias)?;
                let model = call.model.for_column(&column.name);
                Some((alias.clone(), ModelCall { model, ..call.clone() }))
            });
            (column.name.clone(), models.collect())
        };
        if custom.iter().any(|(_, custom)| !custom.model_aliases.is_empty()) {
            self.meter.expect_questions();
        }
        let questions = ModelQuestions {
            models: custom.iter().map(models_of).collect(),
            keys: custom
                .iter()
                .map(|(column, _)| (column.name.clone(), column_key(loaded.seed, column)))
                .collect(),
            engine: self.engine.clone(),
            limits: self.limits.clone(),
            retry: retry(&loaded.config.run),
        };
        let options = WorkerOptions::new(
            loaded.folder.clone(),
            Arc::clone(self.engine.clock()),
            Arc::clone(post),
            Arc::new(questions),
        );
        let named: Vec<(&str, &crate::config::CustomColumn)> =
            custom.iter().map(|(column, custom)| (&*column.name, *custom)).collect();
        let retry = Retry {
            rounds: loaded.config.run.max_retries,
            base: Duration::from_millis(200),
            longest: Duration::from_secs(10),
            ..Retry::default()
        };
        for (generator, (column, _)) in custom::generators(&named, &options).into_iter().zip(&custom) {
            let settings = ColumnSettings {
                skip: column.skip.clone(),
                propagate_skip: column.propagate_skip,
                on_error: column.on_error,
                retry: Some(retry),
                limit: Some(calls.tasks),
                models: column.model_aliases().into_iter().map(str::to_owned).collect(),
                in_dry_run: in_dry_run(column),
                ..ColumnSettings::default()
            };
            self.shared_column(column.stage, generator.into(), settings);
        }
    }

    fn add_processors(&mut self, config: &Config) {
        for processor in &config.processors {
            match &processor.kind {
                ProcessorKind::DropColumns { column_names } => {
                    let names = self.column_names();
                    let dropped = names
                        .into_iter()
                        .filter(|name| column_names.iter().any(|pattern| matches(pattern, name)));
                    self.dropped.extend(dropped);
                }
                ProcessorKind::SchemaTransform { template } => {
                    self.processor(SchemaTransform::new(&processor.name, template));
                }
            }
        }
        self.dropped
            .extend(config.columns.iter().filter(|column| column.drop).map(|column| column.name.clone()));
    }

    fn column_names(&self) -> Vec<String> {
        let tasks = self.stages.iter().flat_map(|stage| &stage.tasks);
        let fills = tasks.flat_map(|task| &task.generator.contract().fills);
        fills.map(|fill| fill.name.clone()).collect()
    }

    /// Columns of the seed first, then as the configuration has them, each with its side effects behind it.
    fn set_order(&mut self, loaded: &LoadedConfig) {
        if let Some(seed) = &loaded.seed_rows {
            self.order.extend(seed.columns().iter().map(|(name, _)| name.clone()));
        }
        for column in &loaded.config.columns {
            self.order.push(column.name.clone());
            self.order.extend(column.side_effects());
        }
    }
}

/// The part of a column in dry runs, which contact no server.
fn in_dry_run(column: &Column) -> InDryRun {
    match &column.kind {
        ColumnKind::Validation(validation) => match validation.validator {
            Validator::Code { .. } => InDryRun::ByRow,
            Validator::Remote(_) => InDryRun::NotCalled,
        },
        ColumnKind::Custom(custom) => match custom.worker {
            WorkerConfig::Command { .. } if custom.model_aliases.is_empty() => InDryRun::ByGroup,
            WorkerConfig::Command { .. } | WorkerConfig::Http { .. } => InDryRun::NotCalled,
        },
        ColumnKind::Sampler(_)
        | ColumnKind::Expression { .. }
        | ColumnKind::Llm(_)
        | ColumnKind::Embedding { .. } => InDryRun::ByRow,
    }
}

/// Retries of calls to models.
fn retry(run: &RunOptions) -> Retry {
    Retry {
        rounds: run.max_retries,
        base: Duration::from_millis(500),
        longest: Duration::from_secs(30),
        salvage: Salvage { rounds: run.salvage_rounds, pause: Duration::from_secs(30) },
    }
}

/// Tells apart the samples of columns that ask the same model the same thing, and of datasets with different seeds. A
/// column keeps its replies if it is renamed or moved.
fn salt(seed: u64, twin: u64) -> u64 {
    if (seed, twin) == (0, 0) {
        return 0;
    }
    // The high bits only: the low ones are the row's number.
    ColumnKey::new(seed, &format!("twin {twin}")).stream(0, 0).bits() & !0xffff_ffff
}

/// The source of a column's random numbers: its identity, and its place among its twins.
fn column_key(seed: u64, column: &Column) -> ColumnKey {
    ColumnKey::new(seed, &format!("{} {}", column.identity, column.twin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("a.yaml")), Path::new("."));
        assert_eq!(folder_of(Path::new("b/a.yaml")), Path::new("b"));
    }
}
