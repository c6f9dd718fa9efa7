//! Rows in the order of their values.
//!
//! Each value becomes a 64-bit number that sorts as the value does; what is sorted are these numbers, each with its
//! row's position, so that equal values keep their order. Nulls come last, whichever way the others go.

use std::cmp::Ordering;

use arrow_array::{Array, BooleanArray};
use arrow_buffer::NullBuffer;

use crate::column::{Column, Text};
use crate::key::Key;
use crate::rows::{Active, Rows};

/// What to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The column; the ids are one.
    pub key: Key,
    /// Which way.
    pub order: Order,
}

/// Which way to sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Small to large.
    Ascending,
    /// Large to small.
    Descending,
}

/// Rows between two looks at whether to stop.
const CHUNK: usize = 1 << 14;

/// The position of a row among the active ones, under the number it sorts by.
type Entry = (u64, u32);

impl Rows {
    /// The active rows sorted by the first key, those that are equal by the next, those equal in all in the order
    /// they had. Nulls are last. With `first`, only the first so many, found without sorting the others.
    ///
    /// `stop` is asked now and then; once it says yes, there is no result. The rows must have the columns.
    pub fn sorted(
        &self,
        by: &[SortKey],
        first: Option<usize>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Rows> {
        let wanted = first.unwrap_or(usize::MAX).min(self.len());
        let Some((leading, others)) = by.split_first().filter(|_| wanted > 0) else {
            return Some(self.first(wanted));
        };
        let numbers = Numbers::of(self, *leading);
        let mut sorted = if wanted <= self.len() / 4 {
            let ties = if others.is_empty() { Ties::Drop } else { Ties::Keep };
            numbers.select(self, wanted, ties, stop)?
        } else {
            numbers.all(self, stop)?
        };
        sort_parts(&mut sorted.entries, &Entry::cmp, stop)?;
        let mut positions: Vec<u32> = Vec::with_capacity(sorted.entries.len() + sorted.nulls.len());
        positions.extend(sorted.entries.iter().map(|(_, position)| *position));
        positions.extend_from_slice(&sorted.nulls);
        if !others.is_empty() {
            let equal = |a: &Entry, b: &Entry| a.0 == b.0;
            let runs = sorted.entries.chunk_by(equal).map(<[Entry]>::len).chain([sorted.nulls.len()]);
            self.sort_runs(&mut positions, runs, others, stop)?;
        }
        positions.truncate(wanted);
        Some(self.with_active(match self.active() {
            Active::First(_) => positions,
            Active::List(list) => positions.iter().map(|position| list[*position as usize]).collect(),
        }))
    }

    /// Sorts each run of positions that are equal so far by the keys that are left.
    fn sort_runs(
        &self,
        positions: &mut [u32],
        runs: impl Iterator<Item = usize>,
        by: &[SortKey],
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<()> {
        let keys: Vec<Numbers<'_>> = by.iter().map(|key| Numbers::of(self, *key)).collect();
        let compare = |a: &u32, b: &u32| {
            let (row_a, row_b) = (self.row(*a as usize), self.row(*b as usize));
            let mut orders = keys.iter().map(|numbers| numbers.place(row_a).cmp(&numbers.place(row_b)));
            orders.find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(b))
        };
        let mut unasked = 0;
        let mut rest = positions;
        for run in runs {
            let (equal, others) = rest.split_at_mut(run);
            rest = others;
            unasked += run;
            if unasked < CHUNK {
                equal.sort_unstable_by(compare);
            } else {
                unasked = 0;
                sort_parts(equal, &compare, stop)?;
            }
        }
        Some(())
    }
}

/// Positions of rows that have a value, with its number, and of rows that have none.
struct Split {
    entries: Vec<Entry>,
    nulls: Vec<u32>,
}

/// What becomes of rows equal to the last one wanted.
#[derive(Clone, Copy, PartialEq)]
enum Ties {
    /// Those that come later are not needed.
    Drop,
    /// Another key decides.
    Keep,
}

/// The numbers that a column's values sort by.
struct Numbers<'a> {
    values: Values<'a>,
    nulls: Option<&'a NullBuffer>,
    /// All ones to turn the order around.
    flip: u64,
}

enum Values<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Bools(&'a BooleanArray),
    Ranks(&'a [i32], Ranks),
}

impl<'a> Numbers<'a> {
    fn of(rows: &'a Rows, by: SortKey) -> Numbers<'a> {
        let batch = rows.batch();
        let flip = if by.order == Order::Descending { u64::MAX } else { 0 };
        if by.key == Key::ID {
            return Numbers { values: Values::Ints(batch.ids()), nulls: None, flip };
        }
        let column = batch.column(by.key).expect("rows have the columns that they are sorted by");
        let values = match column {
            Column::Int(values) => Values::Ints(values.values()),
            Column::Float(values) => Values::Floats(values.values()),
            Column::Bool(values) => Values::Bools(values),
            Column::Text(text) => Values::Ranks(text.codes().values(), Ranks::of(text, rows)),
        };
        Numbers { values, nulls: column.nulls().filter(|nulls| nulls.null_count() > 0), flip }
    }

    /// What to compare a row by: nulls last, then by number.
    fn place(&self, row: usize) -> (bool, u64) {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return (true, 0);
        }
        let number = match &self.values {
            Values::Ints(values) => of_int(values[row]),
            Values::Floats(values) => of_float(values[row]),
            Values::Bools(values) => u64::from(values.value(row)),
            Values::Ranks(codes, ranks) => ranks.of_code(codes[row]),
        };
        (false, number ^ self.flip)
    }

    /// All active rows.
    fn all(&self, rows: &Rows, stop: &mut dyn FnMut() -> bool) -> Option<Split> {
        let mut split = Split { entries: Vec::with_capacity(rows.len()), nulls: Vec::new() };
        self.each(rows, stop, |number, position| match number {
            Some(number) => split.entries.push((number, position)),
            None => split.nulls.push(position),
        })?;
        Some(split)
    }

    /// At least the first `wanted` rows of the order, and few others.
    fn select(
        &self,
        rows: &Rows,
        wanted: usize,
        ties: Ties,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Split> {
        let room = (2 * wanted).max(1024);
        let mut split = Split { entries: Vec::with_capacity(room), nulls: Vec::new() };
        // With ties kept, a row as good as the worst kept one must stay, so the bound is one higher.
        let slack = u64::from(ties == Ties::Keep);
        let mut bound: Option<u64> = None;
        let mut limit = room;
        self.each(rows, stop, |number, position| {
            let Some(number) = number else {
                if split.nulls.len() < wanted || ties == Ties::Keep {
                    split.nulls.push(position);
                }
                return;
            };
            if bound.is_some_and(|bound| number >= bound) {
                return;
            }
            split.entries.push((number, position));
            if split.entries.len() < limit {
                return;
            }
            let (_, worst, _) = split.entries.select_nth_unstable(wanted - 1);
            let worst = worst.0;
            bound = worst.checked_add(slack);
            if ties == Ties::Keep {
                split.entries.retain(|(number, _)| *number <= worst);
                limit = room.max(2 * split.entries.len());
            } else {
                split.entries.truncate(wanted);
            }
        })?;
        if split.entries.len() >= wanted && ties == Ties::Drop {
            split.entries.select_nth_unstable(wanted - 1);
            split.entries.truncate(wanted);
        }
        if split.entries.len() >= wanted {
            split.nulls.clear();
        }
        Some(split)
    }

    /// Calls `see` with the number and position of each active row.
    fn each(
        &self,
        rows: &Rows,
        stop: &mut dyn FnMut() -> bool,
        mut see: impl FnMut(Option<u64>, u32),
    ) -> Option<()> {
        let flip = self.flip;
        match &self.values {
            Values::Ints(values) => self.walk(rows, stop, |row| of_int(values[row]) ^ flip, &mut see),
            Values::Floats(values) => self.walk(rows, stop, |row| of_float(values[row]) ^ flip, &mut see),
            Values::Bools(values) => {
                self.walk(rows, stop, |row| u64::from(values.value(row)) ^ flip, &mut see)
            }
            Values::Ranks(codes, ranks) => {
                self.walk(rows, stop, |row| ranks.of_code(codes[row]) ^ flip, &mut see)
            }
        }
    }

    fn walk(
        &self,
        rows: &Rows,
        stop: &mut dyn FnMut() -> bool,
        number: impl Fn(usize) -> u64,
        see: &mut impl FnMut(Option<u64>, u32),
    ) -> Option<()> {
        for start in (0..rows.len()).step_by(CHUNK) {
            let chunk = start..(start + CHUNK).min(rows.len());
            match (rows.active(), self.nulls) {
                (Active::First(_), None) => chunk.for_each(|row| see(Some(number(row)), row as u32)),
                (Active::List(list), None) => {
                    let listed = list[chunk.clone()].iter().zip(chunk);
                    listed.for_each(|(row, at)| see(Some(number(*row as usize)), at as u32));
                }
                (_, Some(nulls)) => chunk.for_each(|position| {
                    let row = rows.row(position);
                    see(nulls.is_valid(row).then(|| number(row)), position as u32);
                }),
            }
            if stop() {
                return None;
            }
        }
        Some(())
    }
}

fn of_int(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// Sorts as floats do, with one zero.
fn of_float(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    bits ^ (((bits as i64 >> 63) as u64) | (1 << 63))
}

/// Sorts in halves, so that it can stop between them.
fn sort_parts<T>(
    items: &mut [T],
    compare: &impl Fn(&T, &T) -> Ordering,
    stop: &mut dyn FnMut() -> bool,
) -> Option<()> {
    if items.len() <= CHUNK {
        items.sort_unstable_by(compare);
        return (!stop()).then_some(());
    }
    let middle = items.len() / 2;
    items.select_nth_unstable_by(middle, compare);
    let (low, high) = items.split_at_mut(middle);
    sort_parts(low, compare, stop)?;
    sort_parts(high, compare, stop)
}

/// Where the strings of a dictionary stand among each other.
enum Ranks {
    /// By code.
    All(Vec<u32>),
    /// Of the codes that rows use, by ascending code.
    Used(Vec<(i32, u32)>),
}

impl Ranks {
    fn of(text: &Text, rows: &Rows) -> Ranks {
        let dictionary = text.dictionary();
        let codes = text.codes();
        let whole = dictionary.len() <= 2 * rows.len();
        let mut used: Vec<i32> = if whole {
            (0..dictionary.len() as i32).collect()
        } else {
            let valid = rows.iter().filter(|row| codes.is_valid(*row));
            valid.map(|row| codes.value(row)).collect()
        };
        used.sort_unstable_by_key(|code| (dictionary.get(*code), *code));
        used.dedup();
        let mut rank = 0;
        let mut ranked: Vec<(i32, u32)> = Vec::with_capacity(used.len());
        for (at, code) in used.iter().enumerate() {
            rank += u32::from(at > 0 && dictionary.get(used[at - 1]) != dictionary.get(*code));
            ranked.push((*code, rank));
        }
        ranked.sort_unstable();
        if whole {
            Ranks::All(ranked.into_iter().map(|(_, rank)| rank).collect())
        } else {
            Ranks::Used(ranked)
        }
    }

    fn of_code(&self, code: i32) -> u64 {
        u64::from(match self {
            Ranks::All(ranks) => ranks[code as usize],
            Ranks::Used(ranks) => {
                let at = ranks.binary_search_by_key(&code, |(code, _)| *code);
                ranks[at.expect("the codes of active rows are ranked")].1
            }
        })
    }
}
