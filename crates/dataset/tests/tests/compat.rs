//! Configurations of DataDesigner: they check clean and build on the demo model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_dataset::post::Post;
use anabranch_dataset::{BuildOptions, BuildReport, Dataset, LoadedConfig, ModelSource, Sources};
use anabranch_engine::{Config, Engine};
use anabranch_model::{Demo, HttpClient, HttpSettings};
use anabranch_testkit::{ModelFault, ModelFaultKind, ModelScript, ModelServer};

use crate::kit::{scratch, without_journal};

/// The configurations beside the project, if they are there.
fn configs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/compat/datadesigner");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// Builds 50 rows of a configuration.
fn build(path: &Path, models_file: Option<PathBuf>, test: &str) -> BuildReport {
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let is_demo = models_file.is_none();
    let sources = Sources { config: path.to_owned(), models: models_file, seed: 7, ..Sources::default() };
    let loaded = LoadedConfig::read(&sources).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
    assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(&Config::default()).unwrap();
        let post: Arc<dyn Post> = Arc::new(crate::kit::client());
        let models = match is_demo {
            true => ModelSource::Demo(Demo::new()),
            false => {
                let clock = Arc::clone(engine.clock());
                ModelSource::Servers(HttpClient::new(&HttpSettings::default(), clock).unwrap())
            }
        };
        let dataset = Dataset::from_config(&loaded, &engine, &models, &post).unwrap();
        let options = BuildOptions {
            rows: 50,
            out: scratch(&format!("{test}_{name}")),
            replace: true,
            ..without_journal()
        };
        dataset.build(options).await.unwrap().run().await.unwrap()
    })
}

/// A models file for the alias of the configurations.
fn models_file(server: &ModelServer, test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}_models.yaml"));
    let text = format!(
        "model_configs:\n- {{alias: model, model: test, provider: local, inference_parameters: \
         {{temperature: 0.5, max_parallel_requests: 16}}}}\nproviders:\n- {{name: local, endpoint: \"{}\", \
         provider_type: openai}}\n",
        server.endpoint()
    );
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn real_configurations_build_on_the_demo_model() {
    for path in configs() {
        let report = build(&path, None, "demo");
        assert_eq!((report.rows, report.dropped), (50, 0), "{path:?}: {:?}", report.errors);
    }
}

#[test]
fn real_configurations_build_against_a_server() {
    for path in configs() {
        let server = ModelServer::start(ModelScript::default());
        let report = build(&path, Some(models_file(&server, "server")), "server");
        assert_eq!((report.rows, report.dropped), (50, 0), "{path:?}: {:?}", report.errors);
        assert_eq!(report.models["model"].calls as usize, server.calls());
        assert!(server.most_in_flight() <= 16 && server.connections() <= 64, "{}", server.connections());
    }
}

/// Rate limits, server errors, broken bodies and resets are retried; a refused request costs its own row.
#[test]
fn faults_of_a_server_cost_no_other_row() {
    let transient = |kind| ModelFault { percent: 8, times: Some(1), kind };
    for path in configs() {
        let script = ModelScript {
            limit: Some(6),
            retry_after: Some("0.01".to_owned()),
            faults: vec![
                ModelFault { percent: 2, times: None, kind: ModelFaultKind::Status(400, None) },
                transient(ModelFaultKind::Status(500, None)),
                transient(ModelFaultKind::Malformed),
                transient(ModelFaultKind::Truncated),
                transient(ModelFaultKind::Reset),
            ],
            ..ModelScript::default()
        };
        let server = ModelServer::start(script);
        let report = build(&path, Some(models_file(&server, "faults")), "faults");
        assert_eq!(report.rows + report.dropped, 50);
        assert!(report.rows >= 30, "{path:?}: {} rows: {:?}", report.rows, report.errors);
        assert!(
            report.errors.iter().all(|error| error.class == "bad_request"),
            "{path:?}: {:?}",
            report.errors
        );
    }
}
