//! A dataset whose model counts what it is paid for, by column and row.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anabranch_dataset::post::Post;
use anabranch_dataset::{BuildOptions, BuildReport, Dataset, Error, LoadedConfig, ModelSource, Sources};
use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Config, Engine};
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error as ModelError, Finish, Identity, Model, Usage,
};

use crate::kit::scratch;

type Script = dyn Fn(&ChatRequest) -> String + Send + Sync;

/// A model that answers by a script. A prompt begins with the name of its column, and `|`.
#[derive(Clone)]
pub(crate) struct PaidModel {
    identity: Identity,
    script: Arc<Script>,
    paid: Arc<Mutex<PaidCalls>>,
}

/// The calls that were paid for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaidCalls {
    pub(crate) calls: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// The cells: row and column. Embeddings are not among them.
    pub(crate) cells: BTreeSet<(u64, String)>,
}

impl PaidModel {
    pub(crate) fn new(script: impl Fn(&ChatRequest) -> String + Send + Sync + 'static) -> PaidModel {
        let identity = Identity { provider: "test".into(), model: "paid".into() };
        PaidModel { identity, script: Arc::new(script), paid: Arc::default() }
    }

    /// The calls since the last time.
    pub(crate) fn take(&self) -> PaidCalls {
        std::mem::take(&mut self.paid.lock().unwrap())
    }
}

impl Model for PaidModel {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, ModelError> {
        let text = (self.script)(&request);
        let asked: usize = request.messages.iter().map(|message| message.text.len()).sum();
        let usage = Usage {
            input_tokens: 3 + asked as u64 / 4,
            output_tokens: 1 + text.len() as u64 / 4,
            cached_tokens: None,
        };
        let mut paid = self.paid.lock().unwrap();
        let column = request.messages.iter().find_map(|message| Some(message.text.split_once('|')?.0));
        paid.cells.insert((request.sample, column.unwrap_or_default().to_owned()));
        paid.calls += 1;
        paid.input_tokens += usage.input_tokens;
        paid.output_tokens += usage.output_tokens;
        drop(paid);
        let (text, finish, bytes) = (text.into(), Finish::Stop, 0);
        let reply = ChatReply { text, reasoning: None, finish, usage, bytes, demo: false, rates: None };
        Box::pin(async move { Ok(reply) })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, ModelError> {
        let vectors = request.texts.iter().map(|text| vec![text.len() as f64, 0.5]).collect();
        let tokens = request.texts.iter().map(|text| 1 + text.len() as u64 / 4).sum();
        let mut paid = self.paid.lock().unwrap();
        paid.calls += 1;
        paid.input_tokens += tokens;
        drop(paid);
        let usage = Usage { input_tokens: tokens, ..Usage::default() };
        Box::pin(async move { Ok(EmbedReply { vectors, usage, bytes: 0, demo: false, rates: None }) })
    }
}

/// A configuration with its output folder.
pub(crate) struct Case {
    pub(crate) folder: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) model: PaidModel,
    pub(crate) buffer_size: u64,
}

impl Case {
    pub(crate) fn new(test: &str, config: &str, model: PaidModel) -> Case {
        let folder = scratch(test);
        std::fs::create_dir_all(&folder).unwrap();
        let case = Case { out: folder.join("data"), folder, model, buffer_size: 16 };
        case.configure(config);
        case
    }

    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.folder.join("config.yaml"), config).unwrap();
    }

    pub(crate) fn options(&self, rows: u64) -> BuildOptions {
        BuildOptions { rows, out: self.out.clone(), ..BuildOptions::default() }
    }

    pub(crate) fn build(&self, options: BuildOptions) -> Result<BuildReport, Error> {
        self.with_dataset(async |_, dataset| dataset.build(options).await?.run().await)
    }

    pub(crate) fn with_dataset<T>(&self, work: impl AsyncFnOnce(&LoadedConfig, Dataset) -> T) -> T {
        let sources = Sources { config: self.folder.join("config.yaml"), ..Sources::default() };
        let mut loaded = LoadedConfig::read(&sources).unwrap_or_else(|problems| panic!("{problems:?}"));
        loaded.config.run.buffer_size = self.buffer_size;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = Engine::new(&Config::default()).unwrap();
            let post: Arc<dyn Post> = Arc::new(crate::kit::client());
            let model: Arc<dyn Model> = Arc::new(self.model.clone());
            let models = ModelSource::Given(Box::new(move |_| Some(Arc::clone(&model))));
            let dataset = Dataset::from_config(&loaded, &engine, &models, &post).unwrap();
            work(&loaded, dataset).await
        })
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
