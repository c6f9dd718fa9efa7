//! The features of a model: their columns, and their values for a few rows at a time.

use std::collections::HashSet;

use anabranch_rows::{Column, Key, Kind, Rows, Selection};
use anabranch_scorer::Scorer;
use anabranch_text::quote;
use arrow_buffer::NullBuffer;
use serde_json::{Map, Value};

use super::super::fields::key_entry;

use crate::op::Node;
use crate::schema::Schema;

/// The columns of the features that a model uses, in its order.
pub(super) struct Features(Vec<Key>);

/// The treatment of a null.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NullTreatment {
    /// The score is null.
    Null,
    /// It counts as 0.
    Zero,
    /// The model sees NaN.
    Model,
}

impl Features {
    /// The columns of these features, from the parameter `features` or the key of the same name.
    pub(super) fn resolve(node: &mut Node<'_>, scorer: &Scorer, schema: &Schema) -> Option<Features> {
        let none = Map::new();
        let listed = match node.json("features") {
            None => &none,
            Some(Value::Object(listed)) => listed,
            Some(_) => {
                node.problem("features", "not an object of features and their keys");
                return None;
            }
        };
        let known: HashSet<&str> = scorer.all_features().iter().map(String::as_str).collect();
        let mut fine = true;
        for name in listed.keys().filter(|name| !known.contains(name.as_str())) {
            let what = format!("the model has no feature {}", quote(name));
            node.unknown("features", what, name, scorer.all_features().iter().map(String::as_str));
            fine = false;
        }
        let keys: Vec<Option<Key>> =
            scorer.features().iter().map(|name| key_of(node, name, listed.get(name), schema)).collect();
        let keys: Option<Vec<Key>> = keys.into_iter().collect();
        keys.filter(|_| fine).map(Features)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.0.iter().copied()
    }

    /// The code that reads their values.
    pub(super) fn reader<'a>(&self, rows: &'a Rows, missing: NullTreatment) -> Reader<'a> {
        let column = |key: Key| {
            if key == Key::ID {
                return Values::Ids(rows.batch().ids());
            }
            let column = rows.batch().column(key);
            Values::Column(column.expect("a node before made the column, as checked at load"))
        };
        let columns = if rows.is_empty() { Vec::new() } else { self.keys().map(column).collect() };
        Reader { rows, columns, missing }
    }
}

fn key_of(node: &mut Node<'_>, name: &str, listed: Option<&Value>, schema: &Schema) -> Option<Key> {
    let place = format!("features, `{name}`");
    let entry = match listed {
        Some(key) => key_entry(node, &place, key)?,
        None => match node.registries().keys.named(name) {
            Some(entry) => entry,
            None => {
                let help = format!("`features: {{\"{name}\": KEY}}` says which key it is");
                node.problem_with_help(&place, "the model uses it, and there is no key of this name", help);
                return None;
            }
        },
    };
    node.readable(&place, entry)?;
    match schema.kind(entry.key) {
        Some(Kind::Text) => {
            node.problem(&place, format!("key `{}` is string; features are numbers or bools", entry.name));
            None
        }
        Some(_) => Some(entry.key),
        None => {
            let what = format!("the rows have no column `{}` here", entry.name);
            node.problem_with_help(&place, what, "a node before this one has to make it");
            None
        }
    }
}

/// Reads the features of active rows.
pub(super) struct Reader<'a> {
    rows: &'a Rows,
    columns: Vec<Values<'a>>,
    missing: NullTreatment,
}

enum Values<'a> {
    Ids(&'a [i64]),
    Column(&'a Column),
}

impl Reader<'_> {
    /// Writes the features of the active rows from position `start` on to `values`, a row after the other, and to
    /// `valid` whether a row has all it needs.
    pub(super) fn read(&self, start: usize, values: &mut [f64], valid: &mut [bool]) {
        valid.fill(true);
        let width = self.columns.len();
        for (feature, column) in self.columns.iter().enumerate() {
            let slots = values[feature..].iter_mut().step_by(width).zip(&mut *valid);
            match column {
                Values::Ids(ids) => self.fill(start, slots, None, |row| ids[row] as f64),
                Values::Column(column) => {
                    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
                    match column {
                        Column::Int(ints) => self.fill(start, slots, nulls, |row| ints.values()[row] as f64),
                        Column::Float(floats) => self.fill(start, slots, nulls, |row| floats.values()[row]),
                        Column::Bool(bools) => {
                            self.fill(start, slots, nulls, |row| f64::from(u8::from(bools.value(row))));
                        }
                        Column::Text(_) => unreachable!("strings are not features, as checked at load"),
                    }
                }
            }
        }
    }

    /// Writes one feature of the active rows from position `start` on.
    fn fill<'s>(
        &self,
        start: usize,
        slots: impl Iterator<Item = (&'s mut f64, &'s mut bool)>,
        nulls: Option<&NullBuffer>,
        value: impl Fn(usize) -> f64,
    ) {
        match (self.rows.selection(), nulls) {
            (Selection::First(_), None) => {
                slots.zip(start..).for_each(|((slot, _), row)| *slot = value(row));
            }
            (Selection::List(list), None) => {
                slots.zip(&list[start..]).for_each(|((slot, _), row)| *slot = value(*row as usize));
            }
            (_, Some(nulls)) => {
                for ((slot, valid), position) in slots.zip(start..) {
                    let row = self.rows.row(position);
                    *slot = match (nulls.is_valid(row), self.missing) {
                        (true, _) => value(row),
                        (false, NullTreatment::Zero) => 0.0,
                        (false, NullTreatment::Model) => f64::NAN,
                        (false, NullTreatment::Null) => {
                            *valid = false;
                            0.0
                        }
                    };
                }
            }
        }
    }
}
