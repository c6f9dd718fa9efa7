//! Dataset jobs and the registry of runs of `anabranch serve`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_engine::Engine;
use anabranch_engine::options::Class;
use anabranch_model::{HttpClient, HttpSettings, ProxySettings};
use anabranch_server::runs::{RunSettings, Runs};
use anabranch_server::{DatasetSettings, Datasets};
use anabranch_text::size;
use clap::Args;

use crate::failure::Failure;

/// Dataset jobs.
#[derive(Args)]
#[command(next_help_heading = "Datasets")]
pub(crate) struct DatasetOptions {
    /// The file with `model_configs` and `providers` of all jobs. Without it only the demo model answers.
    #[arg(long, value_name = "MODELS.yaml")]
    dataset_models: Option<PathBuf>,
    /// A folder that seeds of jobs may be read from; repeatable. Without it a job may read no file.
    #[arg(long, value_name = "DIR")]
    dataset_files: Vec<PathBuf>,
    /// The most builds at a time; more wait in order.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    dataset_builds: u16,
    /// No job is accepted while the files of all jobs take more than this.
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = size::parse)]
    dataset_disk: u64,
    /// Jobs may have custom columns, remote validators, models and providers of their own. They run commands and contact
    /// servers with the rights of this server.
    #[arg(long)]
    dataset_allow_custom: bool,
    /// A PEM file with certificates that are trusted beside the system's, for servers of models.
    #[arg(long, value_name = "FILE")]
    dataset_ca_file: Option<PathBuf>,
}

/// The registry of runs in the folder of a store.
pub(super) fn open_runs(data: &Path, engine: &Engine) -> Result<Runs, Failure> {
    let folder = data.join("runs");
    let pool = Arc::clone(engine.pool(Class::Batch));
    Runs::open(&folder, RunSettings::default(), pool)
        .map_err(|error| Failure::of(format!("the runs in {} cannot be read: {error}", folder.display())))
}

impl DatasetOptions {
    /// The jobs in the folder `datasets` of a store. Those that have not ended go on. Called inside of a runtime.
    pub(super) fn open(&self, data: &Path, engine: &Engine, runs: &Runs) -> Result<Datasets, Failure> {
        let proxy = ProxySettings::from_variables(|name| std::env::var(name).ok());
        let settings =
            HttpSettings { proxy, ca_file: self.dataset_ca_file.clone(), ..HttpSettings::default() };
        let client = HttpClient::new(&settings, Arc::clone(engine.clock()))
            .map_err(|error| Failure::Failed(Box::new(error)))?;
        if let Some(models) = &self.dataset_models
            && let Err(error) = std::fs::metadata(models)
        {
            return Err(Failure::of(format!("the models file {} cannot be read: {error}", models.display())));
        }
        let settings = DatasetSettings {
            models: self.dataset_models.clone(),
            files: self.dataset_files.clone(),
            allow_custom: self.dataset_allow_custom,
            builds_most: usize::from(self.dataset_builds),
            disk_most: self.dataset_disk,
            ..DatasetSettings::new(data.join("datasets"))
        };
        let folder = settings.folder.clone();
        Datasets::open(settings, engine, client, runs).map_err(|error| {
            Failure::of(format!("the datasets in {} cannot be read: {error}", folder.display()))
        })
    }
}
