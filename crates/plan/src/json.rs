//! A strict JSON parser for input from people, with positions in the text; and the canonical text for digests.

use std::fmt;

use anabranch_text::quote;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::expr;

/// The reason that a text is not JSON, or not JSON of this form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
}

/// The deepest nesting of lists and objects, so that reading them cannot overflow the stack. The deepest expression and
/// the tables around it fit in.
const DEEPEST: usize = expr::DEEPEST + 44;

/// Reads one JSON value. Unlike `serde_json`, which keeps the last, it refuses two fields of the same name.
pub(crate) fn parse(text: &[u8]) -> Result<Value, SyntaxError> {
    if let Some((line, column)) = too_deep(text) {
        let most = expr::DEEPEST;
        let what = format!("nested deeper than {DEEPEST} levels; an expression may have {most} of them");
        return Err(SyntaxError { line, column, what });
    }
    read(text, 0).map_err(|error| {
        let whole = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let what = whole.strip_suffix(&suffix).unwrap_or(&whole).to_owned();
        SyntaxError { line: error.line(), column: error.column(), what }
    })
}

/// Reads a value that is nested so deep.
fn read(text: &[u8], depth: usize) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Strict { depth }.deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

/// The line and column of the bracket that exceeds the maximum depth.
fn too_deep(text: &[u8]) -> Option<(usize, usize)> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' if depth == DEEPEST => {
                let before = &text[..at];
                let line_start =
                    before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                return Some((line, at - line_start + 1));
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The levels that one reader of `serde_json` goes down; its own limit is 128.
const LEVELS: usize = 100;

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn below(self) -> Strict {
        Strict { depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth % LEVELS < LEVELS - 1 {
            return deserializer.deserialize_any(self);
        }
        // Another reader goes on, as its limit is counted from where it begins.
        let below = <&RawValue>::deserialize(deserializer)?;
        read(below.get().as_bytes(), self.depth + 1).map_err(D::Error::custom)
    }
}

impl<'de> Visitor<'de> for Strict {
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
        while let Some(item) = items.next_element_seed(self.below())? {
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
            map.insert(name, fields.next_value_seed(self.below())?);
        }
        Ok(Value::Object(map))
    }
}

/// A value for messages: its type if it is large, else its text.
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

/// Compact text with the fields of objects sorted, regardless of the order of the map.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracket_that_is_one_too_deep_has_a_place() {
        let deep = |levels: usize| format!("{}1{}", "[\n".repeat(levels), "]".repeat(levels));
        let mut inner = &parse(deep(DEEPEST).as_bytes()).unwrap();
        for _ in 0..DEEPEST {
            inner = &inner[0];
        }
        assert_eq!(*inner, Value::from(1));
        let error = parse(deep(DEEPEST + 1).as_bytes()).unwrap_err();
        assert_eq!((error.line, error.column), (DEEPEST + 1, 1));
        assert_eq!(error.what, "nested deeper than 300 levels; an expression may have 256 of them");
    }

    #[test]
    fn brackets_in_strings_are_not_nested() {
        let text = format!(r#"{{"a": "\"{}"}}"#, "[{".repeat(1_000));
        assert!(parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn a_million_brackets_are_refused() {
        assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
    }
}
