//! The files that describe a dataset, and the models that generate it.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_dataset::config::Column;
use anabranch_dataset::post::Post;
use anabranch_dataset::{Dataset, Error, LoadedConfig, ModelSource, Sources};
use anabranch_dataset_inspect::BuiltFrom;
use anabranch_engine::Engine;
use anabranch_model::{Demo, HttpClient, HttpSettings, ProxySettings};
use anabranch_text::quote;
use clap::Args;
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;
use crate::{out, wait};

/// The files that describe a dataset.
#[derive(Args)]
pub(super) struct ConfigFiles {
    /// The configuration: .yaml, .yml or .json, as DataDesigner writes it or in the short form.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// A file with `model_configs` and `providers`, for configurations that have none or not all. The configuration's
    /// own come first.
    #[arg(long, value_name = "MODELS.yaml")]
    models: Option<PathBuf>,
    /// A file with run options (buffer_size, max_retries, ...). The configuration's own come first.
    #[arg(long, value_name = "FILE")]
    run_config: Option<PathBuf>,
}

/// A dataset to generate.
#[derive(Args)]
pub(super) struct GenerateOptions {
    #[command(flatten)]
    pub(super) files: ConfigFiles,
    /// Seeds all random values: the same seed gives the same samples and prompts.
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(super) seed: u64,
    /// Every model alias is answered by the built-in demo model: offline, without cost, with made-up texts.
    #[arg(long)]
    pub(super) demo: bool,
    /// A PEM file with certificates that are trusted beside the system's, for servers of models.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl ConfigFiles {
    /// Reads and checks all files. Reports warnings.
    pub(super) fn load(&self, seed: u64) -> Result<LoadedConfig, Failure> {
        let ConfigFiles { file, models, run_config } = self;
        let sources = Sources {
            config: file.clone(),
            models: models.clone(),
            run: run_config.clone(),
            seed,
            seed_folders: None,
        };
        let loaded = LoadedConfig::read(&sources)?;
        out::warnings(&loaded.warnings);
        Ok(loaded)
    }
}

impl GenerateOptions {
    /// A record of the files and options, for commands that inspect the dataset later.
    pub(super) fn built_from(&self) -> std::io::Result<BuiltFrom> {
        let ConfigFiles { file, models, run_config } = &self.files;
        let absolute = |path: &Option<PathBuf>| path.as_ref().map(std::path::absolute).transpose();
        Ok(BuiltFrom {
            config: std::path::absolute(file)?,
            models: absolute(models)?,
            run_config: absolute(run_config)?,
            seed: self.seed,
            demo: self.demo,
            ..BuiltFrom::default()
        })
    }

    /// Reads and checks all files. Fails if an alias has no model.
    pub(super) fn load(&self) -> Result<LoadedConfig, Failure> {
        let loaded = self.files.load(self.seed)?;
        match without_model(&loaded) {
            Some(what) if !self.demo => Err(Failure::of(what)),
            _ => Ok(loaded),
        }
    }

    /// The dataset, connected to its models. Must be called inside a runtime.
    pub(super) fn dataset(&self, loaded: &LoadedConfig, engine: &Engine) -> Result<Dataset, Failure> {
        self.with_models(loaded, engine, ModelSource::Servers)
    }

    /// The dataset for a dry run, which calls no model. Must be called inside a runtime.
    pub(super) fn dry_dataset(&self, loaded: &LoadedConfig, engine: &Engine) -> Result<Dataset, Failure> {
        self.with_models(loaded, engine, ModelSource::Unasked)
    }

    fn with_models(
        &self,
        loaded: &LoadedConfig,
        engine: &Engine,
        servers: fn(HttpClient) -> ModelSource,
    ) -> Result<Dataset, Failure> {
        let has_models = loaded.config.columns.iter().any(|column| !column.model_aliases().is_empty());
        let client = self.client(engine)?;
        let post: Arc<dyn Post> = Arc::new(client.clone());
        let models = match self.demo || !has_models {
            true => ModelSource::Demo(Demo::new()),
            false => servers(client),
        };
        Ok(Dataset::from_config(loaded, engine, &models, &post)?)
    }

    fn client(&self, engine: &Engine) -> Result<HttpClient, Failure> {
        let proxy = ProxySettings::from_variables(|name| std::env::var(name).ok());
        let settings = HttpSettings { proxy, ca_file: self.ca_file.clone(), ..HttpSettings::default() };
        HttpClient::new(&settings, Arc::clone(engine.clock()))
            .map_err(|error| Failure::Failed(Box::new(error)))
    }
}

/// A dataset for inspecting a build. It contacts no server, so it needs no key. Must be called inside a runtime.
pub(super) fn offline_dataset(loaded: &LoadedConfig, engine: &Engine, demo: bool) -> Result<Dataset, Error> {
    let mut loaded = loaded.clone();
    let config = &mut loaded.config;
    for missing in std::mem::take(&mut config.missing_keys) {
        let found = config.providers.iter_mut().filter(|provider| provider.name == missing.provider);
        found.for_each(|provider| provider.api_key = None);
    }
    let client = HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock()))
        .map_err(|error| Error::Setup(error.to_string()))?;
    let has_models = config.columns.iter().any(|column| !column.model_aliases().is_empty());
    let post: Arc<dyn Post> = Arc::new(client.clone());
    let models = match demo || !has_models {
        true => ModelSource::Demo(Demo::new()),
        false => ModelSource::Servers(client),
    };
    Dataset::from_config(&loaded, engine, &models, &post)
}

/// The number of rows, from the flag or the configuration.
pub(super) fn rows(flag: Option<u64>, loaded: &LoadedConfig) -> Result<u64, Failure> {
    let written = loaded.config.stages.first().and_then(|stage| stage.rows);
    flag.or(written)
        .ok_or_else(|| Failure::of("say how many rows: --rows N, or `rows:` in the configuration"))
}

/// The error message about aliases without a model; `None` if all have one.
pub(super) fn without_model(loaded: &LoadedConfig) -> Option<String> {
    let aliases: Vec<String> = loaded.config.aliases_without_model().into_iter().map(quote).collect();
    let noun = match &aliases[..] {
        [] => return None,
        [_] => "alias",
        _ => "aliases",
    };
    Some(format!(
        "no model is configured for the {noun} {}; give a file with `model_configs` and `providers` (--models FILE), \
         or use the offline demo model (--demo)",
        aliases.join(", ")
    ))
}

/// The aliases that columns use, without duplicates.
pub(super) fn aliases(loaded: &LoadedConfig) -> Vec<&str> {
    let mut aliases: Vec<&str> = loaded.config.columns.iter().flat_map(Column::model_aliases).collect();
    aliases.sort_unstable();
    aliases.dedup();
    aliases
}

/// A runtime on all cores.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    wait::runtime(&mut Builder::new_multi_thread())
}

/// An engine. Must be called inside a runtime.
pub(super) fn engine() -> Result<Engine, Failure> {
    Engine::new(&anabranch_engine::Config::default()).map_err(|error| Failure::Failed(Box::new(error)))
}
