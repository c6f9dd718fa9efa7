//! Configurations of DataDesigner: they check clean and build on the demo model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_dataset::post::{HttpPost, Post};
use anabranch_dataset::{BuildOptions, Dataset, Loaded, ModelSource, Sources};
use anabranch_engine::{Config, Engine};
use anabranch_model::Demo;

use crate::kit::scratch;

/// The configurations beside the project, if they are there.
fn configs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/compat/datadesigner");
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

#[test]
fn real_configurations_build_on_the_demo_model() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for path in configs() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let sources = Sources { config: path.clone(), seed: 7, ..Sources::default() };
        let loaded = Loaded::read(&sources).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
        let report = runtime.block_on(async {
            let engine = Engine::new(&Config::default()).unwrap();
            let post: Arc<dyn Post> = Arc::new(HttpPost::new());
            let models = ModelSource::Demo(Demo::new());
            let dataset = Dataset::from_config(&loaded, &engine, &models, &post).unwrap();
            let options = BuildOptions { rows: 50, out: scratch(&format!("compat_{name}")), replace: true };
            dataset.build(options).await.unwrap().run().await.unwrap()
        });
        assert_eq!((report.rows, report.dropped), (50, 0), "{name}: {:?}", report.errors);
    }
}
