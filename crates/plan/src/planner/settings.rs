//! What a node's parameters say, for people.

use crate::document::{Document, DocumentNode};
use crate::op::{Arg, ParamKind, Spec};
use crate::registry::Registries;

/// The parameters that are given, by name. Inputs and endpoints are told elsewhere.
pub(super) fn of(
    document: &Document,
    node: &DocumentNode,
    spec: &Spec,
    registries: &Registries,
) -> Vec<(String, String)> {
    let Registries { keys, params, .. } = registries;
    let shown = |arg: &Arg, kind: ParamKind| match arg {
        Arg::Nodes(_) | Arg::Endpoint(_) => None,
        Arg::Key(key) => Some(keys.get(*key).map_or_else(|| key.to_string(), |entry| entry.name.clone())),
        Arg::Table(id) if kind == ParamKind::Expr => {
            Some(document.exprs.get(id)?.display(keys, params).to_string())
        }
        Arg::Table(id) => Some(document.preds.get(id)?.display(keys, params).to_string()),
        Arg::Json(value) => Some(value.to_string()),
        Arg::Value(value) => Some(value.to_string()),
    };
    let given = spec.params.iter().zip(&node.args);
    let given =
        given.filter_map(|(param, arg)| Some((param.name.to_owned(), shown(arg.as_ref()?, param.kind)?)));
    given.collect()
}
