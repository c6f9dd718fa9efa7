//! Our plans, ready to be asked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_plan::source::{Memory, MemoryData, Redis, RedisConfig, Source};
use anabranch_plan::{Answer, Config, Engine, Plan, Registries, Request, RunOptions, Scalar};
use anabranch_rows::Key;

use super::by_hand::Row;
use super::data::{self, VIEWER};
use super::own_ops;
use super::plans::{COUNTRY, KEYS, PARAMS, SCORE, endpoints};

/// A plan, and the request that is made of it again and again.
#[derive(Clone)]
pub(super) struct Ours {
    plan: Plan,
    request: Request,
    options: RunOptions,
    /// How long an answer may take.
    time: Option<Duration>,
}

impl Ours {
    /// A plan that reads from this source.
    pub(super) fn new(text: &str, source: Arc<dyn Source>) -> Ours {
        let mut config = Config::new(registries(DEFAULT_PORT), vec![source]);
        config.ops.add(own_ops::Later);
        config.ops.add(own_ops::GivenOp);
        let engine = Engine::load(config).expect("no setting is zero");
        let plan = engine.compile(text, Path::new(".")).unwrap_or_else(|error| panic!("{error}: {text}"));
        let request = Request::new(VIEWER, engine.registries());
        Ours { plan, request, options: RunOptions::default(), time: None }
    }

    /// The same, with jobs of up to this cost done in place.
    pub(super) fn inline_up_to(mut self, threshold: Duration) -> Ours {
        self.options.inline_threshold = Some(threshold);
        self
    }

    /// The same, to be answered within this time.
    pub(super) fn within(mut self, time: Duration) -> Ours {
        self.time = Some(time);
        self
    }

    pub(super) async fn answer(&self) -> Answer {
        if let Some(time) = self.time {
            let options = RunOptions { deadline: Some(SystemClock.now() + time), ..self.options.clone() };
            return self.plan.run_with(self.request.clone(), &options).await.expect("the plan runs");
        }
        self.plan.run_with(self.request.clone(), &self.options).await.expect("the plan runs")
    }

    /// The keys that its rows have.
    pub(super) fn keys(&self) -> anabranch_plan::registry::Keys {
        self.plan.engine().registries().keys.clone()
    }

    pub(super) async fn rows(&self) -> Vec<Row> {
        rows(&self.answer().await)
    }
}

/// The ids and scores of an answer, as its columns have them.
pub(super) fn scores(answer: &Answer) -> impl Iterator<Item = (i64, f64)> + '_ {
    answer.outputs.iter().flat_map(|rows| {
        let scores = rows.batch().column(Key(SCORE)).and_then(|column| column.as_float());
        let scores = scores.expect("the plan writes scores").values();
        let ids = rows.batch().ids();
        rows.iter().map(|row| (ids[row], scores[row]))
    })
}

/// All rows of an answer.
pub(super) fn rows(answer: &Answer) -> Vec<Row> {
    let row = |candidate: anabranch_plan::Candidate<'_>| Row {
        id: candidate.id,
        score: candidate.get(Key(SCORE)).map(|score| match score {
            Scalar::Float(score) => score,
            other => panic!("a score of {other:?}"),
        }),
        country: candidate.get(Key(COUNTRY)).map(|country| match country {
            Scalar::Text(country) => country.to_string(),
            other => panic!("a country of {other:?}"),
        }),
    };
    answer.candidates().map(row).collect()
}

/// The rows that plans read, in this process.
pub(super) fn embedded() -> Arc<MemoryData> {
    Arc::new(MemoryData::from_json("the bench's data", &data::json()).expect("it is a data file"))
}

pub(super) fn memory(data: &Arc<MemoryData>) -> Memory {
    Memory::new("ep_0001", Arc::clone(data), clock())
}

/// A source of what the Redis on this port holds, set as its endpoint says.
pub(super) fn redis(port: u16) -> (Redis, RedisConfig) {
    let registries = registries(port);
    let endpoint = registries.endpoints.iter().next().expect("there is one");
    let config = RedisConfig::from_endpoint(endpoint);
    (Redis::new(config.clone(), clock()), config)
}

/// Where an endpoint says it is when nobody will look there.
const DEFAULT_PORT: u16 = 6379;

fn registries(port: u16) -> Registries {
    let endpoints = endpoints(port);
    let files = [("keys.toml", KEYS), ("params.toml", PARAMS), ("endpoints.dev.toml", &endpoints)];
    let (registries, _) = Registries::parse(files, None).unwrap_or_else(|problems| panic!("{problems}"));
    registries
}

pub(super) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}
