//! The lines of the protocol.

use std::borrow::Cow;
use std::collections::HashMap;

use anabranch_engine::retry::Severity;
use anabranch_value::Value;
use serde::Deserialize;

use super::worker::Function;
use crate::fault::Fault;

/// The longest line of a worker.
pub(super) const MAX_LINE: usize = 16 << 20;

/// Characters of a worker's text that a message quotes.
pub(super) const QUOTED: usize = 200;

/// Characters of a worker's error message that are kept.
const MAX_MESSAGE: usize = 4_000;

/// A line from a worker.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) ready: Option<bool>,
    pub(super) functions: HashMap<String, FunctionDeclaration>,
    pub(super) id: Option<u64>,
    pub(super) values: Option<Value>,
    pub(super) rows: Option<Vec<Value>>,
    pub(super) error: Option<WorkerError>,
    pub(super) ask: Option<u64>,
    pub(super) model: Option<String>,
    pub(super) messages: Option<Value>,
}

/// A worker's declaration of a function. Missing fields are not checked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionDeclaration {
    required_columns: Option<Vec<String>>,
    side_effect_columns: Option<Vec<String>>,
    generation_strategy: Option<String>,
}

/// The error of a call: an object, or a bare message.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WorkerError {
    Whole {
        #[serde(default)]
        class: Option<String>,
        message: String,
        #[serde(default)]
        transient: bool,
    },
    Message(String),
}

impl WorkerError {
    /// The error of one row of a batch.
    pub(super) fn of_row(error: &Value) -> Option<WorkerError> {
        serde_json::from_str(&error.to_json()).ok()
    }

    pub(super) fn fault(self) -> Fault {
        let (class, message, transient) = match self {
            WorkerError::Whole { class, message, transient } => (class, message, transient),
            WorkerError::Message(message) => (None, message, false),
        };
        let word = |class: String| -> String {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            class.chars().filter(|c| word(*c)).take(40).collect::<String>().to_ascii_lowercase()
        };
        let class =
            class.map(word).filter(|class| !class.is_empty()).map_or(Cow::Borrowed("custom"), Cow::Owned);
        let message: String = message.chars().take(MAX_MESSAGE).collect();
        if transient { Fault::transient(class, message) } else { Fault::permanent(class, message) }
    }
}

/// The first line to a worker.
pub(super) fn hello(functions: &[Function]) -> String {
    let mut names: Vec<&str> = functions.iter().map(|function| &*function.name).collect();
    names.sort_unstable();
    names.dedup();
    let names = Value::list(names.into_iter().map(Value::from));
    Value::map([("anabranch", Value::Int(1)), ("functions", names)]).to_json()
}

/// Checks that a worker has the functions that the columns need.
pub(super) fn check_functions(
    needed: &[Function],
    found: &HashMap<String, FunctionDeclaration>,
) -> Result<(), String> {
    for function in needed {
        let Function { name, column, .. } = function;
        let Some(declared) = found.get(name) else {
            let mut names: Vec<&str> = found.keys().map(String::as_str).take(50).collect();
            names.sort_unstable();
            return Err(format!(
                "the worker has no function `{name}`, which the column `{column}` names; it has: {}",
                names.join(", ")
            ));
        };
        let wrong = |what: &str, found: &str, expected: &str| {
            Err(format!(
                "the function `{name}` declares the {what} {found}, and the column `{column}` has {expected}: change one of them"
            ))
        };
        let strategy = if function.full_column { "full_column" } else { "cell_by_cell" };
        if let Some(found) = &declared.generation_strategy
            && found != strategy
        {
            return wrong("generation strategy", found, strategy);
        }
        let list = |names: &[String]| format!("[{}]", names.join(", "));
        if let Some(required) = &declared.required_columns
            && required.iter().any(|column| !function.required_columns.contains(column))
        {
            return wrong("required columns", &list(required), &list(&function.required_columns));
        }
        if let Some(effects) = &declared.side_effect_columns {
            let (mut found, mut expected) = (effects.clone(), function.side_effect_columns.clone());
            found.sort();
            expected.sort();
            if found != expected {
                return wrong("side-effect columns", &list(&found), &list(&expected));
            }
        }
    }
    Ok(())
}

/// The answer to a question.
pub(super) fn answer(call: u64, number: u64, reply: Result<String, Fault>) -> String {
    let (name, value) = match reply {
        Ok(text) => ("text", Value::from(text)),
        Err(fault) => {
            let transient = fault.severity != Severity::Permanent;
            let error = [
                ("class", Value::from(&*fault.class)),
                ("message", fault.message.into()),
                ("transient", transient.into()),
            ];
            ("error", Value::map(error))
        }
    };
    let id = |number: u64| Value::Int(number as i64);
    Value::map([("id", id(call)), ("answer", id(number)), (name, value)]).to_json()
}

/// The beginning of a text.
pub(super) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}
