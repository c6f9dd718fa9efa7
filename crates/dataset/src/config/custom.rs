//! Columns that a program outside fills.

use std::time::Duration;

use anabranch_document::{Fields, Notes};
use anabranch_text::quote;
use anabranch_value::Value;

use super::column::Parts;
use super::derived::{target_reference, url};
use super::types::{CustomColumn, WorkerConfig};
use super::value;
use crate::column_type::ColumnType;

/// Reads the fields that only custom columns have.
pub(super) fn column(
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<CustomColumn> {
    let function = fields.need_text("generator_function", notes);
    let function_at = fields.get("generator_function").map(|node| node.at.clone());
    let words = [("cell_by_cell", false), ("full_column", true)];
    let full_column = fields.choice("generation_strategy", &words, notes).unwrap_or(false);
    let params = fields.get("generator_params").map_or(Value::Null, |node| value::value(node, notes));
    let required = fields.texts("required_columns", notes).unwrap_or_default();
    for (name, at) in &required {
        parts.references.push(target_reference("required_columns", name, at));
    }
    let side_effects = fields.texts("side_effect_columns", notes).unwrap_or_default();
    if let Some((name, at)) = side_effects.iter().find(|(name, _)| name.is_empty()) {
        notes.hint(at, format!("{} is not a name", quote(name)), None);
    }
    let model_aliases = fields.texts("model_aliases", notes).unwrap_or_default();
    let stateful = fields.bool("stateful", notes).unwrap_or(false);
    let column_types = column_types(fields, notes);
    let timeout = timeout(fields, notes);
    let worker = match fields.get("worker") {
        Some(_) => worker(fields, notes),
        None => {
            let at = function_at.as_ref().unwrap_or(fields.at());
            let name = function.unwrap_or("function");
            let help = format!(
                "a file holds no Python function; say what runs {}: `worker:` and below it \
                 `command: [python3, {name}.py]`, or `url: http://localhost:8000`",
                quote(name)
            );
            notes.note(at, format!("{} needs `worker`", fields.of()), help);
            None
        }
    };
    let names = |list: Vec<(&str, _)>| list.into_iter().map(|(name, _)| name.to_owned()).collect();
    Some(CustomColumn {
        worker: worker?,
        function: function?.to_owned(),
        params,
        required_columns: names(required),
        side_effect_columns: names(side_effects),
        model_aliases: names(model_aliases),
        full_column,
        stateful,
        column_types,
        timeout,
        resizes: false,
    })
}

/// The types of the filled columns, by name: `int`, `float`, `str`, `bool`, `json`, or `list[..]` of one of them.
fn column_types(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Vec<(String, ColumnType)> {
    let Some(node) = fields.get("column_types") else { return Vec::new() };
    let Some(table) = notes.as_table(node, "column_types", "types by column name") else { return Vec::new() };
    let mut types = Vec::new();
    for (key, node) in table {
        let Some(word) = notes.as_text(node, &key.name) else { continue };
        match column_type(word) {
            Some(column_type) => types.push((key.name.clone(), column_type)),
            None => {
                let what = format!("{} is not a type", quote(word));
                notes.note(&node.at, what, "write int, float, str, bool, json, or list[int] and the like");
            }
        }
    }
    types
}

fn column_type(word: &str) -> Option<ColumnType> {
    Some(match word {
        "int" => ColumnType::Int,
        "float" => ColumnType::Float,
        "str" => ColumnType::Text,
        "bool" => ColumnType::Bool,
        "json" => ColumnType::Json,
        other => ColumnType::List(Box::new(column_type(other.strip_prefix("list[")?.strip_suffix(']')?)?)),
    })
}

/// The longest silence of a worker during a call, in seconds.
fn timeout(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Duration {
    let Some(at) = fields.get("timeout").map(|node| node.at.clone()) else { return DEFAULT_TIMEOUT };
    let Some(seconds) = fields.float("timeout", notes) else { return DEFAULT_TIMEOUT };
    if !(0.001..=86_400.0).contains(&seconds) {
        notes.hint(&at, format!("`timeout` is between 0.001 and 86400 seconds, this is {seconds}"), None);
        return DEFAULT_TIMEOUT;
    }
    Duration::from_secs_f64(seconds)
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

fn worker(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<WorkerConfig> {
    let node = fields.get("worker")?;
    let mut fields = notes.fields(node, "a worker")?;
    let (command, address) = (fields.get("command"), fields.get("url"));
    let at = fields.at().clone();
    let worker = match (command, address) {
        (Some(node), None) => {
            let words = fields.texts("command", notes).unwrap_or_default();
            if words.is_empty() {
                notes.hint(&node.at, "`command` is a program and its arguments: [python3, worker.py]", None);
            }
            let command: Vec<String> = words.into_iter().map(|(word, _)| word.to_owned()).collect();
            (!command.is_empty()).then_some(WorkerConfig::Command { command })
        }
        (None, Some(node)) => url(node, "url", notes).map(|url| WorkerConfig::Http { url }),
        _ => {
            notes.note(&at, "a worker has either `command` or `url`", "keep one of them");
            None
        }
    };
    fields.finish(notes);
    worker
}
