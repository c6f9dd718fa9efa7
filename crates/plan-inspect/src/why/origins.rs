//! The input row of each row of a node.

use std::collections::{HashMap, HashSet};

use anabranch_rows::{Key, Rows};

use super::table::Table;
use super::values::{cell, name};
use anabranch_plan::op::{Contract, Join, Matching, Repeats, Rule};

/// A row of an input: the input, and the row's place there, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) position: usize,
}

/// The origin of each row of a node; `None` for rows that it brought.
pub(super) fn of(table: &Table<'_>, node: usize) -> Vec<Option<Place>> {
    let Some(rows) = table.rows(node) else { return Vec::new() };
    let found = by_rule(table, node, rows);
    // Rows of a fallback may not follow the rule. Then they are matched by id.
    let fits = |(position, place): (usize, &Option<Place>)| {
        let own = rows.batch().ids()[rows.row(position)];
        place.is_none_or(|place| id_at(table, node, place) == Some(own))
    };
    match found {
        Some(found) if found.len() >= rows.len() && found.iter().take(rows.len()).enumerate().all(fits) => {
            found
        }
        _ => by_id(table, node, rows),
    }
}

fn id_at(table: &Table<'_>, node: usize, Place { at, position }: Place) -> Option<i64> {
    let rows = table.input(node, at)?;
    // Not the iterator's: that one counts.
    (position < rows.len()).then(|| rows.batch().ids()[rows.row(position)])
}

fn by_rule(table: &Table<'_>, node: usize, rows: &Rows) -> Option<Vec<Option<Place>>> {
    let plan_node = table.node(node);
    if !plan_node.about.carries.contains(&true) {
        return Some(vec![None; rows.len()]);
    }
    let same = |at: usize| -> Vec<Option<Place>> {
        (0..rows.len()).map(|position| Some(Place { at, position })).collect()
    };
    if plan_node.choice.is_some() {
        return table.taken_side(node).map(same);
    }
    match &plan_node.about.rule {
        Some(Rule::Parts(inputs, repeats)) => parts(table, node, inputs, *repeats),
        Some(Rule::Joined(join)) => joined(table, node, *join, rows),
        _ => match plan_node.op.spec().contract {
            Contract::SameRows | Contract::Prefix => Some(same(0)),
            Contract::Subsequence | Contract::Permutation => by_batch(table.input(node, 0)?, rows),
            Contract::Dense | Contract::Any => None,
        },
    }
}

/// Rows of the same batch.
fn by_batch(input: &Rows, rows: &Rows) -> Option<Vec<Option<Place>>> {
    if input.batch().len() != rows.batch().len() {
        return None;
    }
    let places: HashMap<usize, usize> = input.iter().enumerate().map(|(at, row)| (row, at)).collect();
    let place = |row| Some(Place { at: 0, position: *places.get(&row)? });
    rows.iter().map(|row| place(row).map(Some)).collect()
}

/// Rows of several inputs, one after the other.
fn parts(table: &Table<'_>, node: usize, inputs: &[usize], repeats: Repeats) -> Option<Vec<Option<Place>>> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for &at in inputs {
        for (position, id) in table.input(node, at)?.ids().enumerate() {
            if repeats == Repeats::Stay || seen.insert(id) {
                found.push(Some(Place { at, position }));
            }
        }
    }
    Some(found)
}

fn joined(table: &Table<'_>, node: usize, join: Join, rows: &Rows) -> Option<Vec<Option<Place>>> {
    let left = table.input(node, 0)?;
    if matches!(join.matching, Matching::Semi | Matching::Anti) {
        return by_batch(left, rows);
    }
    let counts = counts(table.input(node, join.with)?, join.right);
    let mut found = Vec::new();
    for (position, row) in left.iter().enumerate() {
        let matches = value_name(left, join.left, row).and_then(|value| counts.get(&value).copied());
        let made = match (matches, join.matching) {
            (None, Matching::Left) => 1,
            (matches, _) => matches.unwrap_or(0),
        };
        found.extend((0..made).map(|_| Some(Place { at: 0, position })));
    }
    Some(found)
}

/// The number of rows there are of each value.
fn counts(rows: &Rows, key: Key) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let values = rows.iter().filter_map(|row| value_name(rows, key, row));
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

fn value_name(rows: &Rows, key: Key, row: usize) -> Option<String> {
    cell(rows, key, row).map(|value| name(&value))
}

/// The first row of an id is the first of that id among the inputs, and so on.
fn by_id(table: &Table<'_>, node: usize, rows: &Rows) -> Vec<Option<Place>> {
    let mut places: HashMap<i64, Vec<Place>> = HashMap::new();
    let carrying = (0..table.node(node).inputs.len()).filter(|at| table.node(node).about.carries[*at]);
    for at in carrying {
        for (position, id) in table.input(node, at).into_iter().flat_map(Rows::ids).enumerate() {
            places.entry(id).or_default().push(Place { at, position });
        }
    }
    let mut used: HashMap<i64, usize> = HashMap::new();
    let mut next = |id: i64| {
        let used = used.entry(id).or_default();
        *used += 1;
        places.get(&id)?.get(*used - 1).copied()
    };
    rows.ids().map(&mut next).collect()
}
