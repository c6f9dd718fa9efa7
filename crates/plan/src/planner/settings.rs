//! The text of a node's parameters in explanations.

use anabranch_rows::{Key, Order};

use crate::document::{Document, DocumentNode};
use crate::op::{Arg, ParamKind, Spec};
use crate::registry::Registries;

/// The parameters that are given, by name, without inputs and endpoints, which are shown elsewhere.
pub(super) fn of(
    document: &Document,
    node: &DocumentNode,
    spec: &Spec,
    registries: &Registries,
) -> Vec<(String, String)> {
    let Registries { keys, params, .. } = registries;
    let name = |key: Key| keys.get(key).map_or_else(|| key.to_string(), |entry| entry.name.clone());
    let shown = |arg: &Arg, kind: ParamKind| match arg {
        Arg::Nodes(_) | Arg::Endpoint(_) => None,
        Arg::Key(key) => Some(name(*key)),
        Arg::SortKeys(by) => {
            let shown = |(key, order): &(Key, Option<Order>)| match order {
                None => name(*key),
                Some(Order::Ascending) => format!("{} asc", name(*key)),
                Some(Order::Descending) => format!("{} desc", name(*key)),
            };
            Some(by.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
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
