//! Parameters as JSON, for HTTP, `resolve --json` and the command line.
//!
//! A whole number is an int; a number with a fraction or an exponent is a float. Values without a JSON equivalent are
//! objects with one key: `{"$bytes": "base64"}`, `{"$float": "NaN"}`, and `{"$map": {...}}` for a map that would
//! otherwise be read as something else. Bytes may also be written as in recipe files: `{"base64": "..."}` or `{"hex":
//! "..."}`.
//!
//! The reader charges the memory of its result to a [`JsonBudget`], so that a small text cannot become a large tree.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use anabranch_content::Value;
use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserializer, Serialize, Serializer};

use crate::recipe::Params;

/// The memory that a JSON reader may still use, in bytes.
#[derive(Debug)]
pub struct JsonBudget {
    left: Cell<usize>,
    exceeded: Cell<bool>,
}

impl JsonBudget {
    /// A budget of `bytes` bytes.
    pub fn new(bytes: usize) -> JsonBudget {
        JsonBudget { left: Cell::new(bytes), exceeded: Cell::new(false) }
    }

    /// Takes bytes from the budget. Fails if not enough are left.
    pub fn take<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.exceeded.set(true);
                Err(E::custom("the text has more values than one call may have"))
            }
        }
    }

    /// Whether reading failed because the budget was too small.
    pub fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }
}

/// The memory of a value in a growing list, with its allocation.
const PER_VALUE: usize = 3 * size_of::<Value>();

/// The memory of the first entry of a map: B-trees allocate nodes of eleven entries.
const PER_MAP: usize = 12 * (size_of::<String>() + size_of::<Value>());

/// The memory of each further entry: nodes may be half empty, and keys are allocated separately.
const PER_ENTRY: usize = PER_MAP / 5 + 16;

/// Reads the parameters of a recipe from an object.
#[derive(Clone, Copy, Debug)]
pub struct ParamsFromJson<'a>(pub &'a JsonBudget);

impl<'de> DeserializeSeed<'de> for ParamsFromJson<'_> {
    type Value = Params;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Params, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ParamsFromJson<'_> {
    type Value = Params;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of parameters by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut json: A) -> Result<Params, A::Error> {
        let mut params = Params::new();
        while let Some(name) = json.next_key::<String>()? {
            let value = json
                .next_value_seed(ValueFromJson(self.0))
                .map_err(|error| A::Error::custom(format!("parameter `{name}`: {error}")))?;
            insert(&mut params, name, value, self.0)?;
        }
        Ok(params)
    }
}

/// Reads one value of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct ValueFromJson<'a>(pub &'a JsonBudget);

/// Reads one value of a parameter from a text.
pub fn value_from_json(text: &str, budget: &JsonBudget) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = ValueFromJson(budget).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

impl<'de> DeserializeSeed<'de> for ValueFromJson<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        self.0.take(PER_VALUE)?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueFromJson<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a parameter")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Err(E::custom("null is not a value; leave it out instead"))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(Value::Int(int))
    }

    fn visit_u64<E: serde::de::Error>(self, int: u64) -> Result<Value, E> {
        let int = i64::try_from(int)
            .map_err(|_| E::custom(format!("{int} is larger than the largest int, {}", i64::MAX)))?;
        Ok(Value::Int(int))
    }

    fn visit_f64<E>(self, float: f64) -> Result<Value, E> {
        Ok(Value::Float(float))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.take(text.len())?;
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut json: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = json.next_element_seed(ValueFromJson(self.0))? {
            list.push(value);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut json: A) -> Result<Value, A::Error> {
        let Some(first) = json.next_key::<String>()? else { return Ok(Value::Map(BTreeMap::new())) };
        if first.starts_with('$') {
            let value = self.special(&first, &mut json)?;
            return match json.next_key::<String>()? {
                None => Ok(value),
                Some(_) => Err(dollar(&first)),
            };
        }
        let value = json.next_value_seed(self)?;
        let second = json.next_key::<String>()?;
        if let (None, Value::Text(text)) = (&second, &value)
            && BYTES_KEYS.contains(&first.as_str())
        {
            return bytes_from_text(&first, text).map(Value::Bytes).map_err(A::Error::custom);
        }
        let mut map = BTreeMap::new();
        insert(&mut map, first, value, self.0)?;
        let mut next = second;
        while let Some(key) = next {
            if key.starts_with('$') {
                return Err(dollar(&key));
            }
            let value = json.next_value_seed(self)?;
            insert(&mut map, key, value, self.0)?;
            next = json.next_key()?;
        }
        Ok(Value::Map(map))
    }
}

impl ValueFromJson<'_> {
    /// Reads a value without a JSON equivalent, by its key.
    fn special<'de, A: MapAccess<'de>>(self, key: &str, json: &mut A) -> Result<Value, A::Error> {
        match key {
            "$bytes" => {
                let text: String = json.next_value()?;
                self.0.take(text.len())?;
                let bytes = BASE64
                    .decode(text.as_bytes())
                    .map_err(|error| A::Error::custom(format!("`$bytes` is not base64: {error}")))?;
                Ok(Value::Bytes(bytes.into()))
            }
            "$float" => match &*json.next_value::<String>()? {
                "NaN" => Ok(Value::Float(f64::NAN)),
                "inf" => Ok(Value::Float(f64::INFINITY)),
                "-inf" => Ok(Value::Float(f64::NEG_INFINITY)),
                other => Err(A::Error::custom(format!("`$float` is {other:?}; expected NaN, inf or -inf"))),
            },
            "$map" => json.next_value_seed(MapFromJson(self.0)).map(Value::Map),
            _ => Err(A::Error::custom(format!(
                "`{key}` is unknown; write $bytes or $float with a text, or $map with a map"
            ))),
        }
    }
}

fn dollar<E: serde::de::Error>(key: &str) -> E {
    E::custom(format!("key {key:?} begins with `$`; write the map as {{\"$map\": ...}}"))
}

/// Reads a map without special keys.
struct MapFromJson<'a>(&'a JsonBudget);

impl<'de> DeserializeSeed<'de> for MapFromJson<'_> {
    type Value = BTreeMap<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MapFromJson<'_> {
    type Value = BTreeMap<String, Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut json: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = json.next_key::<String>()? {
            let value = json.next_value_seed(ValueFromJson(self.0))?;
            insert(&mut map, key, value, self.0)?;
        }
        Ok(map)
    }
}

fn insert<E: serde::de::Error>(
    map: &mut BTreeMap<String, Value>,
    key: String,
    value: Value,
    budget: &JsonBudget,
) -> Result<(), E> {
    budget.take(key.len() + if map.is_empty() { PER_MAP } else { PER_ENTRY })?;
    match map.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        Entry::Occupied(entry) => Err(E::custom(format!("key {:?} is there twice", entry.key()))),
    }
}

/// The keys of bytes that are written as text: the only key of a map.
pub(crate) const BYTES_KEYS: [&str; 2] = ["base64", "hex"];

/// Decodes bytes that are written as text with one of [`BYTES_KEYS`]. White space is ignored.
pub(crate) fn bytes_from_text(key: &str, text: &str) -> Result<Bytes, String> {
    let encoding = if key == "hex" { &HEXLOWER_PERMISSIVE } else { &BASE64 };
    let dense: String = text.split_ascii_whitespace().collect();
    encoding.decode(dense.as_bytes()).map(Bytes::from).map_err(|error| format!("not {key}: {error}"))
}

/// Writes the parameters of a recipe as an object.
#[derive(Clone, Copy, Debug)]
pub struct ParamsAsJson<'a>(pub &'a Params);

impl Serialize for ParamsAsJson<'_> {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        entries(self.0, json)
    }
}

/// Writes one value of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct ValueAsJson<'a>(pub &'a Value);

impl Serialize for ValueAsJson<'_> {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => json.serialize_unit(),
            Value::Bool(truth) => json.serialize_bool(*truth),
            Value::Int(int) => json.serialize_i64(*int),
            Value::Float(float) if float.is_finite() => json.serialize_f64(*float),
            Value::Float(float) if float.is_nan() => single(json, "$float", &"NaN"),
            Value::Float(float) => single(json, "$float", if *float > 0.0 { &"inf" } else { &"-inf" }),
            Value::Text(text) => json.serialize_str(text),
            Value::Bytes(bytes) => single(json, "$bytes", &BASE64.encode(bytes)),
            Value::Address(address) => json.collect_str(address),
            Value::List(list) => {
                let mut json = json.serialize_seq(Some(list.len()))?;
                list.iter().try_for_each(|value| json.serialize_element(&ValueAsJson(value)))?;
                json.end()
            }
            Value::Map(map) if is_special(map) => single(json, "$map", &ParamsAsJson(map)),
            Value::Map(map) => entries(map, json),
        }
    }
}

/// Whether a map would be read as something else without `$map`.
fn is_special(map: &BTreeMap<String, Value>) -> bool {
    let is_bytes = |(key, value): (&String, &Value)| {
        matches!(value, Value::Text(_)) && BYTES_KEYS.contains(&key.as_str())
    };
    map.keys().any(|key| key.starts_with('$')) || (map.len() == 1 && map.iter().all(is_bytes))
}

fn single<S: Serializer>(json: S, key: &str, value: &impl Serialize) -> Result<S::Ok, S::Error> {
    let mut json = json.serialize_map(Some(1))?;
    json.serialize_entry(key, value)?;
    json.end()
}

fn entries<S: Serializer>(map: &BTreeMap<String, Value>, json: S) -> Result<S::Ok, S::Error> {
    let mut json = json.serialize_map(Some(map.len()))?;
    map.iter().try_for_each(|(key, value)| json.serialize_entry(key, &ValueAsJson(value)))?;
    json.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        value_from_json(text, &JsonBudget::new(1 << 20)).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        let found = read(text).unwrap();
        assert_eq!(&found, expected);
        assert_eq!(serde_json::to_string(&ValueAsJson(&found)).unwrap(), text);
    }

    fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::Map(entries.map(|(key, value)| (key.to_owned(), value)).into())
    }

    #[test]
    fn values_are_the_same_after_a_round_trip() {
        check("1", &Value::Int(1));
        check("-2.5", &Value::Float(-2.5));
        check("1.0", &Value::Float(1.0));
        check("\"x\"", &Value::Text("x".to_owned()));
        check(r#"{"$bytes":"AP8="}"#, &Value::Bytes(vec![0, 255].into()));
        check(r#"{"$float":"NaN"}"#, &Value::Float(f64::NAN));
        check(r#"{"$float":"inf"}"#, &Value::Float(f64::INFINITY));
        check(r#"{"$float":"-inf"}"#, &Value::Float(f64::NEG_INFINITY));
        check(
            r#"[true,{"a":[]},{}]"#,
            &Value::List(vec![Value::Bool(true), map([("a", Value::List(vec![]))]), map([])]),
        );
        check(r#"{"$map":{"$bytes":1}}"#, &map([("$bytes", Value::Int(1))]));
        check(r#"{"$map":{"base64":"AA=="}}"#, &map([("base64", Value::Text("AA==".to_owned()))]));
        check(r#"{"base64":1}"#, &map([("base64", Value::Int(1))]));
        check(
            r#"{"base64":"?","x":1}"#,
            &map([("base64", Value::Text("?".to_owned())), ("x", Value::Int(1))]),
        );
    }

    #[test]
    fn bytes_as_recipe_files_write_them() {
        for text in [r#"{"base64":"AP8="}"#, r#"{"hex":"00fF"}"#, r#"{"hex":" 00\n ff"}"#] {
            assert_eq!(read(text).unwrap(), Value::Bytes(vec![0, 255].into()));
        }
    }

    #[test]
    fn texts_that_are_not_values() {
        for (wrong, why) in [
            ("null", "null is not a value"),
            ("[null]", "null is not a value"),
            ("18446744073709551615", "larger than the largest int"),
            (r#"{"$bytes":"?"}"#, "not base64"),
            (r#"{"$bytes":1}"#, "expected a string"),
            (r#"{"$float":"2"}"#, "expected NaN, inf or -inf"),
            (r#"{"$other":1}"#, "`$other` is unknown"),
            (r#"{"$bytes":"","a":1}"#, "begins with `$`"),
            (r#"{"a":1,"$bytes":""}"#, "begins with `$`"),
            (r#"{"base64":"?"}"#, "not base64"),
            (r#"{"a":1,"a":2}"#, "\"a\" is there twice"),
            ("1 2", "trailing characters"),
            ("", "EOF"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_named_with_its_place() {
        let budget = JsonBudget::new(10_000);
        let mut reader = serde_json::Deserializer::from_str("{\"a\": 1,\n\"b\": [null]}");
        let error = ParamsFromJson(&budget).deserialize(&mut reader).unwrap_err();
        let expected = "parameter `b`: null is not a value; leave it out instead at line 2 column 10";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_budget_bounds_what_is_kept() {
        let budget = JsonBudget::new(100_000);
        let text = format!("[{}1]", "{\"\":0},".repeat(1000));
        assert!(value_from_json(&text, &budget).is_err() && budget.is_exceeded());
        let budget = JsonBudget::new(100_000);
        assert!(value_from_json(&format!("[{}1]", "0,".repeat(500)), &budget).is_ok());
        assert!(!budget.is_exceeded());
    }
}
