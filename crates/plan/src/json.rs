//! JSON as it comes from people: strict, with places in the text; and the canonical text that digests are made of.

use std::fmt;

use anabranch_text::quote;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// Why a text is no JSON, or not the JSON we take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
}

/// Reads one JSON value. Unlike `serde_json`, which keeps the last, it refuses two fields of the same name.
pub(crate) fn parse(text: &[u8]) -> Result<Value, SyntaxError> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict::deserialize(&mut reader).and_then(|Strict(value)| reader.end().map(|()| value));
    value.map_err(|error| {
        let whole = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let what = whole.strip_suffix(&suffix).unwrap_or(&whole).to_owned();
        SyntaxError { line: error.line(), column: error.column(), what }
    })
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(format_args!("field {} is there twice", quote(&name))));
            }
            let Strict(value) = fields.next_value()?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// A value in messages: what it is when it is large, else its text.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string {}", quote(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The whole number that a JSON number is: `3`, and also `3.0`.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    /// The first float above all 64-bit integers.
    const END: f64 = 9_223_372_036_854_775_808.0;
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|_| !value.is_u64())?;
        (float.fract() == 0.0 && (-END..END).contains(&float)).then_some(float as i64)
    })
}

/// Compact text with the fields of objects sorted, whatever order the map keeps.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

/// SHA-256 of the canonical text, in hex.
pub(crate) fn digest(value: &Value) -> String {
    use fmt::Write as _;
    let mut hex = String::new();
    for byte in Sha256::digest(canonical(value)) {
        write!(hex, "{byte:02x}").expect("a string takes all that is written");
    }
    hex
}
