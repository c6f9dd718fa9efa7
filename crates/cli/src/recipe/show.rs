//! How values, sizes and facts are written, for people and as JSON.

use anabranch_content::{Address, Value};
use anabranch_recipe::Source;
use anabranch_text::count;
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Writes JSON to stdout.
pub(super) fn json(value: &Json) -> Result<(), Failure> {
    out::data(&format!("{value:#}\n"))
}

/// Facts, one per line: a table without a head.
pub(super) fn facts(facts: &[(&str, String)]) -> Result<(), Failure> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, fact): &(&str, String)| format!("{name:<width$}  {fact}").trim_end().to_owned() + "\n";
    out::data(&facts.iter().map(line).collect::<String>())
}

/// Addresses as text.
pub(super) fn addresses(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(Address::to_string).collect()
}

/// Warns of inputs that are neither blobs nor recipes so far.
pub(super) fn dangling(of: Option<&str>, addresses: &[Address]) {
    let of = of.map(|of| format!(" of `{of}`")).unwrap_or_default();
    addresses.iter().for_each(|address| out::note(&format!("warning: input {address}{of} is not here yet")));
}

/// A table; if it has no rows, what to say instead.
pub(super) fn table(table: &Table, rows: usize, none: &str) -> Result<(), Failure> {
    if rows == 0 {
        out::note(none);
        return Ok(());
    }
    out::data(&table.text(0))
}

/// Where a value came from, in words.
pub(super) fn source(source: Source) -> String {
    match source {
        Source::Blob => "a blob".to_owned(),
        Source::Memo => "remembered".to_owned(),
        Source::Computed(recipes) => format!("computed with {}", count(recipes, "recipe")),
    }
}

/// Where a value came from, as JSON.
pub(super) fn source_json(source: Source) -> Json {
    match source {
        Source::Blob => json!({"source": "blob"}),
        Source::Memo => json!({"source": "memo"}),
        Source::Computed(count) => json!({"source": "computed", "computed": count}),
    }
}

/// A parameter as JSON, for people: infinities and NaN become text, and a map whose only entry is `base64` or `hex` looks
/// like bytes.
pub(super) fn value_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(int) => (*int).into(),
        Value::Float(float) => {
            serde_json::Number::from_f64(*float).map_or_else(|| float.to_string().into(), Json::Number)
        }
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => json!({"base64": BASE64.encode(bytes)}),
        Value::Address(address) => address.to_string().into(),
        Value::List(values) => values.iter().map(value_json).collect(),
        Value::Map(values) => {
            Json::Object(values.iter().map(|(name, value)| (name.clone(), value_json(value))).collect())
        }
    }
}

/// A parameter from JSON. How deep it may be is the reader's bound.
pub(super) fn value_of(value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::Null => return Err("null is no parameter; leave it out instead".to_owned()),
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(float)) if !number.is_u64() => Value::Float(float),
            _ => return Err(format!("{number} has more than 64 bits")),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(values) => Value::List(values.iter().map(value_of).collect::<Result<_, _>>()?),
        Json::Object(entries) => match as_bytes(entries)? {
            Some(bytes) => Value::Bytes(bytes.into()),
            None => {
                let entry = |(name, value): (&String, &Json)| Ok((name.clone(), value_of(value)?));
                Value::Map(entries.iter().map(entry).collect::<Result<_, String>>()?)
            }
        },
    })
}

/// `{"base64": "..."}` or `{"hex": "..."}`, as in recipe files.
fn as_bytes(entries: &serde_json::Map<String, Json>) -> Result<Option<Vec<u8>>, String> {
    for (name, encoding) in [("base64", &BASE64), ("hex", &HEXLOWER_PERMISSIVE)] {
        if let (1, Some(text)) = (entries.len(), entries.get(name).and_then(Json::as_str)) {
            let bytes = encoding.decode(text.as_bytes()).map_err(|error| format!("not {name}: {error}"))?;
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_the_same_there_and_back() {
        let text = r#"{"a":[1,-2.5,true,"x"],"b":{"base64":"AAH/"},"c":{"d":{}}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(value_json(&value_of(&json).unwrap()), json);
        let hex: Json = serde_json::from_str(r#"{"hex":"0001fF"}"#).unwrap();
        assert_eq!(value_of(&hex).unwrap(), value_of(&json["b"]).unwrap());
        for wrong in ["null", "[null]", "18446744073709551615", r#"{"base64":"?"}"#] {
            assert!(value_of(&serde_json::from_str(wrong).unwrap()).is_err(), "{wrong}");
        }
    }
}
