//! Random plans on random data, with reads that take all kinds of times, against a model that carries them out plainly.
//!
//! The planner leaves out nodes, columns, rows and reads, merges nodes and fuses them; none of it may show. And the
//! same request gives the same bytes, however its nodes interleave. Where something fails that is not left out, the
//! request does, and nothing is left of it.

mod cell;
mod eval;
mod exprs;
pub(crate) mod make;
mod model;
mod why;
pub(crate) mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anabranch_plan::{Answer, Config, Engine, Error, Plan, Request, RunOptions, UserId};
use anabranch_rows::{Column, Rows};
use anabranch_testkit::{Rng, Sim};
use futures_util::future::select;
use serde_json::{Map, Value, json};

use cell::{Cell, Row};
use model::{ExpectedAnswer, Model};
use world::World;

/// `ANABRANCH_PLAN_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("ANABRANCH_PLAN_SEEDS").map_or(1_500, |count| count.parse().unwrap())
}

/// A request: the user, the parameters by their number, and the candidates.
pub(crate) struct RandomRequest {
    user: UserId,
    /// True if the caller gives the request a name.
    pub(crate) named: bool,
    params: BTreeMap<u64, Cell>,
    candidates: Vec<Row>,
    /// In which of its forms JSON has the candidates.
    columnar: bool,
}

impl RandomRequest {
    pub(crate) fn new(rng: &mut Rng) -> RandomRequest {
        let mut params = BTreeMap::new();
        if rng.percent(60) {
            params.insert(1, Cell::Float(0.25 * rng.within(0..5) as f64));
        }
        if rng.percent(80) {
            params.insert(2, Cell::Text((*rng.choose(&["^U", "s$", "S", ""])).to_owned()));
        }
        if rng.percent(70) {
            params.insert(3, Cell::Int(rng.within(1..9) as i64));
        }
        let user = match rng.percent(25) {
            true => UserId::from(world::NAMED),
            false => UserId::from(rng.within(1..25) as i64),
        };
        let candidates = world::candidates(rng);
        RandomRequest { user, named: true, params, candidates, columnar: rng.percent(50) }
    }

    /// The request, as a client writes it.
    pub(crate) fn request(&self, engine: &Engine) -> Request {
        let registries = engine.registries();
        let name = |number: &u64| registries.params.iter().nth(*number as usize - 1).unwrap().name.clone();
        let params: Map<String, Value> =
            self.params.iter().map(|(number, value)| (name(number), value.json())).collect();
        let user = self.user.as_int().map_or_else(|| json!(self.user.to_string()), |id| json!(id));
        let candidates = if self.columnar { self.columns() } else { self.objects() };
        let mut request = json!({"user_id": user, "param_overrides": params, "candidates": candidates});
        if self.named {
            request["request_id"] = json!("r");
        }
        Request::parse(request.to_string(), registries).unwrap_or_else(|error| panic!("{error}: {request}"))
    }

    fn objects(&self) -> Value {
        let object = |(id, cells): &Row| {
            let cells = cells.iter().map(|(key, cell)| (world::name_of(*key).to_owned(), cell.json()));
            Value::Object(cells.chain([("id".to_owned(), json!(id))]).collect())
        };
        self.candidates.iter().map(object).collect()
    }

    fn columns(&self) -> Value {
        let ids: Value = self.candidates.iter().map(|(id, _)| json!(id.to_string())).collect();
        let mut columns = json!({"id": ids});
        let keys: BTreeSet<u64> =
            self.candidates.iter().flat_map(|(_, cells)| cells.keys().copied()).collect();
        for key in keys {
            let values =
                self.candidates.iter().map(|(_, cells)| cells.get(&key).map_or(Value::Null, Cell::json));
            columns[world::name_of(key)] = values.collect();
        }
        columns
    }
}

#[test]
fn plans_answer_as_the_model_does() {
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let (world, plan, asked) = (World::new(&mut rng), make::plan(&mut rng), RandomRequest::new(&mut rng));
        let expected = Model::new(&world, &plan, &asked).answer();
        let mut first: Option<Option<Vec<u8>>> = None;
        for order in 0..2 {
            let found = answer(&world, &plan, &asked, seed * 7 + order);
            check(&found, &expected, &format!("seed {seed}, plan {plan:#}"));
            let bytes = found.ok().map(|answer| written(&answer));
            assert_eq!(first.get_or_insert_with(|| bytes.clone()), &bytes, "seed {seed}");
        }
    }
}

fn check(found: &Result<Answer, Error>, expected: &ExpectedAnswer, place: &str) {
    match found {
        Ok(answer) => {
            assert!(!expected.must_fail, "it ought to fail: {place}");
            assert_eq!(rows_of(answer), expected.rows, "{place}");
        }
        Err(Error::Node { .. }) if expected.may_fail || expected.must_fail => {}
        Err(error) => panic!("{error}: {place}"),
    }
}

#[test]
fn plans_that_are_given_up_leave_nothing_behind() {
    for seed in 0..seeds() / 4 {
        let mut rng = Rng::new(seed);
        let (world, plan, asked) = (World::new(&mut rng), make::plan(&mut rng), RandomRequest::new(&mut rng));
        let expected = Model::new(&world, &plan, &asked).answer();
        let sim = Sim::new(seed);
        let compiled = compile(&world, &plan, &sim, &mut rng);
        for _ in 0..3 {
            let soon = sim.clock().now() + rng.micros(0..9_000);
            let run = Box::pin(compiled.run(asked.request(compiled.engine())));
            drop(sim.block_on(select(run, sim.clock().sleep_until(soon))));
        }
        let found = sim.block_on(compiled.run(asked.request(compiled.engine())));
        check(&found, &expected, &format!("seed {seed}, plan {plan:#}"));
        let left = sim.settle();
        assert_eq!((left.tasks, left.jobs), (0, 0), "seed {seed}");
    }
}

fn compile(world: &World, plan: &Value, sim: &Sim, rng: &mut Rng) -> Plan {
    let runs = anabranch_engine::Config::default();
    let mut config = Config::new(world::registries(), world.sources(rng, &sim.clock()));
    config.seed = 1;
    let engine = Engine::on(sim.engine(&runs), config);
    engine.compile(&plan.to_string(), std::path::Path::new(".")).unwrap_or_else(|error| {
        panic!("{error}\n{plan:#}");
    })
}

fn answer(world: &World, plan: &Value, asked: &RandomRequest, seed: u64) -> Result<Answer, Error> {
    let (sim, mut rng) = (Sim::new(seed), Rng::new(seed));
    let plan = compile(world, plan, &sim, &mut rng);
    let threshold = [None, Some(Duration::ZERO), Some(Duration::from_micros(1))][rng.within(0..3) as usize];
    let options =
        RunOptions { sequential: rng.percent(20), inline_threshold: threshold, ..RunOptions::default() };
    let answer = sim.block_on(plan.run_with(asked.request(plan.engine()), &options));
    let left = sim.settle();
    assert_eq!((left.tasks, left.jobs), (0, 0), "seed {seed}");
    answer
}

fn rows_of(answer: &Answer) -> Vec<Row> {
    answer.outputs.iter().flat_map(rows).collect()
}

fn rows(rows: &Rows) -> impl Iterator<Item = Row> + '_ {
    let cells = |row: usize| -> BTreeMap<u64, Cell> {
        let columns = rows.batch().columns().iter().filter(|(_, column)| !column.is_null(row));
        let cell = |column: &Column| match column {
            Column::Int(values) => Cell::Int(values.value(row)),
            Column::Float(values) => Cell::Float(values.value(row)),
            Column::Bool(values) => Cell::Bool(values.value(row)),
            Column::Text(text) => Cell::Text(text.get(row).unwrap().to_owned()),
        };
        columns.map(|(key, column)| (u64::from(key.0), cell(column))).collect()
    };
    rows.iter().map(move |row| (rows.batch().ids()[row], cells(row)))
}

fn written(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    answer.write_json(&world::registries().keys, &mut bytes);
    bytes
}
