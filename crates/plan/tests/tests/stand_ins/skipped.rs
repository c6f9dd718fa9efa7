//! Where `pass` stands in for a node, the answer is that of the plan without the node.

use std::path::Path;

use anabranch_plan::{Config, Engine, Request};
use anabranch_testkit::{Rng, Sim};
use serde_json::{Value, json};

use super::moods::Moods;
use crate::naive::make;
use crate::naive::world::{World, registries};

const SEEDS: u64 = 300;

/// The ops whose one column is their own: columns of other ops are null where `pass` replaces them.
const OPS: [&str; 9] = [
    "core::filter",
    "core::take",
    "core::sort",
    "core::topk",
    "core::dedupe",
    "core::group_limit",
    "core::concat",
    "core::union",
    "core::boost",
];

/// The plan without a node: whoever reads it reads its input.
fn without(plan: &Value, id: &str) -> Value {
    let mut plan = plan.clone();
    let nodes = plan["nodes"].as_array_mut().unwrap();
    let at = nodes.iter().position(|node| node["node_id"] == id).unwrap();
    let gone = nodes.remove(at);
    let (from, to) = (format!("\"{id}\""), gone["inputs"][0].to_string());
    serde_json::from_str(&plan.to_string().replace(&from, &to)).unwrap()
}

fn candidates(sim: &Sim, engine: &Engine, plan: &Value) -> Option<(String, usize)> {
    let plan = engine.compile(&plan.to_string(), Path::new(".")).ok()?;
    let answer = sim.block_on(plan.run(Request::new(1, engine.registries()))).ok()?;
    let mut json = Vec::new();
    answer.write_json(&engine.registries().keys, &mut json);
    let json: Value = serde_json::from_slice(&json).unwrap();
    Some((json["candidates"].to_string(), answer.ledger.len()))
}

#[test]
fn what_is_passed_over_is_as_if_it_was_not_there() {
    let mut compared = 0u32;
    for seed in 0..SEEDS {
        let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let (mut world, plan) = (World::new(&mut rng), make::plan(&mut rng));
        world.failing = None;
        let moods = Moods::default();
        let mut config = Config::new(registries(), world.sources(&mut rng, &sim.clock()));
        config.ops = moods.ops();
        let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
        for at in 0..plan["nodes"].as_array().unwrap().len() {
            let id = plan["nodes"][at]["node_id"].as_str().unwrap().to_owned();
            if !OPS.contains(&plan["nodes"][at]["op"].as_str().unwrap()) {
                continue;
            }
            let mut passed = plan.clone();
            // Its input is wanted anyway, so that a region around the node has no other.
            let input = plan["nodes"][at]["inputs"][0].clone();
            if !input.is_null() {
                passed["outputs"].as_array_mut().unwrap().push(input);
            }
            let rest = without(&passed, &id);
            if rng.percent(50) {
                passed["nodes"][at]["fallback"] = json!("pass");
            } else {
                let region = format!("{id}_region");
                let renamed = passed.to_string().replace(&format!("\"{id}\""), &format!("\"{region}\""));
                passed = serde_json::from_str(&renamed).unwrap();
                passed["nodes"][at]["node_id"] = json!(id);
                passed["nodes"].as_array_mut().unwrap().push(
                    json!({"node_id": region, "op": "core::timeout", "inputs": [id], "fallback": "pass"}),
                );
            }
            moods.forget();
            moods.fails(&id);
            let Some((rows, 1)) = candidates(&sim, &engine, &passed) else { continue };
            let Some((expected, _)) = candidates(&sim, &engine, &rest) else { continue };
            assert_eq!(rows, expected, "seed {seed}, node {id}\n{passed:#}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}
