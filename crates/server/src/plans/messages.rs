//! Plan requests and responses as gRPC messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_plan::registry::{KeyKind, Keys};
use anabranch_plan::{Answer, Kind, LedgerEntry, List, Registries, Request, Scalar};
use anabranch_rows::{Batch, Cell, Column, Key, Rows};
use anabranch_text::{Problems, quote};
use bytes::Bytes;
use prost::Message as _;
use serde_json::{Map, Value, json};
use tonic::Code;

use super::PlanFailure;
use super::detail::REQUEST_MOST;
use super::run::PlanAnswer;
use crate::failure::Failure;
use crate::proto::plans as proto;

fn bad(message: impl Into<String>) -> PlanFailure {
    Failure::new(Code::InvalidArgument, message).into()
}

/// The request of a message. It is checked like a request in JSON.
pub(super) fn request(message: &proto::RunRequest, registries: &Registries) -> Result<Request, PlanFailure> {
    let user = match &message.user {
        Some(proto::run_request::User::UserId(id)) => id.to_string(),
        Some(proto::run_request::User::UserName(name)) => {
            serde_json::to_string(name).expect("a string is JSON")
        }
        None => return Err(bad("Invalid request: `user_id` is missing")),
    };
    let mut request = Request::parse(format!("{{\"user_id\":{user}}}"), registries)?;
    if !message.request_id.is_empty() {
        request.request_id = Some(message.request_id.clone());
    }
    for (name, value) in &message.params {
        use proto::value::Kind as WireKind;
        let kind = value.kind.as_ref();
        let kind = kind.ok_or_else(|| bad(format!("the parameter {} has no value", quote(name))))?;
        match kind {
            WireKind::Int(value) => request.set(name, Some(Scalar::Int(*value)), registries)?,
            WireKind::Float(value) => request.set(name, Some(Scalar::Float(*value)), registries)?,
            WireKind::Bool(value) => request.set(name, Some(Scalar::Bool(*value)), registries)?,
            WireKind::Text(value) => {
                request.set(name, Some(Scalar::Text(value.as_str().into())), registries)?;
            }
            WireKind::Ints(list) => {
                request.set_list(name, Some(List::ints(list.values.clone())), registries)?;
            }
            WireKind::Texts(list) => {
                let texts: Vec<Arc<str>> = list.values.iter().map(|text| Arc::from(text.as_str())).collect();
                request.set_list(name, Some(List::texts(texts)), registries)?;
            }
            WireKind::Null(_) => request.set(name, None, registries)?,
        }
    }
    if let Some(rows) = &message.candidates {
        request.set_candidates(candidates(rows, &registries.keys)?, registries)?;
    }
    Ok(request)
}

/// The request of a message as JSON, as it would be sent over HTTP. It is empty if it is too large to be kept.
pub(super) fn text(message: &proto::RunRequest) -> Bytes {
    if message.encoded_len() > REQUEST_MOST {
        return Bytes::new();
    }
    let mut shown = Map::new();
    match &message.user {
        Some(proto::run_request::User::UserId(id)) => drop(shown.insert("user_id".to_owned(), json!(id))),
        Some(proto::run_request::User::UserName(name)) => {
            shown.insert("user_id".to_owned(), json!(name));
        }
        None => {}
    }
    if !message.request_id.is_empty() {
        shown.insert("request_id".to_owned(), json!(message.request_id));
    }
    if !message.params.is_empty() {
        let params: Map<String, Value> =
            message.params.iter().map(|(name, value)| (name.clone(), shown_value(value))).collect();
        shown.insert("param_overrides".to_owned(), params.into());
    }
    if let Some(rows) = &message.candidates {
        let row = |(row, id): (usize, &i64)| {
            let mut fields = Map::new();
            fields.insert("id".to_owned(), json!(id));
            let cells =
                rows.columns.iter().filter_map(|column| Some((&column.name, shown_cell(column, row)?)));
            fields.extend(cells.map(|(name, value)| (name.clone(), value)));
            if rows.columns.is_empty() { json!(id) } else { fields.into() }
        };
        shown.insert("candidates".to_owned(), rows.ids.iter().enumerate().map(row).collect());
    }
    Value::from(shown).to_string().into()
}

fn shown_value(value: &proto::Value) -> Value {
    use proto::value::Kind as WireKind;
    match &value.kind {
        Some(WireKind::Int(value)) => json!(value),
        Some(WireKind::Float(value)) => json!(value),
        Some(WireKind::Bool(value)) => json!(value),
        Some(WireKind::Text(value)) => json!(value),
        Some(WireKind::Ints(list)) => json!(list.values),
        Some(WireKind::Texts(list)) => json!(list.values),
        Some(WireKind::Null(_)) | None => Value::Null,
    }
}

/// A cell of a column; `None` if it is null.
fn shown_cell(column: &proto::Column, row: usize) -> Option<Value> {
    use proto::column::Values;
    if !column.present.get(row).copied().unwrap_or(true) {
        return None;
    }
    match column.values.as_ref()? {
        Values::Ints(ints) => ints.values.get(row).map(|value| json!(value)),
        Values::Floats(floats) => floats.values.get(row).map(|value| json!(value)),
        Values::Bools(bools) => bools.values.get(row).map(|value| json!(value)),
        Values::Texts(texts) => texts.values.get(row).map(|value| json!(value)),
    }
}

fn candidates(rows: &proto::Rows, keys: &Keys) -> Result<Rows, PlanFailure> {
    let mut columns: Vec<(Key, Column)> = Vec::with_capacity(rows.columns.len());
    for column in &rows.columns {
        let shown = quote(&column.name);
        let Some(entry) = keys.named(&column.name) else {
            let help =
                Problems::default().did_you_mean(&column.name, keys.iter().map(|key| key.name.as_str()));
            let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
            return Err(bad(format!("candidates: there is no key {shown}{help}")));
        };
        if entry.key == Key::ID || columns.iter().any(|(other, _)| *other == entry.key) {
            return Err(bad(format!("candidates: the column {shown} is there twice")));
        }
        let made = made_column(column, entry.kind == KeyKind::Column(Kind::Float));
        let made = made.ok_or_else(|| bad(format!("candidates: the column {shown} has no values")))?;
        let fits = made.len() == rows.ids.len()
            && (column.present.is_empty() || column.present.len() == rows.ids.len());
        if !fits {
            let (found, count) = (made.len(), rows.ids.len());
            let message = format!("candidates: the column {shown} has {found} values for {count} ids");
            return Err(bad(message));
        }
        columns.push((entry.key, made));
    }
    Ok(Rows::new(Batch::with_columns(rows.ids.clone(), columns)))
}

/// A column of a message. Integers become floats if the key has floats.
fn made_column(column: &proto::Column, is_float: bool) -> Option<Column> {
    use proto::column::Values;
    let present = |row: usize| column.present.get(row).copied().unwrap_or(true);
    Some(match column.values.as_ref()? {
        Values::Ints(ints) if is_float => {
            let floats = ints.values.iter().enumerate();
            Column::floats(floats.map(|(row, value)| present(row).then_some(*value as f64)))
        }
        Values::Ints(ints) => {
            Column::ints(ints.values.iter().enumerate().map(|(row, value)| present(row).then_some(*value)))
        }
        Values::Floats(floats) => Column::floats(
            floats.values.iter().enumerate().map(|(row, value)| present(row).then_some(*value)),
        ),
        Values::Bools(bools) => {
            Column::bools(bools.values.iter().enumerate().map(|(row, value)| present(row).then_some(*value)))
        }
        Values::Texts(texts) => {
            Column::texts(texts.values.iter().enumerate().map(|(row, value)| present(row).then_some(value)))
        }
    })
}

/// The message of a response.
pub(super) fn response(answered: &PlanAnswer, form: proto::Form, keys: &Keys) -> proto::RunResponse {
    let answer = &answered.answer;
    let (candidates, outputs) = match form {
        proto::Form::Rows => (rows(answer, keys), Vec::new()),
        proto::Form::Columns => (Vec::new(), outputs(answer, keys)),
    };
    proto::RunResponse {
        request_id: answer.request_id.to_string(),
        engine_request_id: answer.engine_request_id.to_string(),
        candidates,
        outputs,
        ledger: answer.ledger.iter().map(ledger_entry).collect(),
        version: answered.version.id.clone(),
        run_id: answered.kept.map(|run| run.to_string()).unwrap_or_default(),
    }
}

fn name(key: Key, keys: &Keys) -> String {
    keys.get(key).map_or_else(|| key.to_string(), |entry| entry.name.clone())
}

fn rows(answer: &Answer, keys: &Keys) -> Vec<proto::Candidate> {
    let mut candidates = Vec::new();
    for (output, rows) in answer.output_names.iter().zip(&answer.outputs) {
        let batch = rows.batch();
        let named: Vec<(String, &Column)> =
            batch.columns().iter().map(|(key, column)| (name(*key, keys), column)).collect();
        for row in rows.iter() {
            let field = |(name, column): &(String, &Column)| Some((name.clone(), value(column.get(row)?)));
            let fields: BTreeMap<String, proto::Value> = named.iter().filter_map(field).collect();
            candidates.push(proto::Candidate { id: batch.ids()[row], output: output.clone(), fields });
        }
    }
    candidates
}

fn value(cell: Cell<'_>) -> proto::Value {
    use proto::value::Kind as WireKind;
    let kind = match cell {
        Cell::Int(value) => WireKind::Int(value),
        Cell::Float(value) => WireKind::Float(value),
        Cell::Bool(value) => WireKind::Bool(value),
        Cell::Text(value) => WireKind::Text(value.to_owned()),
    };
    proto::Value { kind: Some(kind) }
}

fn outputs(answer: &Answer, keys: &Keys) -> Vec<proto::Output> {
    let output = |(name, rows): (&String, &Rows)| {
        let rows = rows.compact();
        let batch = rows.batch();
        let column = |(key, column): &(Key, Column)| sent_column(self::name(*key, keys), column, rows.len());
        let columns = batch.columns().iter().map(column).collect();
        let rows = proto::Rows { ids: batch.ids().to_vec(), columns };
        proto::Output { name: name.clone(), rows: Some(rows) }
    };
    answer.output_names.iter().zip(&answer.outputs).map(output).collect()
}

fn sent_column(name: String, column: &Column, count: usize) -> proto::Column {
    use proto::column::Values;
    let values = match column {
        Column::Int(array) => Values::Ints(proto::Ints {
            values: (0..count).map(|row| if column.is_null(row) { 0 } else { array.value(row) }).collect(),
        }),
        Column::Float(array) => Values::Floats(proto::Floats {
            values: (0..count).map(|row| if column.is_null(row) { 0.0 } else { array.value(row) }).collect(),
        }),
        Column::Bool(array) => Values::Bools(proto::Bools {
            values: (0..count).map(|row| !column.is_null(row) && array.value(row)).collect(),
        }),
        Column::Text(text) => Values::Texts(proto::Texts {
            values: (0..count).map(|row| text.get(row).unwrap_or_default().to_owned()).collect(),
        }),
    };
    let has_nulls = (0..count).any(|row| column.is_null(row));
    let present = if has_nulls { (0..count).map(|row| !column.is_null(row)).collect() } else { Vec::new() };
    proto::Column { name, values: Some(values), present }
}

fn ledger_entry(entry: &LedgerEntry) -> proto::LedgerEntry {
    let us = |duration: std::time::Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    proto::LedgerEntry {
        node: entry.node.clone(),
        region: entry.region.clone().unwrap_or_default(),
        reason: entry.reason.to_string(),
        detail: entry.detail.clone().unwrap_or_default(),
        fallback: entry.fallback.clone(),
        waited_us: us(entry.waited),
        age_us: entry.age.map(us),
        rows: entry.rows as u64,
        known_keys: entry.known_keys,
        asked_keys: entry.asked_keys,
    }
}
