//! One node on its own, planned and run, for the tests of ops: text out.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::Check;
use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use anabranch_rows::{Column, Key, Kind, Rows};
use anabranch_text::Problems;
use serde_json::{Value, json};

use crate::call::Call;
use crate::document::Document;
use crate::error::OpError;
use crate::expr::{Expr, Pred};
use crate::op::{
    Arg, Demand, Files, FilesFrom, Form, Inputs, Node, NodePlan, Op, Ops, ParamKind, ParamSpec, Sources,
    StartedWork, When,
};
use crate::registry::Registries;
use crate::schema::{KeySet, Schema};
use crate::source::{Bound, Data, Error, Fetch, Keys, Lists, Pattern, Read, ReadContext, Reply, Source};
use crate::value::{Scalar, Values};

pub(super) const SCORE: Key = Key(1001);
pub(super) const FINAL: Key = Key(2001);
pub(super) const COUNTRY: Key = Key(3001);
pub(super) const AGE: Key = Key(5001);
pub(super) const NEW: Key = Key(5002);
pub(super) const PARENT: Key = Key(5003);

const KEYS: &str = r#"
    key = [
        { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false, doc = "" },
        { key_id = 1001, name = "score", type = "float", nullable = true, doc = "" },
        { key_id = 2001, name = "final", type = "float", nullable = false, default = 0.25, doc = "" },
        { key_id = 3001, name = "country", type = "string", nullable = true, doc = "" },
        { key_id = 3002, name = "language", type = "string", nullable = false, default = "en", doc = "" },
        { key_id = 4001, name = "features", type = "feature_bundle", nullable = true, doc = "" },
        { key_id = 5001, name = "age", type = "int", nullable = true, doc = "" },
        { key_id = 5002, name = "new", type = "bool", nullable = true, doc = "" },
        { key_id = 5003, name = "parent", type = "int", nullable = true, doc = "" },
        { key_id = 6001, name = "secret", type = "float", nullable = true, allow_read = false, doc = "" },
        { key_id = 6002, name = "fixed", type = "float", nullable = true, allow_write = false, doc = "" },
        { key_id = 6003, name = "gone", type = "float", nullable = true, status = "blocked", replaced_by = 1001, doc = "" },
    ]
"#;

const PARAMS: &str = r#"
    param = [
        { param_id = 1, name = "weight", type = "float", nullable = true, doc = "" },
        { param_id = 2, name = "lane", type = "string", nullable = true, doc = "" },
    ]
"#;

const ENDPOINTS: &str = r#"
    version = 1
    [[endpoint]]
    endpoint_id = "ep_0001"
    name = "store"
    kind = "redis"
    resolver = { type = "static", host = "localhost", port = 6379 }
"#;

const VALIDATION: &str = r#"
    schema_version = 1
    [patterns]
    plan_name = "^[a-z]+$"
    node_id = "^[a-z]+$"
    [limits]
    max_fanout = 1000
    plan_schema_version = 1
    [enums]
    regex_flags = ["", "i"]
    cmp_operators = ["==", "!=", "<", "<=", ">", ">="]
"#;

pub(super) fn registries() -> Registries {
    let files = [
        ("keys.toml", KEYS),
        ("params.toml", PARAMS),
        ("endpoints.dev.toml", ENDPOINTS),
        ("validation.toml", VALIDATION),
    ];
    Registries::parse(files, None).unwrap_or_else(|problems| panic!("{problems}")).0
}

/// A node, with its inputs and its demand.
pub(super) struct Case {
    op: Arc<dyn Op>,
    params: Value,
    registries: Registries,
    document: Document,
    inputs: Vec<Rows>,
    demand: Demand,
    values: Values,
    store: Store,
}

/// A case for the op called `name`; everything is asked of it.
pub(super) fn case(name: &str, params: Value) -> Case {
    let registries = registries();
    Case {
        op: Arc::clone(Ops::builtin().get(name).unwrap()),
        params,
        document: Document {
            name: "test".to_owned(),
            nodes: Vec::new(),
            outputs: Vec::new(),
            output_names: Vec::new(),
            exprs: BTreeMap::new(),
            preds: BTreeMap::new(),
            capabilities: Vec::new(),
            extensions: Default::default(),
            deadline: None,
            node_timeout: None,
        },
        inputs: Vec::new(),
        demand: Demand { keys: registries.keys.iter().map(|entry| entry.key).collect(), rows: None },
        values: vec![None; 2].into(),
        registries,
        store: Store::default(),
    }
}

impl Case {
    pub(super) fn input(mut self, rows: &Rows) -> Case {
        self.inputs.push(rows.clone());
        self
    }

    pub(super) fn expr(mut self, json: &Value) -> Case {
        let mut problems = Problems::default();
        let expr = Expr::parse(json, "expr", &mut problems).unwrap_or_else(|| panic!("{problems}"));
        self.document.exprs.insert("e".to_owned(), expr);
        self
    }

    pub(super) fn pred(mut self, json: &Value) -> Case {
        let mut problems = Problems::default();
        let pred = Pred::parse(json, "pred", &mut problems).unwrap_or_else(|| panic!("{problems}"));
        self.document.preds.insert("p".to_owned(), pred);
        self
    }

    /// Only these columns are needed.
    pub(super) fn wanted(mut self, keys: &[Key]) -> Case {
        self.demand.keys = keys.iter().copied().collect::<KeySet>();
        self
    }

    /// Only the first rows are needed.
    pub(super) fn first(mut self, rows: u32) -> Case {
        self.demand.rows = Some(rows);
        self
    }

    pub(super) fn value(mut self, param: usize, value: Scalar) -> Case {
        self.values[param] = Some(value);
        self
    }

    pub(super) fn store(mut self, store: Store) -> Case {
        self.store = store;
        self
    }

    /// The node's errors, then its warnings.
    pub(super) fn problems(&self) -> String {
        let mut problems = Problems::default();
        let planned = self.plan(&mut problems);
        assert!(planned.is_some() || !problems.is_fine(), "no plan, and no reason");
        let odd = problems.warnings.iter().map(|problem| format!("warning: {problem}"));
        problems.errors.iter().map(ToString::to_string).chain(odd).collect::<Vec<_>>().join("\n")
    }

    fn plan(&self, problems: &mut Problems) -> Option<NodePlan> {
        let spec = self.op.spec();
        let schemas: Vec<Schema> = self.inputs.iter().map(schema_of).collect();
        let mut next_node = spec.inputs;
        let args: Vec<Option<Arg>> =
            spec.params.iter().map(|param| self.arg(param, &mut next_node)).collect();
        let given = self.params.as_object().unwrap().keys();
        given.for_each(|name| assert!(spec.params.iter().any(|param| param.name == name), "{name}?"));
        let mut node = Node {
            id: "n",
            spec,
            args: &args,
            inputs: schemas.iter().collect(),
            document: &self.document,
            files: &Files::new(FilesFrom::Folder { base: std::path::Path::new(""), allowed: &[] }),
            registries: &self.registries,
            problems,
        };
        self.op.plan(&mut node)
    }

    fn arg(&self, param: &ParamSpec, next_node: &mut usize) -> Option<Arg> {
        let json = self.params.get(param.name)?;
        Some(match param.kind {
            ParamKind::Int(..) => Arg::Value(Scalar::Int(json.as_i64().unwrap())),
            ParamKind::Float => Arg::Value(Scalar::Float(json.as_f64().unwrap())),
            ParamKind::Bool => Arg::Value(Scalar::Bool(json.as_bool().unwrap())),
            ParamKind::Text | ParamKind::Choice(_) => Arg::Value(Scalar::Text(json.as_str().unwrap().into())),
            ParamKind::Key => Arg::Key(Key(json.as_u64().unwrap() as u32)),
            ParamKind::SortKeys => {
                let one = std::slice::from_ref(json);
                let keys = json.as_array().map_or(one, Vec::as_slice).iter();
                Arg::SortKeys(keys.map(|key| (Key(key.as_u64().unwrap() as u32), None)).collect())
            }
            ParamKind::Node | ParamKind::Nodes => {
                *next_node += 1;
                Arg::Nodes(vec![*next_node - 1])
            }
            ParamKind::Endpoint(_) => Arg::Endpoint(0),
            ParamKind::Expr | ParamKind::Pred => Arg::Table(json.as_str().unwrap().to_owned()),
            ParamKind::Json => Arg::Json(json.clone()),
        })
    }

    /// The reads, then the rows or the error.
    pub(super) fn text(self) -> String {
        let reads = Arc::clone(&self.store.reads);
        let mut text = match self.rows() {
            Ok(rows) => show(&rows),
            Err(error) => format!("error: {error}"),
        };
        text.insert_str(0, &std::mem::take(&mut *reads.lock().unwrap()));
        text.trim_end().to_owned()
    }

    /// Runs the node and checks the promises of its op.
    pub(super) fn rows(self) -> Result<Rows, OpError> {
        let mut problems = Problems::default();
        let planned = self.plan(&mut problems);
        assert!(problems.is_fine(), "{problems}");
        let NodePlan { schema, takes, build, choice, .. } = planned.unwrap();
        assert_eq!(takes.len(), self.inputs.len());
        let clock = Arc::new(TestClock(Mutex::new(SystemClock.now())));
        let mut request = crate::request::Request::new(7, &self.registries);
        request.values.params = self.values;
        let call = Arc::new(Call::of(request, clock));
        let mut inputs: Inputs = self.inputs.iter().cloned().map(Some).collect();
        if let Some(choice) = &choice {
            let open = match &choice.when {
                When::Holds(when)
                    if !when.holds(when.on.and_then(|on| inputs[on].as_ref()), &call.params)? =>
                {
                    choice.or.expect("an `if` has two sides")
                }
                When::Holds(_) | When::InTime => choice.then,
            };
            let closed = |at: &usize| *at != open && Some(*at) != choice.on();
            (0..inputs.len()).filter(closed).for_each(|at| inputs[at] = None);
        }
        let sources: [Arc<dyn Source>; 1] = [Arc::new(self.store)];
        let form = build(&self.demand, &mut Sources::new(&sources, &[], &[], None));
        let rows = match form {
            Form::Compute(form) => form.run(&inputs, &call, &Check::never()),
            Form::Wait(form) => match form.start(inputs, &call) {
                StartedWork::Ready(rows) => rows,
                StartedWork::Later(rows) => futures_now(rows),
            },
        }?;
        let broken = self.op.spec().contract.broken_by(self.inputs.first(), &rows);
        assert_eq!(broken, None, "{}", self.op.spec().name);
        for (key, kind) in schema.iter().filter(|(key, _)| self.demand.keys.has(*key)) {
            assert_eq!(rows.batch().column(key).map(Column::kind), Some(kind), "key {key}");
        }
        Ok(rows)
    }
}

/// The output of a future that depends on nothing else.
fn futures_now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn schema_of(rows: &Rows) -> Schema {
    Schema::new(rows.batch().columns().iter().map(|(key, column)| (*key, column.kind())))
}

/// The active rows, one per line: the id and the values that are not null.
pub(super) fn show(rows: &Rows) -> String {
    let registries = registries();
    let mut text = String::new();
    for row in rows.iter() {
        write!(text, "{}", rows.batch().ids()[row]).unwrap();
        for (key, column) in rows.batch().columns() {
            if let Some(cell) = column.get(row) {
                write!(text, " {}={cell}", registries.keys.get(*key).unwrap().name).unwrap();
            }
        }
        text.push('\n');
    }
    text
}

/// A clock that has passed every deadline, and advances when it is read.
struct TestClock(Mutex<Instant>);

impl Clock for TestClock {
    fn now(&self) -> Instant {
        let mut now = self.0.lock().unwrap();
        *now += Duration::from_micros(100);
        *now
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        *self.0.lock().unwrap() = at;
        Box::pin(std::future::ready(()))
    }
}

/// A store in memory that records the reads.
#[derive(Clone, Default)]
pub(super) struct Store {
    entries: HashMap<String, Value>,
    reads: Arc<Mutex<String>>,
    /// Whether replies come after a wait.
    later: bool,
}

/// A store of hashes (objects), lists, and sorted sets (lists of pairs).
pub(super) fn store(entries: &[(&str, Value)]) -> Store {
    let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Store { entries, ..Store::default() }
}

impl Store {
    pub(super) fn later(mut self) -> Store {
        self.later = true;
        self
    }

    fn reply(&self, keys: &[Option<String>], read: &Read) -> Result<Reply, Error> {
        let value = |key: &Option<String>| key.as_ref().and_then(|key| self.entries.get(key)).cloned();
        let values: Vec<Value> = keys.iter().map(|key| value(key).unwrap_or(Value::Null)).collect();
        if let Some(at) = values.iter().position(|value| value == "broken") {
            let command = keys[at].clone().unwrap_or_default();
            return Err(Error::Refused { endpoint: "store".into(), command, message: "broken".to_owned() });
        }
        let data = match read {
            Read::Fields(fields) => {
                let column = |field: &crate::source::Field| {
                    let values = values.iter().map(|value| value.get(&*field.name));
                    match field.kind {
                        Kind::Int => Column::ints(values.map(|value| value?.as_i64())),
                        Kind::Float => Column::floats(values.map(|value| value?.as_f64())),
                        Kind::Bool => Column::bools(values.map(|value| value?.as_bool())),
                        Kind::Text => Column::texts(values.map(|value| value?.as_str())),
                    }
                };
                Data::Columns(fields.iter().map(column).collect())
            }
            Read::List { limit } | Read::Scored { limit } => Data::Lists(lists(&values, *limit as usize)),
        };
        Ok(Reply::whole(data, 1, keys.len() as u32))
    }
}

fn lists(values: &[Value], limit: usize) -> Lists {
    let mut lists = Lists { scores: Some(Vec::new()), ..Lists::default() };
    for list in values {
        let items = list.as_array().map_or(&[][..], |list| &list[..list.len().min(limit)]);
        lists.lens.push(items.len() as u32);
        for item in items {
            let pair = if item.is_array() { item.clone() } else { json!([item, 0.0]) };
            lists.ids.push(pair[0].as_i64().unwrap());
            lists.scores.as_mut().unwrap().push(pair[1].as_f64().unwrap());
        }
    }
    lists
}

struct StoreRead {
    store: Store,
    pattern: Pattern,
    read: Read,
}

impl Source for Store {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        Arc::new(StoreRead { store: self.clone(), pattern: pattern.clone(), read: read.clone() })
    }
}

impl Bound for StoreRead {
    fn fetch(&self, keys: Keys, _: ReadContext<'_>) -> Fetch {
        let keys: Vec<Option<String>> = match keys {
            Keys::Ids(ids) => {
                let (prefix, suffix) = self.pattern.affixes().unwrap();
                ids.iter().map(|id| Some(format!("{prefix}{id}{suffix}"))).collect()
            }
            Keys::Whole(keys) => keys.into_iter().map(|key| key.map(Into::into)).collect(),
        };
        let what = match &self.read {
            Read::Fields(fields) => fields.iter().map(|field| &*field.name).collect::<Vec<_>>().join(","),
            Read::List { limit } => format!("list to {limit}"),
            Read::Scored { limit } => format!("scored to {limit}"),
        };
        let names: Vec<&str> = keys.iter().map(|key| key.as_deref().unwrap_or("-")).collect();
        writeln!(self.store.reads.lock().unwrap(), "read {what} of {}", names.join(" ")).unwrap();
        let reply = self.store.reply(&keys, &self.read);
        match self.store.later {
            true => Fetch::Later(Box::pin(async { reply })),
            false => Fetch::Ready(reply),
        }
    }
}
