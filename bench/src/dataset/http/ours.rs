//! A build of the configuration into a folder, as the command line does it.

use std::io;
use std::sync::Arc;

use anabranch_dataset::post::Post;
use anabranch_dataset::{BuildOptions, Dataset, JournalPlace, LoadedConfig, ModelSource, Sources};
use anabranch_engine::{Config, Engine};
use anabranch_model::{HttpClient, HttpSettings};

use super::child::Job;

/// Builds all rows. Returns those in the files.
pub(super) fn run(job: &Job, journal: JournalPlace) -> io::Result<u64> {
    let sources =
        Sources { config: job.config_file(), models: Some(job.providers_file()), ..Sources::default() };
    let loaded = LoadedConfig::read(&sources).map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = Engine::new(&Config::default()).map_err(io::Error::other)?;
        let client = HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock()))
            .map_err(io::Error::other)?;
        let post: Arc<dyn Post> = Arc::new(client.clone());
        let dataset = Dataset::from_config(&loaded, &engine, &ModelSource::Servers(client), &post)
            .map_err(io::Error::other)?;
        build(dataset, job, journal).await
    })
}

pub(super) async fn build(dataset: Dataset, job: &Job, journal: JournalPlace) -> io::Result<u64> {
    let out = job.folder.join("out");
    let options = BuildOptions { rows: job.rows, out, journal, ..BuildOptions::default() };
    let build = dataset.build(options).await.map_err(io::Error::other)?;
    let report = build.run().await.map_err(io::Error::other)?;
    Ok(report.rows)
}
