//! Plans compared on captured requests.

use std::path::Path;

use anabranch_content::{Config as StoreConfig, Store};
use anabranch_plan::{Config, Engine, Plan, Request, RunOptions};
use anabranch_plan_inspect::capture::{Capture, DiffOptions, Differ, Difference, Replayer};
use anabranch_testkit::{Rng, Sim};
use serde_json::{Value, json};

use crate::naive::{RandomRequest, make, world, world::World};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn engine(sim: &Sim, rng: &mut Rng) -> Engine {
    let world = World::new(rng);
    let config = Config::new(world::registries(), world.sources(rng, &sim.clock()));
    Engine::on(sim.engine(&anabranch_engine::Config::default()), config)
}

/// A capture of a request; nothing if it failed.
fn capture(sim: &Sim, plan: &Plan, request: Request, store: &Store) -> Option<Capture> {
    let (answer, taken) = sim.block_on(anabranch_plan_inspect::capture::run_recorded(
        plan,
        request,
        &RunOptions::default(),
        1 << 20,
    ));
    answer.ok()?;
    block_on(async {
        let address = taken.unwrap().write(store, None).await.unwrap();
        Some(Capture::load(store, address).await.unwrap())
    })
}

fn compare(before: Option<&Value>, after: &Value, captures: &[Capture]) -> Difference {
    let replayer = Replayer::default();
    let engine = replayer.engine(Config::new(world::registries(), Vec::new()));
    let compile = |plan: &Value| engine.compile(&plan.to_string(), Path::new(".")).unwrap();
    let options = DiffOptions { top: 1000, score: None };
    let mut differ = Differ::new(&replayer, before.map(compile), compile(after), options);
    block_on(async {
        for capture in captures {
            differ.add(capture).await.unwrap();
        }
    });
    differ.finish()
}

/// A capture answers the plan that it was taken of, whichever node reads.
#[test]
fn a_plan_is_like_itself() {
    let store = Store::in_memory(StoreConfig::default()).unwrap();
    let mut compared = 0;
    for seed in 0..300 {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let engine = engine(&sim, &mut rng);
        let text = make::plan(&mut rng);
        let plan = engine.compile(&text.to_string(), Path::new(".")).unwrap();
        let request = RandomRequest::new(&mut rng).request(&engine);
        let Some(capture) = capture(&sim, &plan, request, &store) else { continue };
        let found = compare(None, &text, &[capture]);
        assert_eq!((found.captures.compared, found.captures.reasons.len()), (1, 0), "seed {seed}: {found:?}");
        assert_eq!(
            (found.changed, found.entered, found.left, found.rank_move),
            (0.0, 0.0, 0.0, 0.0),
            "seed {seed}"
        );
        assert_eq!(found.trips.before, found.trips.after, "seed {seed}");
        assert_eq!(found.waits.before, found.waits.after, "seed {seed}");
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
}

/// The trips and waits of a plan on captured requests are those of a request.
#[test]
fn other_fields_shorter_lists_and_other_ways_will_do() {
    let store = Store::in_memory(StoreConfig::default()).unwrap();
    let (sim, mut rng) = (Sim::new(1), Rng::new(2));
    let engine = engine(&sim, &mut rng);
    let plan = |limit: u32, fields: Value, score: u32| {
        json!({"schema_version": 1, "plan_name": "lists", "outputs": ["s"], "nodes": [
            {"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
            {"node_id": "f", "op": "core::fanout", "inputs": ["v"], "params": {"endpoint": "ep_0001",
                "key": "follow:{id}", "limit": limit, "fields": fields, "fields_key": "user:{id}"},
                "fallback": "empty"},
            {"node_id": "s", "op": "core::sort", "inputs": ["f"], "params": {"by": score, "order": "desc"}}]})
    };
    let wide = plan(4, json!(["likes", "sure", "country"]), 1001);
    let compiled = engine.compile(&wide.to_string(), Path::new(".")).unwrap();
    let ask = |user| Request::new(user, engine.registries());
    let captures: Vec<Capture> =
        (1..20).filter_map(|user| capture(&sim, &compiled, ask(user), &store)).collect();
    let shorter = compare(None, &plan(2, json!(["likes"]), 1001), &captures);
    assert_eq!(shorter.captures.compared, captures.len() as u64);
    assert!(shorter.changed > 0.0 && shorter.left > 0.0 && shorter.entered == 0.0, "{shorter:?}");
    assert_eq!(shorter.score.unwrap().key, "likes");
    // Lists that ended before the limit are known whole.
    let longer = compare(Some(&wide), &plan(5, json!(["likes"]), 1001), &captures);
    assert!(longer.captures.compared > 0 && longer.captures.not_comparable > 0, "{longer:?}");
    let reason = &longer.captures.reasons[0].reason;
    assert_eq!(
        reason,
        "the second plan: node `f` reads what was not captured: store_ep_0001, `LRANGE follow:{id}`"
    );
    let other = compare(None, &plan(4, json!(["likes", "title"]), 1001), &captures);
    // Who follows nobody reads no fields.
    assert!(other.captures.not_comparable > 0 && other.trips.before == 1.0, "{other:?}");
}

/// A parameter that is newer than a capture has its default.
#[test]
fn new_parameters_have_their_defaults() {
    let store = Store::in_memory(StoreConfig::default()).unwrap();
    let (sim, mut rng) = (Sim::new(1), Rng::new(2));
    let engine = engine(&sim, &mut rng);
    let plan = |pred: Value| {
        json!({"schema_version": 1, "plan_name": "some", "outputs": ["w"], "pred_table": {"p": pred}, "nodes": [
            {"node_id": "r", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 9}},
            {"node_id": "w", "op": "core::filter", "inputs": ["r"], "params": {"pred_id": "p"}}]})
    };
    let all = plan(json!({"op": "const_bool", "value": true}));
    let compiled = engine.compile(&all.to_string(), Path::new(".")).unwrap();
    let capture = capture(&sim, &compiled, Request::new(1, engine.registries()), &store).unwrap();
    let replayer = Replayer::default();
    let texts = [
        ("keys.toml", world::KEYS),
        (
            "params.toml",
            "[[param]]\nparam_id = 9\nname = 'most'\ntype = 'int'\nnullable = false\ndefault = 4",
        ),
    ];
    let (registries, _) = anabranch_plan::Registries::parse(texts, None).unwrap();
    let newer = replayer.engine(Config::new(registries, Vec::new()));
    let most = json!({"op": "param_ref", "param": "most"});
    let few = plan(json!({"op": "cmp", "cmp": "<=", "a": {"op": "key_ref", "key": "id"}, "b": most}));
    let after = newer.compile(&few.to_string(), Path::new(".")).unwrap();
    let mut differ = Differ::new(&replayer, None, after, DiffOptions { top: 10, score: None });
    block_on(differ.add(&capture)).unwrap();
    let found = differ.finish();
    assert_eq!((found.captures.compared, found.left), (1, 5.0), "{found:?}");
}
