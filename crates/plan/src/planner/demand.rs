//! The demand on each node: the columns and rows that nodes downstream read.

use anabranch_rows::Key;

use super::Draft;
use crate::op::{Demand, RowsNeeded};

/// The demand on each node. All columns and rows of an output are needed.
pub(super) fn of(order: &[usize], live: &[bool], drafts: &[Draft], outputs: &[usize]) -> Vec<Demand> {
    let mut asked: Vec<Option<Demand>> = vec![None; drafts.len()];
    for &place in outputs {
        let keys = drafts[place].planned.schema.iter().map(|(key, _)| key).collect();
        asked[place] = Some(Demand { keys, rows: None });
    }
    for &place in order.iter().rev().filter(|place| live[**place]) {
        let own = asked[place].clone().unwrap_or_default();
        for (&input, takes) in drafts[place].inputs.iter().zip(&drafts[place].planned.takes) {
            let rows = match takes.rows {
                RowsNeeded::All => None,
                RowsNeeded::First(count) => Some(own.rows.map_or(count, |asked| asked.min(count))),
                RowsNeeded::Window(window) => Some(window.at_most(own.rows).end()),
                RowsNeeded::AsAsked => own.rows,
            };
            let has = &drafts[input].planned.schema;
            let kept = |key: &Key| takes.makes.has(*key) || takes.withholds.has(*key);
            let passed = own.keys.iter().filter(|key| takes.passes && !kept(key));
            // A column that only serves to compute an unused column is not read.
            let idle = takes.makes.iter().len() > 0 && !takes.makes.iter().any(|key| own.keys.has(key));
            let reads = takes.reads.iter().filter(|_| !idle);
            let keys = reads.chain(passed).filter(|key| *key != Key::ID && has.kind(*key).is_some());
            join(&mut asked[input], rows, keys);
        }
    }
    asked.into_iter().map(Option::unwrap_or_default).collect()
}

/// Adds a demand for these rows and columns.
fn join(asked: &mut Option<Demand>, rows: Option<u32>, keys: impl Iterator<Item = Key>) {
    let demand = match asked {
        Some(demand) => {
            demand.rows = demand.rows.zip(rows).map(|(a, b)| a.max(b));
            demand
        }
        None => asked.insert(Demand { rows, ..Demand::default() }),
    };
    keys.for_each(|key| demand.keys.add(key));
}
