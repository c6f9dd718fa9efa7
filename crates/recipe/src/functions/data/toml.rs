//! Functions of TOML.

use anabranch_text::position;
use bytes::Bytes;
use serde_json::{Map, Number, Value as Json};
use toml::{Table, Value as Toml};

use super::json::{changed, keyed};
use super::toml_memory::memory_of;
use super::{compact, parsed};
use crate::budget::CallBudget;
use crate::function::Fault;
use crate::functions::kernels::signature;
use crate::functions::output::OutputLimit;
use crate::functions::text::text;
use crate::registry::Functions;
use crate::whole::whole;

/// The usual memory of a document, per byte of text.
pub(super) const USUAL: u64 = 75;

pub(super) fn add(functions: &mut Functions) {
    let without_dates = signature(
        "toml_to_json/1.0.0",
        "The TOML as JSON without white space, keys in byte order. Dates and times are refused (version \
         2.0.0 accepts them), and so are `nan` and `inf`.",
    );
    functions.add(whole(without_dates.claims(USUAL).nanos_per_kib(80_000), |_| {
        changed(|input, budget| compact(&read(input, Dates::Refused, budget)?, budget))
    }));
    let with_dates = signature(
        "toml_to_json/2.0.0",
        "The TOML as JSON without white space, keys in byte order. Dates and times are texts in the format \
         of RFC 3339. `nan` and `inf` are refused.",
    );
    functions.add(whole(with_dates.claims(USUAL).nanos_per_kib(80_000), |_| {
        changed(|input, budget| compact(&read(input, Dates::Text, budget)?, budget))
    }));
    let to_toml = signature(
        "json_to_toml/1.0.0",
        "The JSON object as TOML, with tables after values. Null and integers beyond 64 signed bits are \
         refused.",
    )
    .bounds_held_output();
    functions.add(whole(keyed(to_toml).nanos_per_kib(35_000), |call| {
        let most = call.max_bytes_held()?;
        Ok(Box::new(move |inputs, budget| written(&inputs[0], most, budget)))
    }));
}

/// The treatment of dates and times.
#[derive(Clone, Copy)]
pub(super) enum Dates {
    Refused,
    Text,
}

/// Parses a whole input as TOML. Memory cannot be claimed node by node, so it is estimated from the text before.
pub(super) fn read(input: &Bytes, dates: Dates, budget: &CallBudget) -> Result<Json, Fault> {
    let text = text(0, input)?;
    budget.claim(memory_of(text))?;
    budget.check()?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let (line, _) = position(text, error.span().unwrap_or_default().start);
        Fault::input(0, format!("not TOML, in line {line}: {}", error.message()))
    })?;
    json_of(Toml::Table(table), dates, &mut Vec::new())
}

fn json_of(value: Toml, dates: Dates, path: &mut Vec<String>) -> Result<Json, Fault> {
    match value {
        Toml::String(text) => Ok(text.into()),
        Toml::Integer(number) => Ok(number.into()),
        Toml::Boolean(value) => Ok(value.into()),
        Toml::Float(number) => match Number::from_f64(number) {
            Some(number) => Ok(number.into()),
            None => Err(at(path, "JSON has no `nan` and no `inf`")),
        },
        Toml::Datetime(date) => match dates {
            Dates::Text => Ok(date.to_string().into()),
            Dates::Refused => Err(at(path, "a date; toml_to_json/2.0.0 makes a text of it")),
        },
        Toml::Array(values) => {
            let each = |(index, value): (usize, Toml)| {
                within(path, index.to_string(), |path| json_of(value, dates, path))
            };
            values.into_iter().enumerate().map(each).collect::<Result<Vec<Json>, Fault>>().map(Json::Array)
        }
        Toml::Table(values) => {
            let mut object = Map::new();
            for (key, value) in values {
                let value = within(path, key.clone(), |path| json_of(value, dates, path))?;
                object.insert(key, value);
            }
            Ok(Json::Object(object))
        }
    }
}

fn written(input: &Bytes, most: OutputLimit, budget: &CallBudget) -> Result<Bytes, Fault> {
    let Json::Object(object) = parsed(0, input, budget)? else {
        return Err(Fault::input(0, "is not a JSON object"));
    };
    most.allows(
        object.iter().map(|(key, value)| headers(value, written_len(key))).fold(0, usize::saturating_add),
    )?;
    let value = Json::Object(object);
    budget.claim(weight(&value).saturating_add(3 * headers(&value, 0) as u64))?;
    let Json::Object(object) = value else { unreachable!("it was one above") };
    budget.check()?;
    let table = table_of(object, &mut Vec::new())?;
    let text =
        toml::to_string(&table).map_err(|error| Fault::input(0, format!("TOML cannot say it: {error}")))?;
    most.allows(text.len())?;
    Ok(text.into())
}

/// The memory of the TOML that a value becomes: the table, and the text as it grows.
fn weight(value: &Json) -> u64 {
    const VALUE: u64 = 150;
    const TABLE: u64 = 1200;
    match value {
        Json::Array(values) => values.iter().map(weight).fold(VALUE, u64::saturating_add),
        Json::Object(values) => values
            .iter()
            .map(|(key, value)| weight(value).saturating_add(4 * written_len(key) as u64))
            .fold(TABLE, u64::saturating_add),
        Json::String(text) => VALUE + 4 * written_len(text) as u64,
        _ => VALUE,
    }
}

/// The size of the table headers in a value, in bytes. Each header repeats all keys on its path, so the headers can be
/// many times larger than the input.
fn headers(value: &Json, path: usize) -> usize {
    match value {
        Json::Array(values) => values.iter().map(|value| headers(value, path)).fold(0, usize::saturating_add),
        Json::Object(values) => values
            .iter()
            .map(|(key, value)| headers(value, path.saturating_add(written_len(key))))
            .fold(path, usize::saturating_add),
        _ => 0,
    }
}

/// The size of a key with its quotes and separators, in bytes.
fn written_len(key: &str) -> usize {
    let written = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..b' ' | 0x7f => 6,
        _ => 1,
    };
    key.bytes().map(written).sum::<usize>() + 3
}

fn table_of(object: Map<String, Json>, path: &mut Vec<String>) -> Result<Table, Fault> {
    let each = |(key, value): (String, Json)| {
        let value = within(path, key.clone(), |path| toml_of(value, path))?;
        Ok((key, value))
    };
    object.into_iter().map(each).collect()
}

fn toml_of(value: Json, path: &mut Vec<String>) -> Result<Toml, Fault> {
    match value {
        Json::Null => Err(at(path, "null; TOML has none")),
        Json::Bool(value) => Ok(value.into()),
        Json::String(text) => Ok(text.into()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Ok(number.into()),
            (None, Some(float)) if number.is_f64() => Ok(float.into()),
            _ => Err(at(path, "an integer beyond 64 bits with a sign")),
        },
        Json::Array(values) => {
            let each =
                |(index, value): (usize, Json)| within(path, index.to_string(), |path| toml_of(value, path));
            values.into_iter().enumerate().map(each).collect::<Result<Vec<Toml>, Fault>>().map(Toml::Array)
        }
        Json::Object(object) => table_of(object, path).map(Toml::Table),
    }
}

fn within<T>(path: &mut Vec<String>, step: String, body: impl FnOnce(&mut Vec<String>) -> T) -> T {
    path.push(step);
    let given = body(path);
    path.pop();
    given
}

fn at(path: &[String], problem: &str) -> Fault {
    let path = path.join(".");
    // A message shows only the beginning of a long path.
    let end = path.floor_char_boundary(400);
    Fault::input(0, format!("at `{}{}`: {problem}", &path[..end], if end < path.len() { "..." } else { "" }))
}
