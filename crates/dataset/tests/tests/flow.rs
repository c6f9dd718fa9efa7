//! Rate limits, failures and stops, on a virtual clock.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_dataset::output::Folder;
use anabranch_dataset::post::Post;
use anabranch_dataset::{
    BuildOptions, BuildReport, Dataset, Error as DatasetError, FindModel, LoadedConfig, ModelSource, Sources,
    StopReason,
};
use anabranch_engine::Engine;
use anabranch_engine::clock::Clock;
use anabranch_engine::workload::BoxFuture;
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Finish, Identity, Model, RateWindow, Rates,
    Usage,
};
use anabranch_testkit::Sim;

use crate::kit::{engine, ms, scratch, without_journal};

/// A call that a model got.
#[derive(Clone, Debug)]
struct ReceivedCall {
    at: Duration,
    prompt: String,
    /// How often the same prompt came before.
    before: u32,
    /// Calls in flight, this one included.
    in_flight: usize,
}

type Script = dyn Fn(&ReceivedCall) -> Result<(), Error> + Send + Sync;

/// A model on the virtual clock: every call takes `latency` and ends by the script.
struct SimModel {
    identity: Identity,
    clock: Arc<dyn Clock>,
    began: Instant,
    latency: Duration,
    script: Box<Script>,
    rates: Option<fn(usize) -> Rates>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    heard: Vec<ReceivedCall>,
    ended: Vec<Duration>,
    in_flight: usize,
}

impl SimModel {
    fn new(sim: &Sim, name: &str, latency: u64) -> SimModel {
        let clock = sim.clock();
        SimModel {
            identity: Identity { provider: "sim".into(), model: name.into() },
            began: clock.now(),
            clock,
            latency: ms(latency),
            script: Box::new(|_| Ok(())),
            rates: None,
            state: Arc::default(),
        }
    }

    fn answers(
        mut self,
        script: impl Fn(&ReceivedCall) -> Result<(), Error> + Send + Sync + 'static,
    ) -> SimModel {
        self.script = Box::new(script);
        self
    }

    fn heard(&self) -> Vec<ReceivedCall> {
        self.state.lock().unwrap().heard.clone()
    }

    /// The end of the last call.
    fn last(&self) -> Duration {
        self.state.lock().unwrap().ended.iter().copied().max().unwrap_or_default()
    }
}

impl Model for SimModel {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let prompt = request.messages.last().unwrap().text.to_string();
        let now = self.clock.now();
        let mut state = self.state.lock().unwrap();
        state.in_flight += 1;
        let heard = ReceivedCall {
            at: now - self.began,
            before: state.heard.iter().filter(|heard| heard.prompt == prompt).count() as u32,
            in_flight: state.in_flight,
            prompt: prompt.clone(),
        };
        let result = (self.script)(&heard);
        state.heard.push(heard);
        let rates = self.rates.map(|rates| Box::new(rates(state.heard.len())));
        drop(state);
        let (clock, began, state) = (Arc::clone(&self.clock), self.began, Arc::clone(&self.state));
        let guard = InFlight(state);
        let until = now + self.latency;
        Box::pin(async move {
            clock.sleep_until(until).await;
            guard.0.lock().unwrap().ended.push(clock.now() - began);
            drop(guard);
            result?;
            let usage = Usage { input_tokens: 10, output_tokens: 5, cached_tokens: None };
            let text = format!("<{prompt}>").into();
            Ok(ChatReply { text, reasoning: None, finish: Finish::Stop, usage, bytes: 0, demo: false, rates })
        })
    }

    fn embed(&self, _: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        unreachable!("no column embeds")
    }
}

struct InFlight(Arc<Mutex<State>>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

fn down() -> Error {
    Error::Server { endpoint: "sim".into(), status: 503, message: "down".to_owned() }
}

fn refused(retry_after: Option<Duration>) -> Error {
    Error::Throttled { endpoint: "sim".into(), status: 429, message: "slow down".to_owned(), retry_after }
}

fn rejected() -> Error {
    // The kind of rejection is private to the crate: a schema that is wrong is permanent as well.
    Error::Unsupported { endpoint: "sim".into(), what: "bad request".to_owned() }
}

/// A configuration of one or two independent columns `a` and `b`, each with a model of that name.
fn config(columns: &[&str], parallel: u32, run: &str) -> String {
    let mut text = format!("run: {{{run}}}\nmodel_configs:\n");
    for name in columns {
        text += &format!(
            "  - {{alias: {name}, model: {name}, provider: sim, inference_parameters: {{max_parallel_requests: {parallel}}}}}\n"
        );
    }
    text += "providers:\n  - {name: sim, endpoint: 'http://127.0.0.1:1/v1'}\ncolumns:\n";
    text += "  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}\n";
    for name in columns {
        text += &format!(
            "  - {{name: {name}, column_type: llm-text, model_alias: {name}, prompt: '{name} {{{{ n }}}}'}}\n"
        );
    }
    text
}

struct Case {
    engine: Engine,
    loaded: LoadedConfig,
    out: PathBuf,
    models: HashMap<String, Arc<SimModel>>,
}

impl Case {
    fn new(sim: &Sim, test: &str, config: &str, models: Vec<SimModel>) -> Case {
        let out = scratch(&format!("flow_{test}"));
        std::fs::create_dir_all(&out).unwrap();
        let file = out.join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let loaded = LoadedConfig::read(&Sources { config: file, ..Sources::default() });
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems:?}"));
        let models = models.into_iter().map(|model| (model.identity.model.to_string(), Arc::new(model)));
        Case { engine: engine(sim), loaded, out: out.join("data"), models: models.collect() }
    }

    fn dataset(&self) -> Dataset {
        let models = self.models.clone();
        let find: FindModel =
            Box::new(move |alias| models.get(alias).map(|model| Arc::clone(model) as Arc<dyn Model>));
        let post: Arc<dyn Post> = Arc::new(crate::kit::client());
        Dataset::from_config(&self.loaded, &self.engine, &ModelSource::Given(find), &post).unwrap()
    }

    fn options(&self, rows: u64) -> BuildOptions {
        BuildOptions { rows, out: self.out.clone(), ..without_journal() }
    }

    fn run(&self, sim: &Sim, rows: u64) -> Result<BuildReport, DatasetError> {
        let (dataset, options) = (self.dataset(), self.options(rows));
        sim.block_on(async { dataset.build(options).await?.run().await })
    }
}

#[test]
fn a_cooling_model_leaves_the_other_at_full_speed() {
    let sim = Sim::new(1);
    let minute = Duration::from_secs(60);
    let a = SimModel::new(&sim, "a", 100).answers(move |heard| match heard.at < minute {
        true => Err(refused(Some(minute))),
        false => Ok(()),
    });
    let b = SimModel::new(&sim, "b", 100);
    // Far more cells wait for the cooling model than tasks may be in flight.
    let config = config(&["a", "b"], 10, "max_in_flight_tasks: 20");
    let case = Case::new(&sim, "cooling", &config, vec![a, b]);
    assert_eq!(case.run(&sim, 100).unwrap().rows, 100);
    assert_eq!(case.models["b"].last(), ms(1000), "10 at a time, 100 ms each");
    let (a, most) = (case.models["a"].heard(), Duration::from_secs(62));
    assert!(a.iter().filter(|heard| heard.at < minute).count() <= 10, "one round before the pause");
    assert!(case.models["a"].last() < most, "{:?}", case.models["a"].last());
}

#[test]
fn a_failure_that_does_not_pass_is_retried_then_salvaged_then_given_up() {
    let sim = Sim::new(2);
    let model = SimModel::new(&sim, "a", 10).answers(|_| Err(down()));
    let case = Case::new(&sim, "exhausted", &config(&["a"], 4, ""), vec![model]);
    let report = case.run(&sim, 1).unwrap();
    assert_eq!((report.rows, report.dropped), (0, 1));
    let error = &report.errors[0];
    assert_eq!((error.column.as_str(), error.class.as_str(), error.attempts), ("a", "server_error", 7));
    let at: Vec<f64> = case.models["a"].heard().iter().map(|heard| heard.at.as_secs_f64()).collect();
    let pauses: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0] - 0.01).collect();
    for (pause, expected) in pauses.iter().zip([0.5, 1.0, 2.0, 4.0, 30.0, 60.0]) {
        assert!((0.74..1.26).contains(&(pause / expected)), "{pauses:?}");
    }
}

#[test]
fn retries_go_behind_work_that_is_ready() {
    let sim = Sim::new(3);
    let model = SimModel::new(&sim, "a", 100).answers(|heard| match heard.before {
        0 if heard.at.is_zero() => Err(down()),
        _ => Ok(()),
    });
    let case = Case::new(&sim, "behind", &config(&["a"], 1, ""), vec![model]);
    assert_eq!(case.run(&sim, 20).unwrap().rows, 20);
    let heard = case.models["a"].heard();
    assert_eq!(heard.len(), 21);
    let again = heard.iter().position(|heard| heard.before == 1).unwrap();
    assert_eq!(again, 20, "the pause was over after a second, and 19 rows were ready");
}

#[test]
fn retry_after_is_obeyed_by_the_whole_model() {
    let sim = Sim::new(4);
    let model = SimModel::new(&sim, "a", 10).answers(|heard| match heard.prompt.len() {
        _ if heard.at.is_zero() => Err(refused(Some(Duration::from_secs(7)))),
        _ => Ok(()),
    });
    let case = Case::new(&sim, "retry_after", &config(&["a"], 4, ""), vec![model]);
    assert_eq!(case.run(&sim, 40).unwrap().rows, 40);
    let early = Duration::from_millis(10)..Duration::from_secs(7);
    let heard = case.models["a"].heard();
    assert!(heard.iter().all(|heard| !early.contains(&heard.at)), "{heard:?}");
    assert_eq!(heard.len(), 44, "four were refused, and every row was answered once");
}

#[test]
fn a_steady_share_of_permanent_failures_costs_exactly_those_rows() {
    let sim = Sim::new(5);
    let bad = Arc::new(Mutex::new(0));
    let count = Arc::clone(&bad);
    let model = SimModel::new(&sim, "a", 20).answers(move |heard| {
        // A fifth of all rows, by their random values.
        let is_bad = u64::from_str_radix(&heard.prompt[2..10], 16).unwrap() % 5 == 0;
        *count.lock().unwrap() += u64::from(is_bad);
        if is_bad { Err(rejected()) } else { Ok(()) }
    });
    let case = Case::new(&sim, "steady", &config(&["a"], 16, "buffer_size: 100"), vec![model]);
    let report = case.run(&sim, 1000).unwrap();
    let bad = *bad.lock().unwrap();
    assert!((150..250).contains(&bad), "{bad}");
    assert_eq!((report.rows, report.dropped), (1000 - bad, bad));
    assert!(report.stopped.is_none());
    assert_eq!(case.models["a"].heard().len(), 1000, "no permanent failure is retried");
}

#[test]
fn an_outage_of_a_minute_loses_nothing() {
    let sim = Sim::new(6);
    let outage = Duration::from_secs(1)..Duration::from_secs(61);
    let model = SimModel::new(&sim, "a", 50).answers(move |heard| match outage.contains(&heard.at) {
        true => Err(Error::Connection { endpoint: "sim".into(), cause: "connection refused".to_owned() }),
        false => Ok(()),
    });
    let case = Case::new(&sim, "outage", &config(&["a"], 8, "buffer_size: 200"), vec![model]);
    let report = case.run(&sim, 1000).unwrap();
    assert_eq!((report.rows, report.dropped, report.error_count), (1000, 0, 0));
}

#[test]
fn a_model_that_fails_too_often_stops_the_build_and_saves_what_is_there() {
    let sim = Sim::new(7);
    let (good, bad) = (SimModel::new(&sim, "a", 10), SimModel::new(&sim, "b", 10));
    let bad = bad.answers(|heard| if heard.at < ms(500) { Ok(()) } else { Err(rejected()) });
    let config = config(&["a", "b"], 4, "buffer_size: 50");
    let case = Case::new(&sim, "early_stop", &config, vec![good, bad]);
    let report = case.run(&sim, 2000).unwrap();
    let Some(StopReason::ErrorRate(rate)) = &report.stopped else { panic!("{:?}", report.stopped) };
    assert_eq!((rate.model.as_str(), rate.class.as_str()), ("sim/b", "unsupported"));
    assert!(rate.failed * 2 >= rate.calls && rate.calls >= 50, "{rate:?}");
    let calls = case.models["b"].heard().len();
    assert!(calls < 350, "{calls} calls: about 200 went well, and 100 decided");
    let rows: u64 = 4 * 50;
    assert!(report.rows >= rows - 20, "{} rows of {rows} that went well", report.rows);
    let files = Folder::open(&case.out).unwrap().row_files().unwrap();
    assert!(!files.is_empty());
}

#[test]
fn a_stop_finishes_what_is_in_flight_and_writes_whole_rows() {
    let sim = Sim::new(8);
    let (a, b) = (SimModel::new(&sim, "a", 100), SimModel::new(&sim, "b", 100));
    let case = Case::new(&sim, "stop", &config(&["a", "b"], 5, ""), vec![a, b]);
    let (dataset, options, clock) = (case.dataset(), case.options(100), sim.clock());
    let report = sim.block_on(async {
        let build = dataset.build(options).await.unwrap();
        let stop_at = clock.now() + ms(450);
        let stop = async {
            clock.sleep_until(stop_at).await;
            build.stop();
        };
        futures_util::future::join(build.run(), stop).await.0.unwrap()
    });
    assert!(matches!(report.stopped, Some(StopReason::Asked)));
    let heard = case.models["a"].heard().len();
    assert_eq!(heard, 25, "five rounds began before the stop");
    assert_eq!(case.models["a"].last(), ms(500), "the calls in flight ended");
    assert_eq!(report.rows, 25, "rows with all their cells are written");
    // The same build goes on. Without a journal, the row group that was not complete is paid for again.
    let report = case.run(&sim, 100).unwrap();
    assert_eq!((report.rows, report.stopped.is_none()), (100, true));
}

#[test]
fn a_rate_in_the_headers_paces_the_calls() {
    let sim = Sim::new(9);
    let mut model = SimModel::new(&sim, "a", 10);
    // 60 requests a minute, of which 50 are gone when the build begins.
    model.rates = Some(|calls| Rates {
        requests: Some(RateWindow {
            limit: Some(60),
            remaining: 10_u64.saturating_sub(calls as u64),
            full_after: Some(Duration::from_secs(50)),
        }),
        tokens: None,
    });
    let case = Case::new(&sim, "paced", &config(&["a"], 1, ""), vec![model]);
    assert_eq!(case.run(&sim, 40).unwrap().rows, 40);
    let heard = case.models["a"].heard();
    assert_eq!(heard.len(), 40, "none was refused");
    let late = heard.last().unwrap().at;
    assert!((20..60).contains(&late.as_secs()), "10 at once, then one a second: {late:?}");
}

#[test]
fn models_share_the_tasks_in_flight_fairly() {
    let sim = Sim::new(10);
    let (slow, quick) = (SimModel::new(&sim, "a", 1000), SimModel::new(&sim, "b", 10));
    let config = config(&["a", "b"], 100, "max_in_flight_tasks: 10");
    let case = Case::new(&sim, "fair", &config, vec![slow, quick]);
    assert_eq!(case.run(&sim, 50).unwrap().rows, 50);
    let most = case.models["a"].heard().iter().map(|heard| heard.in_flight).max();
    assert!(most <= Some(10), "{most:?}");
    // Half of the tasks are its own: 5 at a time, 10 ms each, and at first what the slow model leaves.
    assert!(case.models["b"].last() <= ms(1200), "{:?}", case.models["b"].last());
}
