//! The identity of a column, which decides about its random numbers. It does not change when the column is renamed or
//! moved, or when other parts are edited, so that values, prompts and paid replies stay valid.

use std::collections::HashMap;

use anabranch_document::Table;
use anabranch_value::Value;

use super::digest;
use super::types::{Column, ColumnKind, CustomColumn, LlmColumn};

/// The identity of a column. It does not include names of columns.
pub(super) fn identity(kind: &ColumnKind, definition: &Table) -> String {
    match kind {
        ColumnKind::Sampler(_) => digest::sampler(definition),
        ColumnKind::Llm(LlmColumn { model_alias, prompt, system_prompt, .. }) => {
            let system = system_prompt.as_ref().map_or("", |system| &*system.source);
            digest::texts(&["llm", model_alias, &prompt.source, system])
        }
        ColumnKind::Custom(CustomColumn { function, params, .. }) => {
            digest::texts(&["custom", function, &Value::to_json(params)])
        }
        ColumnKind::Expression { .. } | ColumnKind::Validation(_) | ColumnKind::Embedding { .. } => {
            digest::definition(definition)
        }
    }
}

/// Numbers the columns of equal identity in their order.
pub(super) fn number_twins<'c>(columns: impl Iterator<Item = &'c mut Column>) {
    let mut seen: HashMap<String, u64> = HashMap::new();
    for column in columns {
        let count = seen.entry(column.identity.clone()).or_default();
        column.twin = *count;
        *count += 1;
    }
}
