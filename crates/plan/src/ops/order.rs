//! The order of rows, and the window of them that a node keeps, for `sort`, `topk` and `take`.

use anabranch_rows::{Key, Order, SortKey};

use super::readable_column;
use crate::op::{Arg, Node, Window};

/// The most columns that rows are sorted by.
const MOST_KEYS: usize = 16;

/// The columns to sort by: those of `by`, each in its own order, else in that of `order`, else in `default`. Problems
/// are reported.
pub(super) fn sort_keys(node: &mut Node<'_>, default: Order) -> Option<Vec<SortKey>> {
    let Some(Arg::SortKeys(keys)) = node.arg("by") else { return None };
    let default = match node.text("order") {
        Some("asc") => Order::Ascending,
        Some("desc") => Order::Descending,
        _ => default,
    };
    if keys.is_empty() || keys.len() > MOST_KEYS {
        let what = format!("lists {} keys; from 1 to {MOST_KEYS} are possible", keys.len());
        node.problem("by", what);
        return None;
    }
    let schema = node.input(0);
    let mut by: Vec<SortKey> = Vec::with_capacity(keys.len());
    let mut fine = true;
    for &(key, order) in keys {
        if by.iter().any(|other| other.key == key) {
            let name = node.registries().keys.get(key).map_or(key.to_string(), |entry| entry.name.clone());
            node.problem("by", format!("lists the key `{name}` twice"));
            fine = false;
        }
        fine &= readable_column(node, "by", key, schema).is_some();
        by.push(SortKey { key, order: order.unwrap_or(default) });
    }
    fine.then_some(by)
}

/// About how long a row takes, in nanoseconds, to sort by these columns until the `first` rows are known.
pub(super) fn sort_cost(by: &[SortKey], first: Option<usize>) -> f64 {
    // Few rows are selected: then most rows are compared once with the worst row that is kept.
    const SELECTED: usize = 1_000;
    let per_key = if first.is_some_and(|first| first <= SELECTED) { 2.0 } else { 20.0 };
    per_key * by.len() as f64
}

/// The keys of an order, for demands.
pub(super) fn keys_of(by: &[SortKey]) -> impl Iterator<Item = Key> + '_ {
    by.iter().map(|by| by.key)
}

/// The rows that `count` and `offset` keep.
pub(super) fn window(node: &Node<'_>) -> Option<Window> {
    // No batch has more rows than this.
    let rows = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
    Some(Window { offset: rows(node.int("offset").unwrap_or(0)), count: rows(node.int("count")?) })
}
