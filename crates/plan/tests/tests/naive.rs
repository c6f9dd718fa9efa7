//! Random plans on random data, with reads that take all kinds of times, against a model that carries them out plainly.
//!
//! The planner leaves out nodes, columns, rows and reads, merges nodes and fuses them; none of it may show. And the
//! same request gives the same bytes, however its nodes interleave.

mod make;
mod model;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_plan::sources::Source;
use anabranch_plan::{Answer, Config, Engine, Request, RunOptions, Scalar};
use anabranch_rows::{Column, Rows};
use anabranch_testkit::{Rng, Sim};
use serde_json::Value;

use model::{Cell, Model, Row};
use world::World;

/// `ANABRANCH_PLAN_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("ANABRANCH_PLAN_SEEDS").map_or(1_500, |count| count.parse().unwrap())
}

#[test]
fn plans_answer_as_the_model_does() {
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let (world, plan) = (World::new(&mut rng), make::plan(&mut rng));
        let weight = rng.percent(60).then(|| 0.25 * rng.within(0..5) as f64);
        let user = rng.within(1..25) as i64;
        let params = weight.map(|weight| (1, weight)).into_iter().collect();
        let expected = Model { world: &world, plan: &plan, user, params }.answer();
        let mut bytes: Option<Vec<u8>> = None;
        for order in 0..2 {
            let answer = answer(&world, &plan, user, weight, seed * 7 + order);
            assert_eq!(found(&answer), expected, "seed {seed}, plan {plan:#}");
            let again = json(&answer);
            assert_eq!(bytes.get_or_insert_with(|| again.clone()), &again, "seed {seed}");
        }
    }
}

fn answer(world: &World, plan: &Value, user: i64, weight: Option<f64>, seed: u64) -> Answer {
    let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
    let runs = anabranch_engine::Config::default();
    let source: Arc<dyn Source> = Arc::new(world.source(&mut rng, sim.clock()));
    let mut config = Config::new(world::registries(), vec![source]);
    config.seed = 1;
    let engine = Engine::on(sim.engine(&runs), config);
    let plan = engine.compile(&plan.to_string(), std::path::Path::new(".")).unwrap_or_else(|error| {
        panic!("seed {seed}: {error}\n{plan:#}");
    });
    let mut request = Request::new(user, engine.registries());
    request.request_id = Some("r".to_owned());
    if let Some(weight) = weight {
        request.params[0] = Some(Scalar::Float(weight));
    }
    let threshold = [None, Some(std::time::Duration::ZERO)][rng.within(0..2) as usize];
    let options =
        RunOptions { sequential: rng.percent(20), inline_threshold: threshold, ..RunOptions::default() };
    let answer = sim.block_on(plan.run_with(request, &options)).unwrap();
    let left = sim.settle();
    assert_eq!((left.tasks, left.jobs), (0, 0), "seed {seed}");
    answer
}

fn found(answer: &Answer) -> Vec<Row> {
    answer.outputs.iter().flat_map(rows).collect()
}

fn rows(rows: &Rows) -> impl Iterator<Item = Row> + '_ {
    let cells = |row: usize| -> BTreeMap<u64, Cell> {
        let columns = rows.batch().columns().iter().filter(|(_, column)| !column.is_null(row));
        let cell = |column: &Column| match column {
            Column::Int(values) => Cell::Int(values.value(row)),
            Column::Float(values) => Cell::Float(values.value(row)),
            Column::Text(text) => Cell::Text(text.get(row).unwrap().to_owned()),
            Column::Bool(_) => panic!("this world has no truth values"),
        };
        columns.map(|(key, column)| (u64::from(key.0), cell(column))).collect()
    };
    rows.iter().map(move |row| (rows.batch().ids()[row], cells(row)))
}

fn json(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    answer.write_json(&world::registries().keys, &mut bytes);
    bytes
}
