//! Captures that an engine takes by itself: bounded, written behind the answers, and without what is masked.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;

use anabranch_content::{Config as StoreConfig, Store, Value as Canonical};
use anabranch_plan::{Config, Engine, Plan, Request, RunOptions, Scalar};
use anabranch_plan_inspect::capture::{Capture, Replayer, SampleCounts, Sampler, Sampling, captures};
use anabranch_testkit::{Rng, Sim};
use futures_util::FutureExt as _;
use serde_json::json;

use crate::capture::random_plan;
use crate::naive::{RandomRequest, make, world, world::World};

fn store() -> Store {
    Store::in_memory(StoreConfig::default()).unwrap()
}

fn every(store: &Store) -> Sampling {
    let mut sampling = Sampling::new(store.clone(), "live").unwrap();
    sampling.one_in = NonZeroU64::MIN;
    sampling.per_second = NonZeroU32::MAX;
    sampling
}

fn sampler(engine: &Engine, sampling: Sampling) -> Sampler {
    Sampler::new(sampling, engine.ops().clone(), 1)
}

fn engine(sim: &Sim) -> Engine {
    let mut rng = Rng::new(3);
    let mut world = World::new(&mut rng);
    world.failing = None;
    let mut config = Config::new(world::registries(), world.sources(&mut rng, &sim.clock()));
    config.seed = 1;
    Engine::on(sim.engine(&anabranch_engine::Config::default()), config)
}

/// Users who are followed, and what is near each by country and by a parameter.
fn plan(engine: &Engine) -> Plan {
    let text = json!({"schema_version": 1, "plan_name": "near", "outputs": ["u"], "nodes": [
        {"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
        {"node_id": "near", "op": "core::fanout", "inputs": ["v"], "params": {"endpoint": "ep_0001",
            "key": "near:{country}", "limit": 5, "fields": ["country", "likes"], "fields_key": "user:{id}"}},
        {"node_id": "there", "op": "core::fanout", "inputs": ["v"], "params": {"endpoint": "ep_0001",
            "key": "near:{$pattern}", "limit": 5, "fields": ["country", "likes"], "fields_key": "user:{id}"}},
        {"node_id": "u", "op": "core::concat", "inputs": ["near"], "params": {"rhs": "there"}}]});
    engine.compile(&text.to_string(), Path::new(".")).unwrap()
}

fn ask(sim: &Sim, plan: &Plan, sampler: &Sampler, users: std::ops::Range<i64>) {
    for user in users {
        let registries = plan.engine().registries();
        let mut request = Request::new(user, registries);
        request.set("pattern", Some(Scalar::Text("Straße".into())), registries).unwrap();
        sim.block_on(sampler.run(plan, request, &RunOptions::default())).unwrap();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// All captures of the set.
async fn live(store: &Store) -> Vec<Capture> {
    let mut set = captures(store, "live").await.unwrap();
    let mut found = Vec::new();
    for address in set.next(10_000).await.unwrap() {
        found.push(Capture::load(store, address).await.unwrap());
    }
    found
}

#[test]
fn what_is_captured_is_bounded_and_the_rest_is_counted() {
    let check = |change: &dyn Fn(&mut Sampling), expected: SampleCounts| {
        let (sim, store) = (Sim::new(1), store());
        let mut sampling = every(&store);
        sampling.most_waiting = NonZeroUsize::new(100).unwrap();
        change(&mut sampling);
        let engine = engine(&sim);
        let sampler = sampler(&engine, sampling);
        ask(&sim, &plan(&engine), &sampler, 1..21);
        block_on(async {
            sampler.flush().await;
            let found = SampleCounts { bytes: 0, ..sampler.counts() };
            assert_eq!(found, expected);
            if expected.written > 0 {
                assert_eq!(live(&store).await.len() as u64, expected.written);
            }
        });
    };
    let none = SampleCounts::default();
    check(&|_| {}, SampleCounts { written: 20, ..none });
    check(
        &|sampling| sampling.per_second = NonZeroU32::new(4).unwrap(),
        SampleCounts { written: 4, dropped_rate: 16, ..none },
    );
    check(&|sampling| sampling.most_bytes = 10, SampleCounts { dropped_size: 20, ..none });
    check(
        &|sampling| sampling.most_waiting = NonZeroUsize::new(3).unwrap(),
        SampleCounts { written: 3, dropped_queue: 17, ..none },
    );
    check(&|sampling| sampling.total_bytes = 10, SampleCounts { dropped_total: 20, ..none });
    check(&|sampling| sampling.one_in = NonZeroU64::new(4).unwrap(), SampleCounts { written: 5, ..none });
}

#[test]
fn captures_are_written_while_requests_run() {
    let store = store();
    let mut rng = Rng::new(3);
    let world = World::new(&mut rng);
    let clock: std::sync::Arc<dyn anabranch_engine::clock::Clock> =
        std::sync::Arc::new(anabranch_engine::clock::SystemClock);
    let config = Config::new(world::registries(), world.sources(&mut rng, &clock));
    let engine = Engine::load(config).unwrap();
    let sampler = sampler(&engine, every(&store));
    let plan = plan(&engine);
    block_on(async {
        let requests = async {
            for user in 1..6 {
                let request = Request::new(user, engine.registries());
                let _ = sampler.run(&plan, request, &RunOptions::default()).await;
                while sampler.counts().written < user as u64 {
                    tokio::task::yield_now().await;
                }
            }
        };
        futures_util::future::select(Box::pin(requests), Box::pin(sampler.write())).await;
        assert_eq!(live(&store).await.len(), 5);
    });
}

/// Whoever writes may stop at any point; what was being written then is written later.
#[test]
fn a_capture_is_not_lost_with_who_wrote_it() {
    let (sim, store) = (Sim::new(1), store());
    let engine = engine(&sim);
    let sampler = sampler(&engine, every(&store));
    let plan = plan(&engine);
    block_on(async {
        for user in 1..21 {
            ask(&sim, &plan, &sampler, user..user + 1);
            let _ = sampler.write().now_or_never();
            sampler.flush().await;
        }
        let counts = SampleCounts { bytes: 0, ..sampler.counts() };
        assert_eq!(counts, SampleCounts { written: 20, ..SampleCounts::default() });
        assert_eq!(live(&store).await.len(), 20);
    });
}

#[test]
fn a_closed_store_takes_nothing_and_harms_nobody() {
    let (sim, store) = (Sim::new(1), store());
    let engine = engine(&sim);
    let sampler = sampler(&engine, every(&store));
    block_on(store.close()).unwrap();
    ask(&sim, &plan(&engine), &sampler, 1..6);
    block_on(sampler.flush());
    let counts = SampleCounts { bytes: 0, ..sampler.counts() };
    assert_eq!(counts, SampleCounts { dropped_store: 5, ..SampleCounts::default() });
}

/// Parts that captures share count once towards their limit.
#[test]
fn what_captures_share_counts_once() {
    let check = |users: std::ops::Range<i64>| -> (u64, u64) {
        let (sim, store) = (Sim::new(1), store());
        let engine = engine(&sim);
        let sampler = sampler(&engine, every(&store));
        ask(&sim, &plan(&engine), &sampler, users);
        block_on(async {
            sampler.flush().await;
            let mut parts = std::collections::BTreeMap::new();
            for capture in live(&store).await {
                for part in store.derivation(&capture.address).await.unwrap().unwrap().inputs {
                    parts.insert(part, store.size(&part).await.unwrap().unwrap());
                }
            }
            (sampler.counts().bytes, parts.values().sum())
        })
    };
    let (one, all) = (check(1..2), check(1..6));
    assert_eq!(one.0, one.1);
    assert!(all.0 >= all.1 && all.0 < 5 * one.0, "{all:?}, one: {one:?}");
}

#[test]
fn masked_values_are_nowhere_in_a_capture() {
    let (sim, store) = (Sim::new(1), store());
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let mut sampling =
        every(&store).masking(&names(&["country"]), &names(&["pattern"]), &world::registries()).unwrap();
    sampling.most_waiting = NonZeroUsize::new(100).unwrap();
    let engine = engine(&sim);
    let sampler = sampler(&engine, sampling);
    ask(&sim, &plan(&engine), &sampler, 1..61);
    block_on(async {
        sampler.flush().await;
        let counts = sampler.counts();
        assert_eq!((counts.written, counts.dropped_masked), (60, 0));
        let replayer = Replayer::default();
        let (mut rows, mut masked) = (0, 0);
        for capture in live(&store).await {
            assert!(capture.masked);
            let replayed = replayer.replay(&capture).await.unwrap();
            assert!(replayed.same);
            let text = String::from_utf8(replayed.bytes).unwrap();
            rows += text.matches("\"id\":").count();
            masked += text.matches("\"country\":\"~").count();
            let described = store.derivation(&capture.address).await.unwrap().unwrap();
            for part in described.inputs {
                let bytes = store.get(&part).await.unwrap().unwrap();
                let found = |secret: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
                for secret in ["Straße", "near:US", "near:CA", "\"US\"", "\"CA\""] {
                    assert!(!found(secret.as_bytes()), "{secret} in {}", String::from_utf8_lossy(&bytes));
                }
            }
        }
        assert!(rows > 30 && masked > 1, "{rows} rows, {masked} masked");
    });
    let refused =
        |keys: &[&str]| every(&store).masking(&names(keys), &[], &world::registries()).err().unwrap();
    expect_test::expect![[r#"
        masked captures: ids are what rows are known by; they stay
        masked captures: there is no key `contry`"#]]
    .assert_eq(&format!("{}\n{}", refused(&["id"]), refused(&["contry"])));
}

/// Masked captures of random requests answer the same again, or are dropped.
#[test]
fn masked_random_requests_answer_the_same_again() {
    let (store, replayer) = (store(), Replayer::default());
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let (mut written, mut dropped) = (0, 0);
    for seed in 0..200 {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let (world, text) = (World::new(&mut rng), make::plan(&mut rng));
        let config = Config::new(world::registries(), world.sources(&mut rng, &sim.clock()));
        let sampling = every(&store).masking(
            &names(&["country", "likes", "sure"]),
            &names(&["weight"]),
            &config.registries,
        );
        let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
        let sampler = sampler(&engine, sampling.unwrap());
        let plan = engine.compile(&text.to_string(), Path::new(".")).unwrap();
        let asked = RandomRequest::new(&mut rng);
        let request = asked.request(&engine);
        let _ = sim.block_on(sampler.run(&plan, request, &RunOptions::default()));
        block_on(sampler.flush());
        let counts = sampler.counts();
        written += counts.written;
        dropped += counts.dropped_masked;
        assert_eq!(counts.written + counts.dropped_masked, 1, "seed {seed}: {counts:?}");
    }
    block_on(async {
        for capture in live(&store).await {
            let replayed = replayer.replay(&capture).await.unwrap();
            assert!(replayed.same, "{}", String::from_utf8_lossy(&replayed.bytes));
        }
    });
    assert!(written > 100, "{written} written, {dropped} dropped");
}

/// A replay with masked values gives the captured answer if no read value is masked, late nodes included.
#[test]
fn masking_what_nobody_reads_changes_nothing() {
    let (mut whole, mut degraded, mut dropped) = (0, 0, 0);
    for seed in 0..400 {
        let (sim, mut rng, store) = (Sim::new(seed), Rng::new(seed), store());
        let sampling = every(&store).masking(&["bonus".to_owned()], &[], &world::registries()).unwrap();
        let plan = random_plan(&sim, &mut rng);
        let sampler = sampler(plan.engine(), sampling);
        let request = RandomRequest::new(&mut rng).request(plan.engine());
        let _ = sim.block_on(sampler.run(&plan, request.clone(), &RunOptions::default()));
        sim.settle();
        block_on(sampler.flush());
        let before = sampler.counts();
        let answer = sim.block_on(sampler.run(&plan, request, &RunOptions::default()));
        block_on(sampler.flush());
        let counts = sampler.counts();
        // Of a request that failed, what it said is masked.
        let Ok(mut answer) = answer else { continue };
        if counts.written == before.written {
            dropped += 1;
            continue;
        }
        match answer.ledger.is_empty() {
            true => whole += 1,
            false => degraded += 1,
        }
        for entry in &mut answer.ledger {
            entry.detail = entry.detail.as_ref().map(|_| "masked".to_owned());
        }
        let mut bytes = Vec::new();
        answer.write_json(&plan.engine().registries().keys, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let captures = block_on(live(&store));
        let same = captures.iter().any(|capture| capture.answer == text.as_bytes());
        assert!(
            same,
            "seed {seed}: {text}\n{:?}",
            captures.iter().map(|c| c.answer.clone()).collect::<Vec<_>>()
        );
    }
    assert!(whole > 50 && degraded > 20, "{whole} whole, {degraded} degraded, {dropped} dropped");
}

/// Texts that are masked, wherever a plan reads them and whatever becomes of it.
#[test]
fn masked_texts_are_in_no_part_of_random_captures() {
    let (store, mut parts) = (store(), 0);
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    for seed in 0..300 {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let masked =
            every(&store).masking(&names(&["country", "title"]), &names(&["pattern"]), &world::registries());
        let plan = random_plan(&sim, &mut rng);
        let sampler = sampler(plan.engine(), masked.unwrap());
        let request = RandomRequest::new(&mut rng).request(plan.engine());
        for _ in 0..2 {
            let _ = sim.block_on(sampler.run(&plan, request.clone(), &RunOptions::default()));
            sim.settle();
        }
        block_on(sampler.flush());
    }
    block_on(async {
        for capture in live(&store).await {
            let described = store.derivation(&capture.address).await.unwrap().unwrap();
            let Ok(Canonical::Map(map)) = Canonical::decode(&described.bytes) else { panic!("no map") };
            for name in ["request", "replies", "outcome"] {
                let Canonical::Address(part) = map[name] else { panic!("no address") };
                let bytes = store.get(&part).await.unwrap().unwrap();
                let found = |secret: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
                assert!(!found("Straße".as_bytes()), "{name}: {}", String::from_utf8_lossy(&bytes));
                parts += 1;
            }
        }
    });
    assert!(parts > 300, "{parts}");
}
