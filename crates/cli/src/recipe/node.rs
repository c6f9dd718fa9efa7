//! A node of a recipe graph, from the store: for `ls`, `tree` and `explain`, which compute nothing.

use anabranch_content::{Address, Memo, RemovalRecord};
use anabranch_recipe::{Recipe, ValueAsJson};
use anabranch_text::{duration, size};
use serde_json::{Value as Json, json};

use super::backend::Backend;
use crate::failure::Failure;

/// A blob or a recipe, with the state of its value.
pub(super) enum Node {
    Blob { size: u64 },
    Recipe { recipe: Recipe, value: Value },
    Missing,
}

/// The state of a recipe's value.
pub(super) enum Value {
    /// It is stored, so a get is a cache hit.
    Stored(Memo),
    /// It was computed, and its bytes have been removed since.
    Evicted,
    /// It was never computed, or its memo was removed.
    Unknown(Option<RemovalRecord>),
}

impl Node {
    /// Looks up an address.
    pub(super) async fn find(backend: &Backend, address: Address) -> Result<Node, Failure> {
        let found = backend.resolve(address).await?;
        let Some(recipe) = found.recipe else {
            return Ok(found.size.map_or(Node::Missing, |size| Node::Blob { size }));
        };
        let value = match (found.memo, found.size) {
            (Some(memo), Some(_)) => Value::Stored(memo),
            (Some(_), None) => Value::Evicted,
            (None, _) => Value::Unknown(found.removal),
        };
        Ok(Node::Recipe { recipe, value })
    }

    /// The addresses of its inputs.
    pub(super) fn inputs(&self) -> &[Address] {
        match self {
            Node::Recipe { recipe, .. } => &recipe.inputs,
            _ => &[],
        }
    }

    /// Whether it is a recipe without a stored value.
    pub(super) fn must_be_computed(&self) -> bool {
        matches!(self, Node::Recipe { value: Value::Evicted | Value::Unknown(_), .. })
    }

    /// Its parameters, one line each.
    pub(super) fn params(&self) -> Vec<String> {
        let Node::Recipe { recipe, .. } = self else { return Vec::new() };
        recipe.params.iter().map(|(name, value)| format!("{name} = {}", json!(ValueAsJson(value)))).collect()
    }

    /// Its function or kind, its size, and the state of its value.
    pub(super) fn words(&self) -> [String; 3] {
        match self {
            Node::Blob { size } => ["blob".to_owned(), size::format(*size), String::new()],
            Node::Missing => ["missing".to_owned(), String::new(), "not in the store".to_owned()],
            Node::Recipe { recipe, value } => {
                let (size, value) = match value {
                    Value::Stored(memo) => (
                        size::format(memo.size),
                        format!("stored, computed in {}", duration::format(memo.cost.cpu)),
                    ),
                    Value::Evicted => (String::new(), "evicted".to_owned()),
                    Value::Unknown(_) => (String::new(), "not computed".to_owned()),
                };
                [recipe.function.to_string(), size, value]
            }
        }
    }

    pub(super) fn json(&self) -> Json {
        match self {
            Node::Blob { size } => json!({"kind": "blob", "size": size}),
            Node::Missing => json!({"kind": "missing"}),
            Node::Recipe { recipe, value } => {
                let function = recipe.function.to_string();
                match value {
                    Value::Stored(memo) => json!({
                        "kind": "recipe", "function": function, "value": "stored", "size": memo.size,
                        "cpu_micros": u64::try_from(memo.cost.cpu.as_micros()).unwrap_or(u64::MAX),
                    }),
                    Value::Evicted => json!({"kind": "recipe", "function": function, "value": "evicted"}),
                    Value::Unknown(_) => json!({"kind": "recipe", "function": function, "value": null}),
                }
            }
        }
    }
}
