//! Ops over rows that a test makes up, through a whole engine.
//!
//! `test::given` gives no column and no row that it was not asked for, so that an op that reads more than it says is
//! found out; `test::only` asks for some columns only.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use anabranch_plan::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded, Spec, Takes,
};
use anabranch_plan::schema::{KeySet, Schema};
use anabranch_plan::{Config, Engine, Error, Registries, Request};
use anabranch_rows::{Batch, Cell, Column, Dictionary, Key, Rows, Text};
use arrow_array::Int32Array;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) const INT: Key = Key(10);
pub(crate) const FLOAT: Key = Key(11);
pub(crate) const BOOL: Key = Key(12);
pub(crate) const TEXT: Key = Key(13);
pub(crate) const OTHER_INT: Key = Key(20);
pub(crate) const OTHER_TEXT: Key = Key(23);
pub(crate) const SCORE: Key = Key(30);

const KEYS: &str = r#"
key = [
    { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
    { key_id = 10, name = "views", type = "int", nullable = true },
    { key_id = 11, name = "rank", type = "float", nullable = true },
    { key_id = 12, name = "fresh", type = "bool", nullable = true },
    { key_id = 13, name = "country", type = "string", nullable = true },
    { key_id = 20, name = "other_views", type = "int", nullable = true },
    { key_id = 23, name = "other_country", type = "string", nullable = true },
    { key_id = 30, name = "score", type = "float", nullable = true },
    { key_id = 31, name = "sure_score", type = "float", nullable = false, default = 0.0 },
    { key_id = 40, name = "age", type = "float", nullable = true },
    { key_id = 41, name = "price", type = "float", nullable = true },
    { key_id = 42, name = "clicks", type = "float", nullable = true },
    { key_id = 43, name = "segment", type = "float", nullable = true },
    { key_id = 50, name = "secret", type = "int", nullable = true, allow_read = false },
]
"#;

static ROWS: LazyLock<Mutex<HashMap<i64, Rows>>> = LazyLock::new(Mutex::default);
static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let (registries, _) = Registries::parse([("keys.toml", KEYS)], None).unwrap();
    let mut config = Config::new(registries, Vec::new());
    config.ops.add(GivenOp);
    config.ops.add(Only);
    Engine::load(config).unwrap()
});

struct GivenOp;

static GIVEN: Spec = Spec {
    name: "test::given",
    doc: "Rows that the test made up.",
    inputs: 0,
    params: &[ParamSpec::required("rows", ParamKind::Int(0, i64::MAX), "which")],
    writes: Effect::Unknown,
    contract: Contract::Any,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for GivenOp {
    fn spec(&self) -> &Spec {
        &GIVEN
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let rows = ROWS.lock().unwrap()[&node.int("rows")?].clone();
        let schema = Schema::new(rows.batch().columns().iter().map(|(key, column)| (*key, column.kind())));
        Some(NodePlan::new(schema, [], move |demand: &Demand, _| {
            let rows =
                restricted(&rows, &demand.keys).first(demand.rows.map_or(usize::MAX, |rows| rows as usize));
            Form::compute(0.0, move |_, _, _| Ok(rows.clone()))
        }))
    }
}

struct Only;

static ONLY: Spec = Spec {
    name: "test::only",
    doc: "Asks for some columns only.",
    inputs: 1,
    params: &[ParamSpec::required("keys", ParamKind::Json, "their numbers")],
    writes: Effect::Keys(&[]),
    contract: Contract::Any,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for Only {
    fn spec(&self) -> &Spec {
        &ONLY
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let keys = node.json("keys")?.as_array()?.iter().map(|key| Key(key.as_u64().unwrap() as u32));
        let keys: KeySet = keys.filter(|key| node.input(0).kind(*key).is_some()).collect();
        let schema = Schema::new(keys.iter().map(|key| (key, node.input(0).kind(key).unwrap())));
        let takes = Takes::reading(keys.iter()).rows(RowsNeeded::AsAsked);
        Some(NodePlan::new(schema, [takes], move |_, _| {
            Form::compute(0.0, move |inputs, _, _| Ok(restricted(inputs[0].as_ref().unwrap(), &keys)))
        }))
    }
}

fn restricted(rows: &Rows, keys: &KeySet) -> Rows {
    let columns = rows.batch().columns().iter().filter(|(key, _)| keys.has(*key)).cloned();
    rows.with_batch(Batch::with_columns(rows.batch().ids().clone(), columns.collect()))
}

/// A plan of one node over `inputs`: the first is its input, the others are the nodes `with`, `with_1`, ...
pub(crate) struct Case {
    plan: Value,
    numbers: Vec<i64>,
}

impl Case {
    pub(crate) fn new(op: &str, params: &Value, inputs: &[&Rows]) -> Case {
        let mut nodes = Vec::new();
        let mut numbers = Vec::new();
        for (at, rows) in inputs.iter().enumerate() {
            let mut all = ROWS.lock().unwrap();
            let number = all.keys().max().map_or(0, |last| last + 1);
            all.insert(number, (*rows).clone());
            numbers.push(number);
            let id = ["input", "with", "with_1", "with_2"][at];
            nodes.push(json!({"node_id": id, "op": "test::given", "inputs": [], "params": {"rows": number}}));
        }
        nodes.push(json!({"node_id": "it", "op": op, "inputs": ["input"], "params": params}));
        let plan = json!({"schema_version": 1, "plan_name": "case", "nodes": nodes, "outputs": ["it"]});
        Case { plan, numbers }
    }

    fn then(mut self, id: &str, op: &str, params: &Value) -> Case {
        let before = self.plan["outputs"][0].clone();
        let node = json!({"node_id": id, "op": op, "inputs": [before], "params": params});
        self.plan["nodes"].as_array_mut().unwrap().push(node);
        self.plan["outputs"] = json!([id]);
        self
    }

    /// Only these columns of what comes out.
    pub(crate) fn only(self, keys: &[Key]) -> Case {
        let keys: Vec<u32> = keys.iter().map(|key| key.0).collect();
        self.then("only", "test::only", &json!({"keys": keys}))
    }

    /// Only the first rows of what comes out.
    pub(crate) fn take(self, count: usize) -> Case {
        self.then("take", "core::take", &json!({"count": count}))
    }

    pub(crate) fn run_in(&self, base: &Path) -> Result<Rows, Error> {
        static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
        });
        let plan = ENGINE.compile(&self.plan.to_string(), base)?;
        let request = Request::new(1, ENGINE.registries());
        let mut answer = RUNTIME.block_on(plan.run(request))?;
        Ok(answer.outputs.remove(0))
    }

    pub(crate) fn run(&self) -> Rows {
        self.run_in(Path::new(".")).unwrap()
    }

    /// The errors of the plan, or of its answer.
    pub(crate) fn error(&self) -> String {
        self.run_in(Path::new(".")).unwrap_err().to_string()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let mut all = ROWS.lock().unwrap();
        self.numbers.iter().for_each(|number| _ = all.remove(number));
    }
}

/// A value on its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plain {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
}

pub(crate) fn value(rows: &Rows, key: Key, row: usize) -> Option<Plain> {
    if key == Key::ID {
        return Some(Plain::Int(rows.batch().ids()[row]));
    }
    rows.batch().column(key).and_then(|column| column.get(row)).map(|cell| match cell {
        Cell::Int(value) => Plain::Int(value),
        Cell::Float(value) => Plain::Float(value),
        Cell::Bool(value) => Plain::Bool(value),
        Cell::Text(value) => Plain::Text(value.to_owned()),
    })
}

/// A row: its id and its columns that are not null, by key.
pub(crate) type PlainRow = (i64, Vec<(Key, Plain)>);

pub(crate) fn plain(rows: &Rows) -> Vec<PlainRow> {
    let row = |row: usize| {
        let columns = rows.batch().columns().iter().map(|(key, _)| *key);
        let values = columns.filter_map(|key| Some((key, value(rows, key, row)?))).collect();
        (rows.batch().ids()[row], values)
    };
    rows.iter().map(row).collect()
}

/// The same rows with only these columns.
pub(crate) fn keeping(rows: Vec<PlainRow>, keys: &[Key]) -> Vec<PlainRow> {
    let kept = |values: Vec<(Key, Plain)>| values.into_iter().filter(|(key, _)| keys.contains(key)).collect();
    rows.into_iter().map(|(id, values)| (id, kept(values))).collect()
}

/// Rows with all four columns, few distinct values, nulls, and any active list.
pub(crate) fn rows() -> impl Strategy<Value = Rows> {
    (0..=24usize).prop_flat_map(|len| {
        let null = 0.8;
        let floats = prop_oneof![Just(-0.0), Just(0.0), (-2..3i32).prop_map(|value| f64::from(value) / 2.0)];
        let active = (Just((0..len as u32).collect::<Vec<_>>()).prop_shuffle(), 0..=len);
        (
            vec(-4..8i64, len),
            vec(proptest::option::weighted(null, -3..4i64), len),
            vec(proptest::option::weighted(null, floats), len),
            vec(proptest::option::weighted(null, any::<bool>()), len),
            texts(len),
            any::<bool>(),
            active,
        )
            .prop_map(|(ids, ints, floats, bools, text, all, (mut active, count))| {
                let columns = vec![
                    (INT, Column::ints(ints)),
                    (FLOAT, Column::floats(floats)),
                    (BOOL, Column::bools(bools)),
                    (TEXT, text),
                ];
                let rows = Rows::new(Batch::with_columns(ids, columns));
                active.truncate(count);
                if all { rows } else { rows.with_active(active) }
            })
    })
}

/// Strings of a dictionary with repeated and unused entries.
fn texts(len: usize) -> impl Strategy<Value = Column> {
    let entry = prop_oneof![Just(""), Just("US"), Just("CA"), Just("GB"), Just("us")];
    vec(entry, 1..7).prop_flat_map(move |entries| {
        vec(proptest::option::weighted(0.8, 0..entries.len() as i32), len).prop_map(move |codes| {
            let codes: Int32Array = codes.into_iter().collect();
            Column::Text(Text::new(codes, Dictionary::new(&entries)))
        })
    })
}

/// A key that rows have, ids included.
pub(crate) fn key() -> impl Strategy<Value = Key> {
    prop::sample::select(vec![Key::ID, INT, FLOAT, BOOL, TEXT])
}

/// Some of the columns.
pub(crate) fn keys() -> impl Strategy<Value = Vec<Key>> {
    prop::sample::subsequence(vec![INT, FLOAT, BOOL, TEXT, OTHER_INT, OTHER_TEXT], 0..=6)
}
