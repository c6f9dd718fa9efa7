//! Dataset jobs and the registry of runs of `anabranch serve`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::Engine;
use anabranch_model::{HttpClient, HttpSettings, ProxySettings};
use anabranch_server::runs::{RunSettings, Runs};
use anabranch_server::{DatasetSettings, Datasets};
use anabranch_text::size;
use clap::Args;

use super::resolver::{Resolver, path, positive};
use crate::failure::Failure;

/// Dataset jobs.
#[derive(Args)]
#[command(next_help_heading = "Datasets")]
pub(crate) struct DatasetArgs {
    /// The file with `model_configs` and `providers` of all jobs. Without it only the demo model answers.
    #[arg(long, value_name = "MODELS.yaml", env = "ANABRANCH_DATASET_MODELS", hide_env_values = true)]
    dataset_models: Option<PathBuf>,
    /// A folder that seeds of jobs may be read from; repeatable. Without it a job may read no file.
    #[arg(long, value_name = "DIR", env = "ANABRANCH_DATASET_FILES", hide_env_values = true)]
    #[arg(value_delimiter = ',')]
    dataset_files: Vec<PathBuf>,
    /// The most builds at a time, up to 1000; more wait in order. 2 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_DATASET_BUILDS", hide_env_values = true, value_parser = builds)]
    dataset_builds: Option<usize>,
    /// The most jobs that are queued or being built, at most half of them of one client. 100 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_DATASET_OPEN", hide_env_values = true, value_parser = positive)]
    dataset_open: Option<usize>,
    /// The most jobs that are kept, at most half of them of one client. 1000 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_DATASET_KEPT", hide_env_values = true, value_parser = positive)]
    dataset_kept: Option<usize>,
    /// No job is accepted while the files of all jobs take more than this: 64GiB if not given.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_DATASET_DISK", hide_env_values = true, value_parser = size::parse)]
    dataset_disk: Option<u64>,
    /// Jobs may have custom columns, remote validators, models and providers of their own. They run commands and contact
    /// servers with the rights of this server.
    #[arg(long, value_name = "BOOL", env = "ANABRANCH_DATASET_ALLOW_CUSTOM", hide_env_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dataset_allow_custom: Option<bool>,
    /// A PEM file with certificates that are trusted beside the system's, for servers of models.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_DATASET_CA_FILE", hide_env_values = true)]
    dataset_ca_file: Option<PathBuf>,
}

fn builds(text: &str) -> Result<usize, String> {
    let count: Option<usize> = text.parse().ok().filter(|count| (1..=1_000).contains(count));
    count.ok_or_else(|| "expected a whole number from 1 to 1000".to_owned())
}

/// The settings of dataset jobs.
pub(crate) struct DatasetConfig {
    settings: DatasetSettings,
    ca_file: Option<PathBuf>,
}

impl DatasetArgs {
    /// The settings, with the jobs in the folder `datasets` of a store.
    pub(super) fn resolve(&self, data: &Path, from: &mut Resolver<'_>) -> Result<DatasetConfig, Failure> {
        let usual = DatasetSettings::new(data.join("datasets"));
        let models = from.path("dataset_models", self.dataset_models.as_ref())?;
        let files =
            from.list("dataset_files", &self.dataset_files, path, |path| path.display().to_string())?;
        let builds_most =
            from.shown("dataset_builds", self.dataset_builds, builds, usual.builds_most, usize::to_string)?;
        let open_most = from.positive("dataset_open", self.dataset_open, usual.open_most)?;
        let kept_most = from.positive("dataset_kept", self.dataset_kept, usual.kept_most)?;
        let disk_most = from.size("dataset_disk", self.dataset_disk, usual.disk_most)?;
        let allow_custom = from.switch("dataset_allow_custom", self.dataset_allow_custom)?;
        let ca_file = from.path("dataset_ca_file", self.dataset_ca_file.as_ref())?;
        let settings = DatasetSettings {
            models,
            files,
            builds_most,
            open_most,
            kept_most,
            disk_most,
            allow_custom,
            ..usual
        };
        Ok(DatasetConfig { settings, ca_file })
    }
}

/// The registry of runs in the folder of a store.
pub(super) fn open_runs(data: &Path) -> Result<Runs, Failure> {
    let folder = data.join("runs");
    Runs::open(&folder, RunSettings::default())
        .map_err(|error| Failure::of(format!("the runs in {} cannot be read: {error}", folder.display())))
}

impl DatasetConfig {
    /// Opens the jobs, and continues those that have not ended. Must be called inside a runtime.
    pub(super) fn open(&self, engine: &Engine, runs: &Runs) -> Result<Datasets, Failure> {
        let proxy = ProxySettings::from_variables(|name| std::env::var(name).ok());
        let http = HttpSettings { proxy, ca_file: self.ca_file.clone(), ..HttpSettings::default() };
        let client = HttpClient::new(&http, Arc::clone(engine.clock()))
            .map_err(|error| Failure::Failed(Box::new(error)))?;
        if let Some(models) = &self.settings.models
            && let Err(error) = std::fs::metadata(models)
        {
            return Err(Failure::of(format!("the models file {} cannot be read: {error}", models.display())));
        }
        let folder = self.settings.folder.display();
        Datasets::open(self.settings.clone(), engine, client, runs)
            .map_err(|error| Failure::of(format!("the datasets in {folder} cannot be read: {error}")))
    }
}
