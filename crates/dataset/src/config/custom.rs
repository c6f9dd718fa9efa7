//! Columns that a program outside fills.

use anabranch_document::{Fields, Notes};
use anabranch_text::quote;
use anabranch_value::Value;

use super::column::Parts;
use super::derived::{target_reference, url};
use super::types::{CustomColumn, WorkerConfig};
use super::value;

/// Reads what is special about a custom column.
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
    })
}

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
