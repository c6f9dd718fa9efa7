//! Captures of random requests answer the same again, to the byte, from nothing but their store.

use std::path::Path;
use std::time::Duration;

use anabranch_content::{Address, Class, Config as StoreConfig, Context, Store, Value as Canonical};
use anabranch_plan::{Config, Engine, Plan, Request, RunOptions};
use anabranch_plan_inspect::capture::{Capture, Replayer, captures, decoders, run_recorded};
use anabranch_testkit::{Rng, Sim};
use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::naive::{RandomRequest, make, world, world::World};

/// `ANABRANCH_CAPTURE_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("ANABRANCH_CAPTURE_SEEDS").map_or(1_000, |count| count.parse().unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn store() -> Store {
    Store::in_memory(StoreConfig::default()).unwrap()
}

/// A random plan in a random world, on a virtual clock; some of its nodes may be late, and are stood in for.
pub(crate) fn random_plan(sim: &Sim, rng: &mut Rng) -> Plan {
    let (world, mut plan) = (World::new(rng), make::plan(rng));
    let mut config = Config::new(world::registries(), world.sources(rng, &sim.clock()));
    config.seed = rng.within(0..u64::MAX);
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    let compile = |plan: &Value| engine.compile(&plan.to_string(), Path::new("."));
    for at in 0..plan["nodes"].as_array().unwrap().len() {
        if rng.percent(35) {
            let guarded = guarded(&plan, at, rng);
            // Not every fallback fits every node.
            if compile(&guarded).is_ok() {
                plan = guarded;
            }
        }
    }
    compile(&plan).unwrap_or_else(|error| panic!("{error}\n{plan:#}"))
}

/// The plan with a guard for one node, or for a region that ends with it.
pub(crate) fn guarded(plan: &Value, at: usize, rng: &mut Rng) -> Value {
    let mut plan = plan.clone();
    let id = plan["nodes"][at]["node_id"].as_str().unwrap().to_owned();
    let other = format!("n{}", rng.within(0..at as u64 + 1));
    let fallback = match rng.within(0..6) {
        0 | 1 => json!("empty"),
        2 => json!("pass"),
        3 => json!([{"stale": {"max_age_ms": 60_000}}, "empty"]),
        4 => json!({"node": other}),
        _ => json!([{"node": other}, "empty"]),
    };
    let guard = json!({"timeout_ms": rng.within(1..4), "fallback": fallback});
    let nodes = plan["nodes"].as_array_mut().unwrap();
    if rng.percent(40) {
        let region = format!("region_{id}");
        for node in nodes.iter_mut().skip(at + 1) {
            *node = serde_json::from_str(
                &node.to_string().replace(&format!("\"{id}\""), &format!("\"{region}\"")),
            )
            .unwrap();
        }
        let mut node = json!({"node_id": region, "op": "core::timeout", "inputs": [id]});
        node.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
        nodes.push(node);
        for output in
            plan["outputs"].as_array_mut().unwrap().iter_mut().filter(|output| **output == json!(id))
        {
            *output = json!(region);
        }
    } else {
        nodes[at].as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    }
    plan
}

#[derive(Debug, Default)]
struct Counts {
    whole: u64,
    degraded: u64,
    failed: u64,
    /// Of the degraded ones.
    stale: u64,
}

#[test]
fn captured_requests_answer_the_same_again() {
    let (runtime, replayer, store) = (runtime(), Replayer::default(), store());
    let mut counts = Counts::default();
    for seed in 0..seeds() {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let plan = random_plan(&sim, &mut rng);
        let mut asked = RandomRequest::new(&mut rng);
        asked.named = rng.percent(50);
        let request = asked.request(plan.engine());
        if rng.percent(50) {
            // What it reads may stand for what does not come the next time.
            let _ = sim.block_on(plan.run(request.clone()));
            sim.settle();
        }
        let deadline = rng.percent(20).then(|| sim.clock().now() + rng.micros(0..15_000));
        let threshold = rng.percent(30).then_some(Duration::ZERO);
        let options = RunOptions { deadline, inline_threshold: threshold, ..RunOptions::default() };
        let (answer, taken) = sim.block_on(run_recorded(&plan, request, &options, 1 << 20));
        let replayed = runtime.block_on(async {
            let address = taken.unwrap().write(&store, None).await.unwrap();
            replayer.replay_from(&store, address).await.unwrap()
        });
        let expected = match &answer {
            Ok(answer) => {
                let mut bytes = Vec::new();
                answer.write_json(&plan.engine().registries().keys, &mut bytes);
                bytes
            }
            Err(error) => error.to_string().into_bytes(),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&replayed.bytes), text(&expected), "seed {seed}");
        assert!(replayed.same, "seed {seed}");
        match answer {
            Ok(answer) if answer.ledger.is_empty() => counts.whole += 1,
            Ok(answer) => {
                counts.degraded += 1;
                counts.stale += u64::from(answer.ledger.iter().any(|entry| entry.age.is_some()));
            }
            Err(_) => counts.failed += 1,
        }
    }
    let least = seeds() / 40;
    assert!(counts.whole > least && counts.degraded > least && counts.failed > least, "{counts:?}");
    assert!(counts.stale > 0, "{counts:?}");
}

/// A plan with a linear model in a file, on data that never changes.
pub(crate) fn small_plan(sim: &Sim) -> Plan {
    let mut rng = Rng::new(3);
    let mut world = World::new(&mut rng);
    world.failing = None;
    let config = Config::new(world::registries(), world.sources(&mut rng, &sim.clock()));
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capture");
    std::fs::create_dir_all(&folder).unwrap();
    let model = r#"{"intercept": 1, "weights": {"likes": 0.5}}"#;
    std::fs::write(folder.join("model.json"), model).unwrap();
    let text = json!({"schema_version": 1, "plan_name": "small", "outputs": ["s"], "nodes": [
        {"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
        {"node_id": "f", "op": "core::fanout", "inputs": ["v"], "params": {"endpoint": "ep_0001",
            "key": "follow:{id}", "limit": 5, "fields": ["likes"], "fields_key": "user:{id}"}},
        {"node_id": "m", "op": "core::model", "inputs": ["f"], "params": {"kind": "linear", "file": "model.json",
            "out_key": 2001, "missing": "zero"}},
        {"node_id": "s", "op": "core::sort", "inputs": ["m"], "params": {"by": 2001, "order": "desc"}}]});
    let plan = engine.compile(&text.to_string(), &folder).unwrap();
    std::fs::remove_file(folder.join("model.json")).unwrap();
    plan
}

pub(crate) fn take(sim: &Sim, plan: &Plan, user: i64) -> anabranch_plan_inspect::capture::UnsavedCapture {
    let request = Request::new(user, plan.engine().registries());
    let (answer, taken) = sim.block_on(run_recorded(plan, request, &RunOptions::default(), 1 << 20));
    answer.unwrap();
    taken.unwrap()
}

#[test]
fn sets_are_listed_and_hold_what_is_in_them() {
    let (sim, store) = (Sim::new(1), store());
    let plan = small_plan(&sim);
    runtime().block_on(async {
        let mut written = Vec::new();
        for user in 1..=7 {
            written.push(take(&sim, &plan, user).write(&store, Some("monday")).await.unwrap());
        }
        let again = take(&sim, &plan, 9).write(&store, Some("tuesday")).await.unwrap();
        assert_eq!(
            anabranch_plan_inspect::capture::capture_sets(&store).await.unwrap(),
            ["monday", "tuesday"]
        );
        let mut set = captures(&store, "monday").await.unwrap();
        let mut found = Vec::new();
        loop {
            let page = set.next(3).await.unwrap();
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        found.sort();
        written.sort();
        assert_eq!(found, written);
        assert_eq!(captures(&store, "tuesday").await.unwrap().count().await.unwrap(), 1);
        store
            .collect(anabranch_content::Collect { grace: Duration::ZERO, ..Default::default() })
            .await
            .unwrap();
        let replayer = Replayer::default();
        for address in written.into_iter().chain([again]) {
            assert!(replayer.replay_from(&store, address).await.unwrap().same);
        }
        let error = captures(&store, "sunday").await.unwrap_err().to_string();
        expect!["there is no set of captures `sunday`; there are: monday, tuesday"].assert_eq(&error);
        let refused = take(&sim, &plan, 1).write(&store, Some("a/b")).await.unwrap_err().to_string();
        expect![[r#"a set of captures cannot be called "a/b": 1 to 100 letters, digits, `_`, `-` or `.`"#]]
            .assert_eq(&refused);
    });
}

/// The bounds of the engine count in a replay, not those of the registries; a capture of before has none.
#[test]
fn a_replay_keeps_the_bounds_of_the_engine_that_answered() {
    let (sim, store) = (Sim::new(1), store());
    let (sources, mut registries) = {
        let mut rng = Rng::new(3);
        let mut world = World::new(&mut rng);
        world.failing = None;
        (world.sources(&mut rng, &sim.clock()), world::registries())
    };
    registries.limits.bounds.rows = 3;
    let config = Config::new(registries, sources);
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    let text = json!({"schema_version": 1, "plan_name": "small", "outputs": ["t"], "nodes": [
        {"node_id": "f", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 2}},
        {"node_id": "t", "op": "core::concat", "inputs": ["f"], "params": {"rhs": "f"}}]});
    let plan = engine.compile(&text.to_string(), Path::new(".")).unwrap();
    let request = Request::new(2, engine.registries());
    let (answer, taken) = sim.block_on(run_recorded(&plan, request, &RunOptions::default(), 1 << 20));
    let refused = answer.unwrap_err().to_string();
    assert!(refused.contains("at least 6 rows, and 3 are allowed"), "{refused}");
    runtime().block_on(async {
        let address = taken.unwrap().write(&store, None).await.unwrap();
        let replayed = Replayer::default().replay_from(&store, address).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&replayed.bytes), refused);
        assert!(replayed.same);
        let described = store.derivation(&address).await.unwrap().unwrap();
        let Ok(Canonical::Map(mut parts)) = Canonical::decode(&described.bytes) else { panic!("no map") };
        let bounds = parts.remove("bounds").unwrap();
        let older = async |parts: &std::collections::BTreeMap<String, Canonical>| {
            let bytes = Canonical::Map(parts.clone()).encode().unwrap();
            store.put_derivation(Context(&described.context), bytes).await.unwrap()
        };
        let replayed = Replayer::default().replay_from(&store, older(&parts).await).await.unwrap();
        let answer = replayed.answer.unwrap();
        assert_eq!(answer.outputs[0].len(), 4, "the registries allow more");
        let Canonical::Map(mut bounds) = bounds else { panic!("no map") };
        bounds.insert("rows".to_owned(), Canonical::Int(-1));
        parts.insert("bounds".to_owned(), Canonical::Map(bounds));
        let error = Capture::load(&store, older(&parts).await).await.unwrap_err().to_string();
        assert!(error.contains("its `bounds` is missing or something else"), "{error}");
    });
}

#[test]
fn what_is_no_capture_is_told() {
    let (sim, store) = (Sim::new(1), store());
    let plan = small_plan(&sim);
    runtime().block_on(async {
        let load = async |address: Address| Capture::load(&store, address).await.unwrap_err().to_string();
        let nothing = Address::of(b"nothing");
        assert_eq!(load(nothing).await, format!("{nothing} is no capture of this store"));
        let other = store.put_derivation(Context("something else"), vec![1, 0]).await.unwrap();
        assert_eq!(load(other).await, format!("{other} is no capture of this store"));
        let address = take(&sim, &plan, 1).write(&store, None).await.unwrap();
        let described = store.derivation(&address).await.unwrap().unwrap();
        let Ok(Canonical::Map(whole)) = Canonical::decode(&described.bytes) else { panic!("no map") };
        let bad = store.put(vec![7], Class::Acknowledged).await.unwrap().address;
        let mut told = Vec::new();
        for (field, value) in [
            ("version", Canonical::Int(2)),
            ("plan", Canonical::Null),
            ("color", Canonical::Null),
            ("replies", Canonical::Address(bad)),
            ("outcome", Canonical::Address(bad)),
            ("request", Canonical::Address(nothing)),
        ] {
            let mut map = whole.clone();
            map.insert(field.to_owned(), value);
            let bytes = Canonical::Map(map).encode().unwrap();
            let changed = store.put_derivation(Context(&described.context), bytes).await.unwrap();
            told.push(load(changed).await.replace(&changed.to_string(), "X"));
        }
        expect![[r#"
            the description of capture X has version 2; this program reads version 1
            the description of capture X cannot be read: its `plan` is missing or something else
            the description of capture X cannot be read: nobody knows its `color`
            the replies of capture X has version 7; this program reads version 1
            the outcome of capture X cannot be read: byte 0 of the encoding: the version is 7, not 1
            the request of capture X is not in the store"#]]
        .assert_eq(&told.join("\n"));
    });
}

#[test]
fn a_request_that_reads_too_much_is_answered_and_not_captured() {
    let sim = Sim::new(1);
    let plan = small_plan(&sim);
    let request = Request::new(1, plan.engine().registries());
    let (answer, taken) = sim.block_on(run_recorded(&plan, request, &RunOptions::default(), 50));
    assert!(answer.is_ok());
    let error = taken.err().unwrap().to_string();
    expect!["the request read 76 bytes, and a capture may have 50; it was not kept"].assert_eq(&error);
}

/// Captures' parts, with bytes changed, cut out and doubled.
#[test]
fn changed_parts_decode_or_do_not() {
    let (sim, store, registries) = (Sim::new(1), store(), world::registries());
    let plan = small_plan(&sim);
    let parts = runtime().block_on(async {
        let mut parts = Vec::new();
        for user in 1..5 {
            let address = take(&sim, &plan, user).write(&store, None).await.unwrap();
            let described = store.derivation(&address).await.unwrap().unwrap();
            parts.push(described.bytes.clone());
            for input in described.inputs {
                parts.push(store.get(&input).await.unwrap().unwrap());
            }
        }
        parts
    });
    let mut rng = Rng::new(5);
    for part in parts {
        for _ in 0..500 {
            let mut bytes = part.to_vec();
            for _ in 0..rng.within(1..4) {
                let at = rng.within(0..bytes.len() as u64) as usize;
                match rng.within(0..3) {
                    0 => bytes[at] = rng.within(0..256) as u8,
                    1 => _ = bytes.remove(at),
                    _ => bytes.insert(at, bytes[at]),
                }
            }
            decoders::any(&bytes, &registries);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_or_do_not(bytes in prop::collection::vec(0u8..12, 0..120)) {
        decoders::any(&bytes, &world::registries());
        decoders::any(&[&[1], &bytes[..]].concat(), &world::registries());
    }
}
