//! Random plans with guards of all kinds, whose nodes are slow or fail: every request is over by its deadline with
//! nothing left running, and an answer without a ledger is the one that the plan without guards gives.

use std::path::Path;
use std::time::Duration;

use anabranch_engine::Failure;
use anabranch_plan::{Answer, Config, Engine, Error, RunOptions};
use anabranch_testkit::{Rng, Sim};
use serde_json::Value;

use super::moods::Moods;
use crate::capture::guarded;
use crate::naive::world::{World, registries};
use crate::naive::{RandomRequest, make};

const SEEDS: u64 = 250;

fn seeds() -> u64 {
    std::env::var("ANABRANCH_GUARDS_SEEDS").map_or(SEEDS, |count| count.parse().unwrap())
}

fn candidates(engine: &Engine, answer: &Answer) -> String {
    let mut json = Vec::new();
    answer.write_json(&engine.registries().keys, &mut json);
    serde_json::from_slice::<Value>(&json).unwrap()["candidates"].to_string()
}

/// The plan with some guards, as many as fit.
fn with_guards(engine: &Engine, plan: &Value, rng: &mut Rng) -> Value {
    let mut plan = plan.clone();
    for at in 0..plan["nodes"].as_array().unwrap().len() {
        if rng.percent(40) {
            let guarded = guarded(&plan, at, rng);
            if engine.compile(&guarded.to_string(), Path::new(".")).is_ok() {
                plan = guarded;
            }
        }
    }
    plan
}

/// Tells some nodes to be slow or to fail.
fn trouble(moods: &Moods, plan: &Value, rng: &mut Rng) {
    moods.forget();
    for node in plan["nodes"].as_array().unwrap() {
        let id = node["node_id"].as_str().unwrap();
        match rng.within(0..10) {
            0 => moods.fails(id),
            1 => moods.takes(id, Duration::from_secs(10)),
            2 | 3 => moods.takes(id, Duration::from_micros(rng.within(1..6_000))),
            _ => {}
        }
    }
}

#[test]
fn whatever_is_guarded_answers_in_time() {
    let (mut whole, mut degraded, mut late) = (0, 0, 0);
    for seed in 0..seeds() {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let (world, bare) = (World::new(&mut rng), make::plan(&mut rng));
        let moods = Moods::default();
        let mut config = Config::new(registries(), world.sources(&mut rng, &sim.clock()));
        config.ops = moods.ops();
        config.admission = false;
        let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
        let text = with_guards(&engine, &bare, &mut rng);
        let compile = |plan: &Value| engine.compile(&plan.to_string(), Path::new(".")).unwrap();
        let (bare, plan) = (compile(&bare), compile(&text));
        for _ in 0..4 {
            let asked = RandomRequest::new(&mut rng);
            moods.forget();
            let expected = sim.block_on(bare.run(asked.request(&engine)));
            trouble(&moods, &text, &mut rng);
            let (start, time) = (sim.clock().now(), Duration::from_micros(rng.within(1..30_000)));
            let sequential = rng.percent(10);
            let options = RunOptions { deadline: Some(start + time), sequential, ..RunOptions::default() };
            let answer = sim.block_on(plan.run_with(asked.request(&engine), &options));
            let took = sim.clock().now() - start;
            let left = sim.settle();
            let context = || format!("seed {seed}, {time:?}, sequential {sequential}\n{text:#}");
            assert_eq!((left.tasks, left.jobs), (0, 0), "{}", context());
            assert!(took <= time, "{took:?} {}", context());
            match answer {
                Ok(answer) if answer.ledger.is_empty() => {
                    let expected = expected.map(|answer| candidates(&engine, &answer));
                    let expected = expected.unwrap_or_else(|error| panic!("{error} {}", context()));
                    assert_eq!(candidates(&engine, &answer), expected, "{}", context());
                    whole += 1;
                }
                Ok(_) => degraded += 1,
                Err(Error::Node { failure, .. }) => {
                    assert!(!matches!(*failure, Failure::Panic(_)), "{failure} {}", context());
                }
                Err(Error::Deadline { .. }) => late += 1,
                Err(error) => panic!("{error} {}", context()),
            }
        }
    }
    let enough = seeds() as usize / 8;
    assert!([whole, degraded, late].iter().all(|count| *count > enough), "{whole} {degraded} {late}");
}
