//! Builds that go on where an earlier one ended, and pay for nothing twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_dataset::output::{ExportFormat, Folder, export};
use anabranch_dataset::post::Post;
use anabranch_dataset::{
    BuildOptions, BuildReport, Dataset, Error as DatasetError, JournalPlace, LoadedConfig, ModelSource,
    Sources, StopReason,
};
use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Config, Engine};
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Finish, Identity, Model, Usage,
};
use expect_test::expect;
use tokio::sync::Notify;

use crate::kit::scratch;

pub(crate) type Script = dyn Fn(&ChatRequest) -> Result<String, Error> + Send + Sync;

/// A model that answers by a script, and remembers what it was asked.
#[derive(Clone)]
pub(crate) struct CountingModel {
    identity: Identity,
    script: Arc<Script>,
    pub(crate) asked: Arc<Mutex<Vec<(String, u64, u32)>>>,
    pub(crate) embedded: Arc<Mutex<Vec<String>>>,
    /// After this many calls, no call is answered before it is notified.
    holds_after: Option<(usize, Arc<Notify>)>,
}

impl CountingModel {
    pub(crate) fn new(
        script: impl Fn(&ChatRequest) -> Result<String, Error> + Send + Sync + 'static,
    ) -> CountingModel {
        CountingModel {
            identity: Identity { provider: "test".into(), model: "counting".into() },
            script: Arc::new(script),
            asked: Arc::default(),
            embedded: Arc::default(),
            holds_after: None,
        }
    }

    /// The number of calls since the last time.
    pub(crate) fn calls(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().unwrap()).len()
    }

    /// Calls by the beginning of the prompt, since the last time.
    pub(crate) fn calls_by_word(&self) -> BTreeMap<String, usize> {
        let mut words = BTreeMap::new();
        for (prompt, ..) in std::mem::take(&mut *self.asked.lock().unwrap()) {
            *words.entry(prompt.split(' ').next().unwrap().to_owned()).or_default() += 1;
        }
        words
    }
}

impl Model for CountingModel {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let prompt = request.messages.last().unwrap().text.to_string();
        let mut asked = self.asked.lock().unwrap();
        asked.push((prompt, request.sample, request.attempt));
        let reply = (self.script)(&request).map(|text| ChatReply {
            text: text.into(),
            reasoning: None,
            finish: Finish::Stop,
            usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: None },
            bytes: 0,
            demo: false,
            rates: None,
        });
        let held = self.holds_after.clone().filter(|(after, _)| asked.len() > *after);
        Box::pin(async move {
            if let Some((_, released)) = held {
                released.notified().await;
            }
            reply
        })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        self.embedded.lock().unwrap().extend(request.texts.iter().map(|text| text.to_string()));
        let vectors = request.texts.iter().map(|text| vec![text.len() as f64, 0.5]).collect();
        let usage = Usage { input_tokens: 4, ..Usage::default() };
        Box::pin(async move { Ok(EmbedReply { vectors, usage, bytes: 0, demo: false, rates: None }) })
    }
}

/// Replies that differ by prompt, row and attempt.
pub(crate) fn echo() -> CountingModel {
    CountingModel::new(|request| {
        Ok(format!("<{} {} {}>", request.messages.last().unwrap().text, request.sample, request.attempt))
    })
}

pub(crate) struct Case {
    pub(crate) folder: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) model: CountingModel,
    pub(crate) seed: u64,
    pub(crate) buffer_size: u64,
}

const TWO: &str = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'A {{ n }}'}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'B {{ a }}'}
";

impl Case {
    pub(crate) fn new(test: &str, config: &str, model: CountingModel) -> Case {
        let folder = scratch(&format!("resume_{test}"));
        std::fs::create_dir_all(&folder).unwrap();
        let case = Case { out: folder.join("data"), folder, model, seed: 0, buffer_size: 10 };
        case.configure(config);
        case
    }

    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.folder.join("config.yaml"), config).unwrap();
    }

    pub(crate) fn options(&self, rows: u64) -> BuildOptions {
        BuildOptions { rows, out: self.out.clone(), ..BuildOptions::default() }
    }

    pub(crate) fn build(&self, options: BuildOptions) -> Result<BuildReport, DatasetError> {
        self.with_build(options, async |build| build.run().await)
    }

    /// Rows in memory.
    pub(crate) fn preview(&self, rows: u64) -> Result<anabranch_dataset::Preview, DatasetError> {
        self.with_dataset(async |dataset| dataset.preview(rows)?.preview().await)
    }

    /// Builds until the model was called so often, and stops then.
    pub(crate) fn stop_after(&self, options: BuildOptions, calls: usize) -> Option<StopReason> {
        let report = self.with_build(options, async |build| {
            let run = std::pin::pin!(build.run());
            let stop = std::pin::pin!(async {
                while self.model.asked.lock().unwrap().len() < calls {
                    tokio::task::yield_now().await;
                }
                build.stop();
                std::future::pending::<()>().await;
            });
            match futures_util::future::select(run, stop).await {
                futures_util::future::Either::Left((report, _)) => report,
                futures_util::future::Either::Right(((), _)) => unreachable!("it is pending"),
            }
        });
        report.unwrap().stopped
    }

    fn with_build<T>(
        &self,
        options: BuildOptions,
        work: impl AsyncFnOnce(&anabranch_dataset::Build) -> Result<T, DatasetError>,
    ) -> Result<T, DatasetError> {
        self.with_dataset(async |dataset| {
            let build = dataset.build(options).await?;
            work(&build).await
        })
    }

    fn with_dataset<T>(
        &self,
        work: impl AsyncFnOnce(Dataset) -> Result<T, DatasetError>,
    ) -> Result<T, DatasetError> {
        let sources =
            Sources { config: self.folder.join("config.yaml"), seed: self.seed, ..Sources::default() };
        let mut loaded = LoadedConfig::read(&sources).unwrap_or_else(|problems| panic!("{problems:?}"));
        loaded.config.run.buffer_size = self.buffer_size;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = Engine::new(&Config::default()).unwrap();
            let post: Arc<dyn Post> = Arc::new(crate::kit::client());
            let model: Arc<dyn Model> = Arc::new(self.model.clone());
            let models = ModelSource::Given(Box::new(move |_| Some(Arc::clone(&model))));
            work(Dataset::from_config(&loaded, &engine, &models, &post)?).await
        })
    }

    /// All rows as JSON lines.
    pub(crate) fn rows(&self) -> String {
        rows_in(&self.out)
    }
}

pub(crate) fn rows_in(out: &Path) -> String {
    let mut rows = Vec::new();
    export(&Folder::open(out).unwrap(), ExportFormat::Jsonl, out, &mut rows).unwrap();
    String::from_utf8(rows).unwrap()
}

pub(crate) fn reused(report: &BuildReport) -> u64 {
    report.models.values().map(|model| model.reused).sum()
}

#[test]
fn a_complete_build_is_done() {
    let case = Case::new("complete", TWO, echo());
    let first = case.build(case.options(25)).unwrap();
    assert_eq!((first.rows, first.resumed, case.model.calls()), (25, 0, 50));
    let rows = case.rows();
    let second = case.build(case.options(25)).unwrap();
    assert_eq!((second.rows, second.resumed, case.model.calls()), (25, 25, 0));
    assert_eq!(case.rows(), rows);
}

#[test]
fn replies_outlive_the_rows() {
    let case = Case::new("replaced", TWO, echo());
    case.build(case.options(25)).unwrap();
    let rows = case.rows();
    case.model.calls();
    let again = case.build(BuildOptions { replace: true, ..case.options(25) }).unwrap();
    assert_eq!((again.rows, again.resumed, reused(&again), case.model.calls()), (25, 0, 50, 0));
    assert_eq!(case.rows(), rows);
}

#[test]
fn more_rows_and_another_size_of_row_groups_cost_new_rows_only() {
    let mut case = Case::new("more", TWO, echo());
    case.build(case.options(25)).unwrap();
    case.model.calls();
    let more = case.build(case.options(42)).unwrap();
    assert_eq!((more.rows, more.resumed, case.model.calls()), (42, 20, 34), "two row groups were whole");
    let rows = case.rows();
    case.buffer_size = 7;
    let other = case.build(case.options(43)).unwrap();
    assert_eq!((other.rows, case.model.calls()), (43, 2));
    assert!(case.rows().starts_with(&rows));
    let files = Folder::open(&case.out).unwrap().row_files().unwrap();
    assert_eq!(files.len(), 7, "no file of the old size is left");
    assert!(matches!(case.build(case.options(20)), Err(DatasetError::FewerRows { rows: 43, .. })));
}

#[test]
fn a_stopped_build_goes_on() {
    let mut case = Case::new("stopped", TWO, echo());
    let whole = Case::new("stopped_whole", TWO, echo());
    whole.build(whole.options(30)).unwrap();
    let released = Arc::new(Notify::new());
    case.model.holds_after = Some((20, Arc::clone(&released)));
    let stopped = case.with_build(case.options(30), async |build| {
        let run = build.run();
        let stop = async {
            while case.model.asked.lock().unwrap().len() <= 20 {
                tokio::task::yield_now().await;
            }
            build.stop();
            // More calls may have begun meanwhile: each is answered.
            while !build.progress().snapshot().columns.is_empty() && build.limits()[0].in_flight > 0 {
                released.notify_waiters();
                tokio::task::yield_now().await;
            }
        };
        futures_util::future::join(run, stop).await.0
    });
    let stopped = stopped.unwrap();
    assert!(matches!(stopped.stopped, Some(StopReason::Asked)), "{stopped:?}");
    let calls = case.model.calls();
    assert!((21..60).contains(&calls), "{calls}");
    case.model.holds_after = None;
    let rest = case.build(case.options(30)).unwrap();
    assert_eq!((rest.rows, calls + case.model.calls()), (30, 60));
    assert_eq!(case.rows(), whole.rows());
}

#[test]
fn paid_replies_that_cannot_be_used_are_not_paid_for_again() {
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - name: a
    column_type: llm-structured
    model_alias: m
    prompt: 'A {{ n }}'
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
";
    // The third attempt fits.
    let model = CountingModel::new(|request| {
        Ok(if request.attempt < 2 { "no".to_owned() } else { format!("{{\"x\": {}}}", request.sample) })
    });
    let case = Case::new("malformed", config, model);
    assert_eq!(case.build(case.options(10)).unwrap().rows, 10);
    assert_eq!(case.model.calls(), 30);
    let rows = case.rows();
    let again = case.build(BuildOptions { replace: true, ..case.options(10) }).unwrap();
    assert_eq!((again.rows, reused(&again), case.model.calls()), (10, 30, 0));
    assert_eq!(case.rows(), rows);
}

#[test]
fn a_retry_does_not_pay_for_the_replies_before_it() {
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - name: a
    column_type: llm-structured
    model_alias: m
    prompt: 'A {{ n }}'
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
";
    // The first attempt does not fit; the second fails once, and then fits.
    let failed = Arc::new(Mutex::new(false));
    let model = CountingModel::new(move |request| match request.attempt {
        0 => Ok("no".to_owned()),
        _ if !std::mem::replace(&mut *failed.lock().unwrap(), true) => {
            Err(Error::Server { endpoint: "test".into(), status: 503, message: "down".to_owned() })
        }
        _ => Ok("{\"x\": 1}".to_owned()),
    });
    let case = Case::new("retried", config, model);
    assert_eq!(case.build(case.options(1)).unwrap().rows, 1);
    let attempts: Vec<u32> = case.model.asked.lock().unwrap().iter().map(|(.., attempt)| *attempt).collect();
    assert_eq!(attempts, [0, 1, 1]);
}

#[test]
fn failed_rows_are_tried_again_when_asked() {
    let config = "
run: {max_conversation_restarts: 1}
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [x]}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'A'}
  - name: b
    column_type: llm-structured
    model_alias: m
    prompt: 'B'
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
";
    // In the first round, rows 3 and 14 never fit, and row 5 is refused.
    let model = CountingModel::new(|request| {
        let is_b = request.format.is_some();
        match (is_b, request.sample, request.attempt) {
            (true, 3 | 14, 0 | 1) => Ok("no".to_owned()),
            (true, 5, 0 | 1) => Err(Error::Refused { endpoint: "test".into(), message: "no".to_owned() }),
            (true, ..) => Ok("{\"x\": 1}".to_owned()),
            (false, ..) => Ok("fine".to_owned()),
        }
    });
    let case = Case::new("failed", config, model);
    let first = case.build(case.options(30)).unwrap();
    assert_eq!((first.rows, first.dropped, case.model.calls()), (27, 3, 30 + 27 + 5));
    // Again without being asked: nothing happens.
    assert_eq!((case.build(case.options(30)).unwrap().rows, case.model.calls()), (27, 0));
    let retry = BuildOptions { retry_failed: true, ..case.options(30) };
    let second = case.build(retry.clone()).unwrap();
    assert_eq!((second.rows, second.dropped, second.resumed), (30, 0, 10), "row group 2 had no failure");
    assert_eq!(case.model.calls(), 3, "one call per failed row");
    assert_eq!((case.build(retry).unwrap().rows, case.model.calls()), (30, 0));
    // Everything is remembered, with the round that fitted.
    let again = case.build(BuildOptions { replace: true, ..case.options(30) }).unwrap();
    assert_eq!((again.rows, case.model.calls()), (27, 0), "a new build has one round");
}

#[test]
fn equal_prompts_vary_by_row_column_and_seed() {
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [x]}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'the same'}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'the same'}
";
    let mut case = Case::new("equal", config, echo());
    case.build(case.options(10)).unwrap();
    let mut samples: Vec<u64> =
        case.model.asked.lock().unwrap().iter().map(|(_, sample, _)| *sample).collect();
    samples.sort_unstable();
    samples.dedup();
    assert_eq!((samples.len(), case.model.calls()), (20, 20));
    case.seed = 7;
    case.build(BuildOptions { replace: true, ..case.options(10) }).unwrap();
    assert_eq!(case.model.calls(), 20, "another seed, other replies");
}

#[test]
fn another_prompt_is_refused_and_replacing_pays_for_what_changed() {
    let case = Case::new("edited", TWO, echo());
    case.build(case.options(10)).unwrap();
    case.model.calls();
    case.configure(&format!("# a comment\nrun: {{max_retries: 9}}\n{TWO}"));
    assert_eq!((case.build(case.options(10)).unwrap().rows, case.model.calls()), (10, 0));
    case.configure(&TWO.replace("'B {{ a }}'", "'C {{ a }}'"));
    let error = case.build(case.options(10)).unwrap_err().to_string();
    let shown = error.replace(&case.out.display().to_string(), "OUT");
    expect!["OUT holds a dataset that was made with another configuration"].assert_eq(&shown);
    case.build(BuildOptions { replace: true, ..case.options(10) }).unwrap();
    assert_eq!(case.model.calls_by_word(), BTreeMap::from([("C".to_owned(), 10)]));
    // A column that is renamed keeps its replies.
    case.configure(&TWO.replace("'B {{ a }}'", "'C {{ a }}'").replace("name: b", "name: better"));
    case.build(BuildOptions { replace: true, ..case.options(10) }).unwrap();
    assert_eq!(case.model.calls(), 0);
}

#[test]
fn datasets_can_share_a_journal() {
    let case = Case::new("shared", TWO, echo());
    let journal = JournalPlace::Folder(case.folder.join("replies"));
    case.build(BuildOptions { journal: journal.clone(), ..case.options(10) }).unwrap();
    assert_eq!(case.model.calls(), 20);
    let other = case.folder.join("other");
    case.build(BuildOptions { journal, out: other.clone(), ..case.options(12) }).unwrap();
    assert_eq!(case.model.calls(), 4);
    assert!(rows_in(&other).starts_with(&case.rows()));
    assert!(!case.out.join("journal").exists());
}

#[test]
fn learned_limits_are_kept_for_the_next_build() {
    let case = Case::new("learned", TWO, echo());
    case.build(case.options(1)).unwrap();
    let path = case.out.join("journal/limits.json");
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept.contains("\"name\": \"test/counting\"") && kept.contains("\"limit\": 32"), "{kept}");
    std::fs::write(&path, kept.replace("\"limit\": 32", "\"limit\": 3")).unwrap();
    let limit = case.with_build(case.options(2), async |build| {
        let limit = build.limits()[0].limit;
        build.run().await?;
        Ok(limit)
    });
    assert_eq!(limit.unwrap(), 3);
    // A file that is damaged is no reason not to build.
    std::fs::write(&path, "{").unwrap();
    assert_eq!(case.build(case.options(3)).unwrap().rows, 3);
}

#[test]
fn a_text_is_embedded_once() {
    let config = "
model_configs:
  - {alias: e, model: e, provider: p, inference_parameters: {generation_type: embedding}}
providers: [{name: p, endpoint: 'http://127.0.0.1:1/v1'}]
columns:
  - {name: word, column_type: sampler, sampler_type: category, params: {values: [tea, milk, water]}}
  - {name: v, column_type: embedding, target_column: word, model_alias: e}
";
    let case = Case::new("embedding", config, echo());
    case.build(case.options(40)).unwrap();
    let rows = case.rows();
    let mut first = std::mem::take(&mut *case.model.embedded.lock().unwrap());
    first.sort_unstable();
    first.dedup();
    assert_eq!(first, ["milk", "tea", "water"]);
    case.build(BuildOptions { replace: true, ..case.options(40) }).unwrap();
    assert!(case.model.embedded.lock().unwrap().is_empty());
    assert_eq!(case.rows(), rows);
}

#[test]
fn calls_with_large_prompts_are_prepared_again() {
    let text = "x".repeat(200_000);
    let config = format!(
        "
columns:
  - {{name: n, column_type: sampler, sampler_type: category, params: {{values: ['{text}']}}}}
  - {{name: a, column_type: llm-text, model_alias: m, prompt: 'A {{{{ n }}}}'}}
"
    );
    // More prompts than the calls of a row group may take while they wait.
    let mut case = Case::new("large", &config, CountingModel::new(|request| Ok(request.sample.to_string())));
    case.buffer_size = 100;
    assert_eq!((case.build(case.options(100)).unwrap().rows, case.model.calls()), (100, 100));
    let again = case.build(BuildOptions { replace: true, ..case.options(100) }).unwrap();
    assert_eq!((again.rows, reused(&again), case.model.calls()), (100, 100, 0));
}

#[test]
fn one_build_at_a_time() {
    let mut case = Case::new("locked", TWO, echo());
    let released = Arc::new(Notify::new());
    case.model.holds_after = Some((0, Arc::clone(&released)));
    let error = case.with_build(case.options(1), async |build| {
        let second = std::thread::scope(|scope| scope.spawn(|| case.build(case.options(1))).join().unwrap());
        build.stop();
        build.run().await?;
        second
    });
    let error = error.unwrap_err();
    let DatasetError::File(file) = &error else { panic!("{error}") };
    assert_eq!(file.cause.kind(), std::io::ErrorKind::ResourceBusy);
    assert!(file.cause.to_string().contains(&format!("(process {})", std::process::id())), "{}", file.cause);
}

#[test]
fn without_a_journal_row_groups_are_kept() {
    let mut case = Case::new("none", TWO, echo());
    let options = |rows| BuildOptions { journal: JournalPlace::Nowhere, ..case.options(rows) };
    case.build(options(20)).unwrap();
    case.model.calls();
    assert_eq!((case.build(options(30)).unwrap().resumed, case.model.calls()), (20, 20));
    assert!(!case.out.join("journal").exists());
    let options = options(30);
    case.buffer_size = 4;
    let error = case.build(BuildOptions { rows: 31, ..options }).unwrap_err().to_string();
    assert!(error.contains("holds row groups of another size"), "{error}");
}
