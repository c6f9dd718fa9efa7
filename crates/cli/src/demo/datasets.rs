//! The dataset part of the demo: 500 rows on the offline demo model, some of whose calls fail.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_dataset::output::{ExportFormat, Folder, export};
use anabranch_dataset::post::Post;
use anabranch_dataset::{BuildOptions, Dataset, JournalPlace, LoadedConfig, ModelSource, Sources};
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_engine::{Config, Engine};
use anabranch_model::{Demo, HttpClient, HttpSettings, Simulation};
use anabranch_text::count;

use super::Files;
use crate::dataset::{Pace, Records, errors_table};
use crate::failure::Failure;
use crate::out;

pub(super) const CONFIG: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/datasets/support_tickets.yaml"));
pub(super) const ROWS: u64 = 500;
/// The number of records that are shown.
const SHOWN: u64 = 2;
/// The demo model responds like a fast server, and fails sometimes. Nothing is retried, so that there are failures to
/// show.
const LATENCY: Duration = Duration::from_millis(5);
const FAILURE_RATE: f64 = 0.02;

/// Builds a dataset below the demo's folder, and describes the result.
pub(super) async fn told(files: &Files) -> Result<String, Failure> {
    let folder = &files.folder();
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::of(format!("cannot make {}: {error}", folder.display())))?;
    let config: PathBuf = folder.join("support_tickets.yaml");
    out::file(&config, CONFIG)?;
    let mut loaded = LoadedConfig::read(&Sources { config, ..Sources::default() })?;
    (loaded.config.run.max_retries, loaded.config.run.salvage_rounds) = (0, 0);
    let engine = Engine::new(&Config::default()).map_err(|error| Failure::Failed(Box::new(error)))?;
    let client = HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock()));
    let post: Arc<dyn Post> = Arc::new(client.map_err(|error| Failure::Failed(Box::new(error)))?);

    let calm = ModelSource::Demo(Demo::new());
    let preview = Dataset::from_config(&loaded, &engine, &calm, &post)?.preview(SHOWN)?.preview().await?;
    let mut records = Records::new(96);
    (0..preview.rows.ids.len()).for_each(|row| records.row(&preview.rows, preview.dropped.as_ref(), row));

    let simulation =
        Simulation { clock: Arc::clone(engine.clock()), latency: LATENCY, failure_rate: FAILURE_RATE };
    let models = ModelSource::Demo(Demo::new().with_simulation(simulation));
    let to = folder.join("support_tickets");
    // Without a journal, so that a second demo calls the model like the first one.
    let journal = JournalPlace::Nowhere;
    let options =
        BuildOptions { rows: ROWS, out: to.clone(), replace: true, journal, ..BuildOptions::default() };
    let build = Dataset::from_config(&loaded, &engine, &models, &post)?.build(options).await?;
    let mut pace = Pace::new(&build, SystemClock.now());
    let report = build.run().await?;
    pace.read(&build, SystemClock.now());
    let written = export(&Folder::open(&to)?, ExportFormat::Jsonl, &to, &mut std::io::sink())?;

    let calls: u64 = report.models.values().map(|model| model.calls).sum();
    let place = match files.are_kept() {
        true => format!("\nThe rows as Parquet, errors.parquet and metadata.json: {}\n", to.display()),
        false => "\n".to_owned(),
    };
    let shown: String = records.finish().lines().map(|line| format!("  {line}\n")).collect();
    Ok(format!(
        "\nDatasets: columns by rows of samplers, templates and model calls, each cell started as soon as it can be.\n\
         {ROWS} support tickets from the offline demo model, which makes its texts up. The first {SHOWN}:\n\n{shown}\n  \
         progress  {}\n  built     {} with {} of the demo model\n\n\
         1 call in 50 was made to fail, and none was retried. Every failed cell is listed:\n\n{}{place}",
        pace.line(),
        count(written, "row"),
        count(calls, "call"),
        errors_table(&report.errors).text(2),
    ))
}
