//! The identity of a column: what decides about its random numbers. It outlives a rename, a move and edits elsewhere, so
//! that values, prompts and paid replies do.

use std::collections::HashMap;

use anabranch_document::Table;
use anabranch_value::Value;

use super::digest;
use super::types::{Column, ColumnKind, CustomColumn, LlmColumn};

/// The identity of a column. No column's name is part of it.
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
