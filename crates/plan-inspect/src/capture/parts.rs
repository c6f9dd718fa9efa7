//! The small parts of a capture as canonical values: its contents, its request, and its outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_content::{Address, Value};
use anabranch_rows::{Batch, Column, Key, Rows};

use super::bytes::{ByteReader, ByteWriter};
use super::values::{give_data, take_data};
use anabranch_engine::Failure;
use anabranch_plan::Answer;
use anabranch_plan::LedgerEntry;
use anabranch_plan::bounds::Bounds;
use anabranch_plan::registry::{KeyKind, Keys, Shape};
use anabranch_plan::source::Data;
use anabranch_plan::{Error as PlanError, OpError};
use anabranch_plan::{List, Registries, Request, Scalar, UserId};
use anabranch_rows::Kind;

/// The version of all of these.
const VERSION: i64 = 1;

/// The reason why a part cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unreadable {
    /// It is of another version.
    Version(i64),
    /// Any other problem.
    Broken(String),
}

/// The parts of a capture, by address.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contents {
    pub(super) plan: Address,
    pub(super) env: Option<String>,
    pub(super) registries: BTreeMap<String, Address>,
    pub(super) files: BTreeMap<String, Address>,
    pub(super) request: Address,
    pub(super) replies: Address,
    pub(super) outcome: Address,
    pub(super) answer: Address,
    /// The bounds of the engine that answered. Older captures have none, and keep those of their registries.
    pub(super) bounds: Option<Bounds>,
    /// True if secrets were masked.
    pub(super) masked: bool,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The caller's id, or a generated one.
    pub request_id: Option<String>,
    /// The id of its run.
    pub engine_request_id: Option<String>,
    /// The ledger: the degraded parts of the response.
    pub ledger: Vec<LedgerEntry>,
    /// The reason why there is no answer.
    pub failure: Option<CapturedFailure>,
}

/// The reason why a captured request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CapturedFailure {
    /// The node that failed because of its inputs; `None` if time or load was the reason.
    pub node: Option<String>,
    /// The error message.
    pub text: String,
}

impl CapturedFailure {
    pub(super) fn new(error: &PlanError) -> CapturedFailure {
        let node = match error {
            PlanError::Node { node, failure, .. } => match **failure {
                Failure::Error(OpError::NoTime { .. } | OpError::Late(_)) => None,
                Failure::Error(_) | Failure::Panic(_) => Some(node.clone()),
                _ => None,
            },
            _ => None,
        };
        CapturedFailure { node, text: error.to_string() }
    }
}

impl Contents {
    pub(super) fn encode(&self) -> Vec<u8> {
        let addresses = |map: &BTreeMap<String, Address>| {
            Value::Map(map.iter().map(|(name, address)| (name.clone(), Value::Address(*address))).collect())
        };
        let bounds = self.bounds.map(|bounds| ("bounds", encode_bounds(bounds)));
        let parts = [
            ("plan", Value::Address(self.plan)),
            ("env", text_or_null(self.env.as_deref())),
            ("registries", addresses(&self.registries)),
            ("files", addresses(&self.files)),
            ("request", Value::Address(self.request)),
            ("replies", Value::Address(self.replies)),
            ("outcome", Value::Address(self.outcome)),
            ("answer", Value::Address(self.answer)),
            ("masked", Value::Bool(self.masked)),
        ];
        encode(parts.into_iter().chain(bounds))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Contents, Unreadable> {
        let mut map = Fields::decode(bytes)?;
        let contents = Contents {
            plan: map.address("plan")?,
            env: map.text_or_null("env")?,
            registries: map.addresses("registries")?,
            files: map.addresses("files")?,
            request: map.address("request")?,
            replies: map.address("replies")?,
            outcome: map.address("outcome")?,
            answer: map.address("answer")?,
            bounds: map.0.remove("bounds").map(decode_bounds).transpose()?,
            masked: map.bool("masked")?,
        };
        map.end().map(|()| contents)
    }
}

/// Encodes bounds. Bounds that exceed an integer are unlimited.
fn encode_bounds(bounds: Bounds) -> Value {
    let int = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    map_of([("rows", int(bounds.rows)), ("bytes", int(bounds.bytes))])
}

fn decode_bounds(value: Value) -> Result<Bounds, Unreadable> {
    let Value::Map(map) = value else { return Err(wrong("bounds")) };
    let mut map = Fields(map);
    let mut count = |name: &str| match map.take(name)? {
        Value::Int(count) => u64::try_from(count).map_err(|_| wrong("bounds")),
        _ => Err(wrong("bounds")),
    };
    let bounds = Bounds { rows: count("rows")?, bytes: count("bytes")? };
    map.end().map(|()| bounds)
}

impl Outcome {
    /// The outcome of a request. `ledger` is that of a failed one.
    pub(super) fn new(answer: &Result<Answer, PlanError>, ledger: Vec<LedgerEntry>) -> Outcome {
        match answer {
            Ok(answer) => Outcome {
                request_id: Some(answer.request_id.to_string()),
                engine_request_id: Some(answer.engine_request_id.to_string()),
                ledger: answer.ledger.clone(),
                failure: None,
            },
            Err(error) => {
                Outcome { ledger, failure: Some(CapturedFailure::new(error)), ..Outcome::default() }
            }
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let ledger = serde_json::to_string(&self.ledger).expect("a ledger is JSON");
        let failure = match &self.failure {
            None => Value::Null,
            Some(CapturedFailure { node, text }) => {
                map_of([("node", text_or_null(node.as_deref())), ("text", Value::Text(text.clone()))])
            }
        };
        encode([
            ("request_id", text_or_null(self.request_id.as_deref())),
            ("engine_request_id", text_or_null(self.engine_request_id.as_deref())),
            ("ledger", Value::Text(ledger)),
            ("failure", failure),
        ])
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Outcome, Unreadable> {
        let mut map = Fields::decode(bytes)?;
        let (request_id, engine_request_id) =
            (map.text_or_null("request_id")?, map.text_or_null("engine_request_id")?);
        let ledger = serde_json::from_str(&map.text("ledger")?)
            .map_err(|error| Unreadable::Broken(format!("its ledger: {error}")))?;
        let failure = match map.take("failure")? {
            Value::Null => None,
            Value::Map(failure) => {
                let mut failure = Fields(failure);
                let failed =
                    CapturedFailure { node: failure.text_or_null("node")?, text: failure.text("text")? };
                failure.end()?;
                Some(failed)
            }
            _ => return Err(wrong("failure")),
        };
        map.end().map(|()| Outcome { request_id, engine_request_id, ledger, failure })
    }
}

/// Encodes a request. Parameters are stored by name, including nulls. A missing parameter did not exist at that time.
pub(super) fn encode_request(request: &Request, registries: &Registries) -> Vec<u8> {
    let set = registries.params.iter().zip(request.params()).map(|(entry, value)| {
        let value = match (request.params().list(entry.index), value) {
            (Some(list), _) => Value::List(list.items().map(|item| encode_scalar(&item)).collect()),
            (None, Some(value)) => encode_scalar(value),
            (None, None) => Value::Null,
        };
        (entry.name.clone(), value)
    });
    let user = match request.user_id().as_int() {
        Some(id) => Value::Int(id),
        None => Value::Text(request.user_id().to_string()),
    };
    let mut fields = vec![
        ("user_id", user),
        ("request_id", text_or_null(request.request_id.as_deref())),
        ("plan", text_or_null(request.plan.as_deref())),
        ("params", Value::Map(set.collect())),
    ];
    fields.extend(request.candidates().map(|rows| ("candidates", candidates(rows, &registries.keys))));
    // A plan that reads the time is replayed at the same time.
    fields.extend(request.params().known_now().map(|now| ("now", Value::Float(now))));
    encode(fields)
}

fn encode_scalar(value: &Scalar) -> Value {
    match value {
        Scalar::Int(value) => Value::Int(*value),
        Scalar::Float(value) => Value::Float(*value),
        Scalar::Bool(value) => Value::Bool(*value),
        Scalar::Text(value) => Value::Text(value.to_string()),
    }
}

/// A list of one kind of values; `None` if it is not one.
fn decode_list(values: &[Value], kind: Kind) -> Option<List> {
    let int = |value: &Value| if let Value::Int(value) = value { Some(*value) } else { None };
    let text =
        |value: &Value| if let Value::Text(value) = value { Some(value.as_str().into()) } else { None };
    match kind {
        Kind::Text => Some(List::texts(values.iter().map(text).collect::<Option<Vec<_>>>()?)),
        _ => Some(List::ints(values.iter().map(int).collect::<Option<Vec<_>>>()?)),
    }
}

/// The request. So that other plans may be asked, parameters that these registries do not have are left out, and those
/// that it does not have keep their defaults.
pub(super) fn decode_request(bytes: &[u8], registries: &Registries) -> Result<Request, Unreadable> {
    let mut map = Fields::decode(bytes)?;
    let user = user(map.take("user_id")?).ok_or_else(|| wrong("user_id"))?;
    let mut request = Request::new(user, registries);
    // Captures had no candidates before requests did.
    if let Some(Value::Map(columns)) = map.0.remove("candidates") {
        let rows = rows(&columns, &registries.keys).ok_or_else(|| wrong("candidates"))?;
        request.set_candidates(rows, registries).map_err(|error| Unreadable::Broken(error.detail))?;
    }
    request.request_id = map.text_or_null("request_id")?;
    request.plan = map.text_or_null("plan")?;
    let Value::Map(params) = map.take("params")? else { return Err(wrong("params")) };
    let mut set = request.params().clone();
    match map.0.remove("now") {
        None => {}
        Some(Value::Float(now)) => set.set_now(now),
        Some(_) => return Err(wrong("now")),
    }
    map.end()?;
    for entry in registries.params.iter() {
        if entry.shape == Shape::List {
            let list = match params.get(&entry.name) {
                None | Some(Value::Null) => continue,
                Some(Value::List(values)) => decode_list(values, entry.kind),
                Some(_) => None,
            };
            let no_list =
                || Unreadable::Broken(format!("its parameter `{}` is no {}", entry.name, entry.type_name()));
            set.set_list(entry.index, Some(Arc::new(list.ok_or_else(no_list)?)));
            continue;
        }
        let value = match params.get(&entry.name) {
            None => continue,
            Some(Value::Null) => None,
            Some(Value::Int(value)) => Some(Scalar::Int(*value)),
            Some(Value::Float(value)) => Some(Scalar::Float(*value)),
            Some(Value::Bool(value)) => Some(Scalar::Bool(*value)),
            Some(Value::Text(value)) => Some(Scalar::Text(value.as_str().into())),
            Some(_) => return Err(wrong("params")),
        };
        if value.as_ref().is_some_and(|value| value.kind() != entry.kind) {
            return Err(Unreadable::Broken(format!("its parameter `{}` is no {}", entry.name, entry.kind)));
        }
        set[entry.index] = value;
    }
    request.restore_params(set, registries).map_err(|error| Unreadable::Broken(error.detail))?;
    Ok(request)
}

/// The user of a request.
pub(super) fn user_of(bytes: &[u8]) -> Option<UserId> {
    user(Fields::decode(bytes).ok()?.take("user_id").ok()?)
}

fn user(value: Value) -> Option<UserId> {
    match value {
        Value::Int(id) => Some(id.into()),
        Value::Text(name) => Some(name.as_str().into()),
        _ => None,
    }
}

/// Candidates: their columns by the names of the keys, the ids among them.
fn candidates(rows: &Rows, keys: &Keys) -> Value {
    let rows = rows.compact();
    let named = |key: Key| keys.get(key).map(|entry| entry.name.clone());
    let columns = rows.batch().columns().iter();
    let columns = columns.filter_map(|(key, column)| Some((named(*key)?, bytes_of(column.clone()))));
    let ids = Column::ints(rows.ids().map(Some));
    Value::Map(columns.chain([(ID.to_owned(), bytes_of(ids))]).collect())
}

/// The name of the ids; the key of this name stands for the ids.
const ID: &str = "id";

fn bytes_of(column: Column) -> Value {
    let mut to = ByteWriter::default();
    give_data(&Data::Columns(vec![column]), &mut to);
    Value::Bytes(to.0.into())
}

/// Candidates with those columns that are registered, and still of their kind.
fn rows(columns: &BTreeMap<String, Value>, keys: &Keys) -> Option<Rows> {
    let mut ids = None;
    let mut found = Vec::new();
    for (name, value) in columns {
        let Value::Bytes(bytes) = value else { return None };
        let mut from = ByteReader(bytes);
        let Data::Columns(columns) = take_data(&mut from)? else { return None };
        let column = columns.into_iter().next()?;
        if name == ID {
            ids = Some(column.as_int()?.values().clone());
        } else if let Some(entry) = keys.named(name).filter(|it| it.kind == KeyKind::Column(column.kind())) {
            found.push((entry.key, column));
        }
    }
    let ids = ids?;
    found
        .iter()
        .all(|(_, column)| column.len() == ids.len())
        .then(|| Rows::new(Batch::with_columns(ids, found)))
}

fn text_or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

fn map_of<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn encode<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Vec<u8> {
    let Value::Map(mut map) = map_of(fields) else { unreachable!("it was made a map") };
    map.insert("version".to_owned(), Value::Int(VERSION));
    Value::Map(map).encode().expect("it is three maps deep at most")
}

fn wrong(name: &str) -> Unreadable {
    Unreadable::Broken(format!("its `{name}` is missing or something else"))
}

/// The fields of a map, taken one by one.
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn decode(bytes: &[u8]) -> Result<Fields, Unreadable> {
        let value = Value::decode(bytes).map_err(|error| Unreadable::Broken(error.to_string()))?;
        let Value::Map(map) = value else { return Err(Unreadable::Broken("it is no map".to_owned())) };
        let mut fields = Fields(map);
        match fields.take("version")? {
            Value::Int(VERSION) => Ok(fields),
            Value::Int(version) => Err(Unreadable::Version(version)),
            _ => Err(wrong("version")),
        }
    }

    fn take(&mut self, name: &str) -> Result<Value, Unreadable> {
        self.0.remove(name).ok_or_else(|| wrong(name))
    }

    fn address(&mut self, name: &str) -> Result<Address, Unreadable> {
        match self.take(name)? {
            Value::Address(address) => Ok(address),
            _ => Err(wrong(name)),
        }
    }

    fn addresses(&mut self, name: &str) -> Result<BTreeMap<String, Address>, Unreadable> {
        let Value::Map(map) = self.take(name)? else { return Err(wrong(name)) };
        let address = |(file, value)| match value {
            Value::Address(address) => Ok((file, address)),
            _ => Err(wrong(name)),
        };
        map.into_iter().map(address).collect()
    }

    fn bool(&mut self, name: &str) -> Result<bool, Unreadable> {
        match self.take(name)? {
            Value::Bool(value) => Ok(value),
            _ => Err(wrong(name)),
        }
    }

    fn text(&mut self, name: &str) -> Result<String, Unreadable> {
        self.text_or_null(name)?.ok_or_else(|| wrong(name))
    }

    fn text_or_null(&mut self, name: &str) -> Result<Option<String>, Unreadable> {
        match self.take(name)? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            _ => Err(wrong(name)),
        }
    }

    fn end(self) -> Result<(), Unreadable> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Unreadable::Broken(format!("nobody knows its `{name}`"))),
        }
    }
}
