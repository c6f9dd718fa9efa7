//! A build of the configuration into a folder, as the command line does it.

use std::io;
use std::sync::Arc;

use anabranch_dataset::post::Post;
use anabranch_dataset::{BuildOptions, Dataset, Loaded, ModelSource, Sources};
use anabranch_engine::{Config, Engine};
use anabranch_model::{HttpClient, HttpSettings};

use super::child::Job;

/// Whether replies are kept in a journal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    On,
    Off,
}

/// Switches the journal of a build off; `None` if builds have none.
fn without_journal(_: &mut Dataset) -> Option<()> {
    None
}

/// Whether a build has a journal that can be switched off.
pub(super) fn has_journal() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.is_ok_and(|runtime| {
        let _inside = runtime.enter();
        let engine = Engine::new(&Config::default()).expect("the default settings are good");
        without_journal(&mut Dataset::new("bench", &engine)).is_some()
    })
}

/// Builds all rows. Returns those in the files.
pub(super) fn run(job: &Job, journal: Journal) -> io::Result<u64> {
    let sources =
        Sources { config: job.config_file(), models: Some(job.providers_file()), ..Sources::default() };
    let loaded = Loaded::read(&sources).map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = Engine::new(&Config::default()).map_err(io::Error::other)?;
        let client = HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock()))
            .map_err(io::Error::other)?;
        let post: Arc<dyn Post> = Arc::new(client.clone());
        let mut dataset = Dataset::from_config(&loaded, &engine, &ModelSource::Servers(client), &post)
            .map_err(io::Error::other)?;
        if journal == Journal::Off {
            without_journal(&mut dataset).ok_or_else(|| io::Error::other("a build has no journal"))?;
        }
        build(dataset, job).await
    })
}

pub(super) async fn build(dataset: Dataset, job: &Job) -> io::Result<u64> {
    let options = BuildOptions { rows: job.rows, out: job.folder.join("out"), replace: false };
    let build = dataset.build(options).await.map_err(io::Error::other)?;
    let report = build.run().await.map_err(io::Error::other)?;
    Ok(report.rows)
}
