//! TOML files, read as the JSON values that the rest of the checks work on.

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

/// Parses a TOML file. Problems are reported with the file, line and column.
pub(crate) fn parse(file: &str, text: &str, problems: &mut Problems) -> Option<Map<String, Value>> {
    match text.parse::<toml::Table>() {
        Ok(table) => Some(convert_table(&table, file, problems)),
        Err(error) => {
            let what = error.message().trim_end().replace('\n', "; ");
            problems.error(match error.span() {
                Some(span) => Problem::in_source(file, text, span, what),
                None => Problem::new(file, what),
            });
            None
        }
    }
}

fn convert_table(table: &toml::Table, place: &str, problems: &mut Problems) -> Map<String, Value> {
    table
        .iter()
        .map(|(name, value)| (name.clone(), convert(value, &format!("{place}, {name}"), problems)))
        .collect()
}

fn convert(value: &toml::Value, place: &str, problems: &mut Problems) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(value) => Value::from(*value),
        toml::Value::Boolean(value) => Value::from(*value),
        toml::Value::Float(value) if value.is_finite() => Value::from(*value),
        toml::Value::Float(value) => {
            problems.error(Problem::new(place, format!("must be a finite number, not {value}")));
            Value::from(0.0)
        }
        toml::Value::Datetime(value) => {
            problems
                .error(Problem::new(place, format!("no field is a date; write \"{value}\" for a string")));
            Value::from("")
        }
        toml::Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| convert(item, &item_place(place, at, item), problems)).collect()
        }
        toml::Value::Table(table) => Value::Object(convert_table(table, place, problems)),
    }
}

/// The place of an item of a list: by its name if it has one.
fn item_place(list: &str, at: usize, item: &toml::Value) -> String {
    match item.get("name").and_then(toml::Value::as_str) {
        Some(name) => format!("{list} {}", quote(name)),
        None => format!("{list} {}", at + 1),
    }
}
