//! Looking into captures: why rows are where they are, and what nodes made, is as it was while the request ran.

use std::collections::BTreeMap;

use anabranch_content::{Config as StoreConfig, Store};
use anabranch_plan::{Plan, Request, RunOptions};
use anabranch_plan_inspect::capture::{Capture, Replayer};
use anabranch_plan_inspect::why::{Verdict, Why};
use anabranch_testkit::{Rng, Sim};

use crate::capture::random_plan;
use crate::naive::RandomRequest;

/// How often each verdict came up, of whole and of degraded answers.
type VerdictCounts = BTreeMap<(&'static str, bool), u32>;

/// One of many requests, each time the same to the microsecond.
struct Scene {
    sim: Sim,
    plan: Plan,
    request: Request,
    options: RunOptions,
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let plan = random_plan(&sim, &mut rng);
        let request = RandomRequest::new(&mut rng).request(plan.engine());
        if rng.percent(50) {
            // What it reads may stand for what does not come the next time.
            let _ = sim.block_on(plan.run(request.clone()));
            sim.settle();
        }
        let deadline = rng.percent(20).then(|| sim.clock().now() + rng.micros(0..15_000));
        Scene { sim, plan, request, options: RunOptions { deadline, ..RunOptions::default() } }
    }

    /// Why, while the request runs.
    fn why(&self, row: i64) -> Result<Why, anabranch_plan::Error> {
        self.sim.block_on(anabranch_plan_inspect::why(&self.plan, self.request.clone(), &self.options, row))
    }

    async fn capture(&self, store: &Store) -> Capture {
        let recorded = anabranch_plan_inspect::capture::run_recorded(
            &self.plan,
            self.request.clone(),
            &self.options,
            1 << 20,
        );
        let taken = self.sim.block_on(recorded).1.unwrap();
        Capture::load(store, taken.write(store, None).await.unwrap()).await.unwrap()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Answered { .. } => "answered",
        Verdict::Dropped { .. } => "dropped",
        Verdict::Used { .. } => "used",
        Verdict::Absent => "absent",
    }
}

/// Of a region that was given up, a capture does not say how far its nodes were; they have no rows then.
fn same(live: &Why, replayed: &Why) -> bool {
    let regions = live.degraded.iter().any(|entry| entry.region.is_some());
    match (regions, &live.verdict) {
        (false, _) => live == replayed,
        (true, Verdict::Answered { .. }) => live.verdict == replayed.verdict,
        (true, _) => !matches!(replayed.verdict, Verdict::Answered { .. }),
    }
}

#[test]
fn why_of_a_capture_is_why_of_its_request() {
    let (store, replayer) = (Store::in_memory(StoreConfig::default()).unwrap(), Replayer::default());
    let mut told = VerdictCounts::new();
    for seed in 0..500 {
        let capture = block_on(Scene::new(seed).capture(&store));
        let mut rows: Vec<i64> = match capture.outcome.failure {
            Some(_) => vec![1],
            None => vec![1, 7, 12, 77_777],
        };
        let answer: Option<serde_json::Value> = serde_json::from_slice(&capture.answer).ok();
        let first = answer.and_then(|answer| answer["candidates"][0]["id"].as_i64());
        rows.extend(first);
        for row in rows {
            let replayed = block_on(replayer.why(&capture, row));
            match (Scene::new(seed).why(row), replayed) {
                (Ok(live), Ok(replayed)) => {
                    assert!(same(&live, &replayed), "seed {seed}, row {row}: {live:#?} {replayed:#?}");
                    *told.entry((word(&live.verdict), live.degraded.is_empty())).or_default() += 1;
                }
                (Err(_), Err(error)) => {
                    let expected = format!("capture {} has no answer", capture.address);
                    assert!(error.to_string().starts_with(&expected), "seed {seed}: {error}");
                }
                (live, replayed) => panic!("seed {seed}, row {row}: {live:?} {replayed:?}"),
            }
        }
    }
    for verdict in ["answered", "dropped", "absent"] {
        for whole in [false, true] {
            let count = told.get(&(verdict, whole)).copied().unwrap_or_default();
            assert!(count > 2, "hardly any {verdict}, whole: {whole}: {told:?}");
        }
    }
}
