//! Recipes and their parameters as JSON.
//!
//! A whole number is an int, one with a fraction or an exponent a float. What JSON has no word for is an object with
//! one key: `{"$bytes": "base64"}`, `{"$float": "NaN"}`, and `{"$map": {...}}` for a map with a key that begins with
//! `$`.

use anabranch_content::{Address, Memo, Value};
use anabranch_recipe::{Added, FunctionId, Params, Recipe, Status};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Number, Value as Json, json};
use tonic::Code;

use crate::failure::Failure;
use crate::wire;

/// A recipe as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// `name/version`.
    pub(super) function: String,
    #[serde(default)]
    pub(super) inputs: Vec<Input>,
    #[serde(default)]
    params: Map<String, Json>,
}

/// An input: an address or a name, or the place of an earlier recipe of the same list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Input {
    Place(usize),
    Text(String),
}

/// One recipe, or a list of them.
#[derive(Debug)]
pub(super) enum OneOrMany {
    Many(Vec<Written>),
    One(Written),
}

fn bad(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidArgument, message)
}

/// Reads one recipe or a list; says where the text is wrong.
pub(super) fn read(bytes: &[u8]) -> Result<OneOrMany, Failure> {
    let is_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    // Not by trying one form after the other: that would lose the place of a mistake.
    let read = match is_list {
        true => serde_json::from_slice(bytes).map(OneOrMany::Many),
        false => serde_json::from_slice(bytes).map(OneOrMany::One),
    };
    read.map_err(|error| bad(format!("the body is no recipe, and no list of recipes: {error}")))
}

impl Written {
    pub(super) fn function(&self) -> Result<FunctionId, Failure> {
        self.function.parse().map_err(|malformed: anabranch_recipe::Malformed| bad(malformed.0))
    }

    pub(super) fn params(&self) -> Result<Params, Failure> {
        params(&self.params)
    }
}

fn params(map: &Map<String, Json>) -> Result<Params, Failure> {
    let param = |(name, json): (&String, &Json)| {
        let value = value(json).map_err(|problem| bad(format!("parameter `{name}`: {problem}")))?;
        Ok((name.clone(), value))
    };
    map.iter().map(param).collect()
}

fn value(json: &Json) -> Result<Value, String> {
    Ok(match json {
        Json::Null => return Err("null is no value; leave it out instead".to_owned()),
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => self::number(number)?,
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(list) => Value::List(list.iter().map(value).collect::<Result<_, _>>()?),
        Json::Object(map) => match map.iter().next() {
            Some((key, inner)) if map.len() == 1 && key.starts_with('$') => special(key, inner)?,
            _ => match map.keys().find(|key| key.starts_with('$')) {
                Some(key) => {
                    return Err(format!("key {key:?} begins with `$`; write the map as {{\"$map\": ...}}"));
                }
                None => self::map(map)?,
            },
        },
    })
}

fn map(map: &Map<String, Json>) -> Result<Value, String> {
    let entries = map.iter().map(|(key, inner)| Ok((key.clone(), value(inner)?)));
    Ok(Value::Map(entries.collect::<Result<_, String>>()?))
}

fn number(number: &Number) -> Result<Value, String> {
    match (number.as_i64(), number.is_u64(), number.as_f64()) {
        (Some(whole), ..) => Ok(Value::Int(whole)),
        (None, true, _) => Err(format!("{number} is more than a whole number may be, {}", i64::MAX)),
        (None, false, Some(float)) => Ok(Value::Float(float)),
        (None, false, None) => Err(format!("{number} is no number that can be kept")),
    }
}

fn special(key: &str, inner: &Json) -> Result<Value, String> {
    match (key, inner) {
        ("$bytes", Json::String(text)) => {
            let bytes = STANDARD.decode(text).map_err(|error| format!("`$bytes` is not base64: {error}"))?;
            Ok(Value::Bytes(bytes.into()))
        }
        ("$float", Json::String(text)) => match &**text {
            "NaN" => Ok(Value::Float(f64::NAN)),
            "inf" => Ok(Value::Float(f64::INFINITY)),
            "-inf" => Ok(Value::Float(f64::NEG_INFINITY)),
            other => Err(format!("`$float` is {other:?}; it may be NaN, inf or -inf")),
        },
        ("$map", Json::Object(map)) => self::map(map),
        _ => Err(format!("`{key}` is unknown here; write $bytes, $float with a text, or $map with a map")),
    }
}

fn from_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::Int(whole) => Json::from(*whole),
        Value::Float(float) if float.is_nan() => json!({ "$float": "NaN" }),
        Value::Float(float) => Number::from_f64(*float)
            .map_or_else(|| json!({ "$float": if *float > 0.0 { "inf" } else { "-inf" } }), Json::Number),
        Value::Text(text) => Json::String(text.clone()),
        Value::Bytes(bytes) => json!({ "$bytes": STANDARD.encode(bytes) }),
        Value::Address(address) => Json::String(address.to_string()),
        Value::List(list) => list.iter().map(from_value).collect(),
        Value::Map(map) => {
            let entries: Json =
                map.iter().map(|(key, inner)| (key.clone(), from_value(inner))).collect::<Map<_, _>>().into();
            match map.keys().any(|key| key.starts_with('$')) {
                true => json!({ "$map": entries }),
                false => entries,
            }
        }
    }
}

pub(super) fn recipe(recipe: &Recipe) -> Json {
    let params: Map<String, Json> =
        recipe.params.iter().map(|(name, value)| (name.clone(), from_value(value))).collect();
    json!({
        "function": recipe.function.to_string(),
        "inputs": texts(&recipe.inputs),
        "params": params,
    })
}

pub(super) fn memo(memo: &Memo) -> Json {
    json!({
        "output": memo.output.to_string(),
        "size": memo.size,
        "cpu_micros": memo.cost.cpu.as_micros() as u64,
        "at": memo.at.0,
    })
}

pub(super) fn added(added: &Added) -> Json {
    json!({
        "address": added.address.to_string(),
        "new": added.new,
        "dangling": texts(&added.dangling),
    })
}

fn texts(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(Address::to_string).collect()
}

pub(super) fn status(status: &Status) -> Json {
    let health = &status.store.health;
    let status = wire::from_status(status);
    json!({
        "blobs": status.blobs,
        "blob_bytes": status.blob_bytes,
        "recipes": status.recipes,
        "memos": status.memos,
        "pins": status.pins,
        "names": status.names,
        "used_bytes": status.used_bytes,
        "index_bytes": status.index_bytes,
        "cache_entries": status.cache_entries,
        "cache_bytes": status.cache_bytes,
        "cache_hits": status.cache_hits,
        "cache_misses": status.cache_misses,
        "functions": status.functions,
        "gets": status.gets,
        "hits": status.hits,
        "computed": status.computed,
        "failed": status.failed,
        "computing": status.computing,
        "health": {
            "fine": health.is_fine(),
            "lost": health.lost,
            "damaged": health.damaged,
            "diverged": health.diverged,
            "failures": health.failures,
            "index_damaged": health.index_damaged,
            "over_quota": health.over_quota,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &Json, expected: &Value) {
        let found = value(json).unwrap();
        assert_eq!(&found, expected);
        assert_eq!(&from_value(&found), json);
    }

    #[test]
    fn values_there_and_back() {
        check(&json!(1), &Value::Int(1));
        check(&json!(1.5), &Value::Float(1.5));
        check(&json!(1.0), &Value::Float(1.0));
        check(&json!("x"), &Value::Text("x".to_owned()));
        check(&json!({ "$bytes": "AP8=" }), &Value::Bytes(vec![0, 255].into()));
        check(&json!({ "$float": "NaN" }), &Value::Float(f64::NAN));
        check(&json!({ "$float": "-inf" }), &Value::Float(f64::NEG_INFINITY));
        let map = [("a".to_owned(), Value::List(vec![]))].into();
        check(&json!([true, { "a": [] }]), &Value::List(vec![Value::Bool(true), Value::Map(map)]));
        check(
            &json!({ "$map": { "$bytes": 1 } }),
            &Value::Map([("$bytes".to_owned(), Value::Int(1))].into()),
        );
    }

    #[test]
    fn what_is_no_value() {
        for wrong in [
            json!(null),
            json!([null]),
            json!(u64::MAX),
            json!({ "$bytes": "?" }),
            json!({ "$bytes": 1 }),
            json!({ "$float": "2" }),
            json!({ "$other": 1 }),
            json!({ "$bytes": "", "a": 1 }),
        ] {
            assert!(value(&wrong).is_err(), "{wrong}");
        }
    }
}
