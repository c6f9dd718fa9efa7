//! A stable sort of rows by one or several columns, and the first rows of that order (top-k).
//!
//! Each value is encoded as a 64-bit number whose order is that of the values. The sort compares pairs of this number
//! and the row's position, so rows with equal values keep their order. Nulls come last in either direction.

use std::cmp::Ordering;

use crate::key::Key;
use crate::numbers::{Numbers, Values, of_float, of_int};
use crate::rows::{Rows, Selection};
use crate::vectors::with_wide_vectors;

/// One column to sort by, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The column; [`Key::ID`] sorts by the ids.
    pub key: Key,
    pub order: Order,
}

/// The direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Rows that are handled between two calls of `stop`.
const CHUNK: usize = 1 << 14;

/// Rows that are encoded together, so that the loops over them are simple.
const BLOCK: usize = 256;

/// The most rows that are looked at for a first bound of a selection.
const SAMPLE: usize = 1 << 13;

/// The encoded value of a row, and the row's position among the active rows.
type Entry = (u64, u32);

impl Rows {
    /// The active rows, sorted by the first key; rows that are equal there are sorted by the next key, and so on. The
    /// sort is stable, and nulls are last. With a `limit`, only that many rows, without sorting the others.
    ///
    /// The sort calls `stop` regularly and returns `None` once that returns `true`. The rows must have the columns.
    pub fn sorted(
        &self,
        by: &[SortKey],
        limit: Option<usize>,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Rows> {
        let wanted = limit.unwrap_or(usize::MAX).min(self.len());
        let Some((leading, others)) = by.split_first().filter(|_| wanted > 0) else {
            return Some(self.first(wanted));
        };
        let numbers = SortNumbers::of(self, *leading);
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
        Some(self.with_active(match self.selection() {
            Selection::First(_) => positions,
            Selection::List(list) => positions.iter().map(|position| list[*position as usize]).collect(),
        }))
    }

    /// Sorts each run of positions with equal values by the remaining keys.
    fn sort_runs(
        &self,
        positions: &mut [u32],
        runs: impl Iterator<Item = usize>,
        by: &[SortKey],
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<()> {
        let keys: Vec<SortNumbers<'_>> = by.iter().map(|key| SortNumbers::of(self, *key)).collect();
        let compare = |a: &u32, b: &u32| {
            let (row_a, row_b) = (self.row(*a as usize), self.row(*b as usize));
            let mut orders =
                keys.iter().map(|numbers| numbers.compare_by(row_a).cmp(&numbers.compare_by(row_b)));
            orders.find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(b))
        };
        let mut since_stop_check = 0;
        let mut rest = positions;
        for run in runs {
            let (equal, others) = rest.split_at_mut(run);
            rest = others;
            since_stop_check += run;
            if since_stop_check < CHUNK {
                equal.sort_unstable_by(compare);
            } else {
                since_stop_check = 0;
                sort_parts(equal, &compare, stop)?;
            }
        }
        Some(())
    }
}

/// The rows that may be part of the result: those with a value, and the positions of those without.
struct Candidates {
    entries: Vec<Entry>,
    nulls: Vec<u32>,
}

/// The treatment of rows that are equal to the last row of the result.
#[derive(Clone, Copy, PartialEq)]
enum Ties {
    /// The sort is by one key: rows that come later are not needed.
    Drop,
    /// Another key decides between them.
    Keep,
}

/// The numbers of a column in the direction of the sort.
struct SortNumbers<'a> {
    numbers: Numbers<'a>,
    /// All bits set for a descending order, otherwise 0; combined with each number by exclusive or.
    flip: u64,
}

impl<'a> SortNumbers<'a> {
    fn of(rows: &'a Rows, by: SortKey) -> SortNumbers<'a> {
        let flip = if by.order == Order::Descending { u64::MAX } else { 0 };
        SortNumbers { numbers: Numbers::ordered(rows, by.key), flip }
    }

    /// The value to compare a row by: nulls last, then the number.
    fn compare_by(&self, row: usize) -> (bool, u64) {
        self.numbers.get(row).map_or((true, 0), |number| (false, number ^ self.flip))
    }

    /// All active rows, not sorted yet.
    fn all(&self, rows: &Rows, stop: &mut dyn FnMut() -> bool) -> Option<Candidates> {
        let mut candidates = Candidates { entries: Vec::with_capacity(rows.len()), nulls: Vec::new() };
        self.for_each_block(rows, stop, |block| match block {
            Block::Numbers(numbers, start) => {
                candidates.entries.extend(numbers.iter().copied().zip(start..));
            }
            Block::One(Some(number), position) => candidates.entries.push((number, position)),
            Block::One(None, position) => candidates.nulls.push(position),
        })?;
        Some(candidates)
    }

    /// A number that at least `wanted` rows do not exceed: the worst that is wanted of a sample, one row in so many.
    /// Without it, rows in ascending order would all be candidates, each better than those before it.
    fn first_bound(&self, rows: &Rows, wanted: usize) -> Option<u64> {
        let sample = (8 * wanted).max(1024).min(rows.len() / 4).min(SAMPLE);
        if sample < 2 * wanted {
            return None;
        }
        let step = rows.len() / sample;
        let sampled = (0..sample).map(|at| self.compare_by(rows.row(at * step)));
        let mut sampled: Vec<u64> = sampled.filter(|(null, _)| !null).map(|(_, number)| number).collect();
        if sampled.len() < wanted {
            return None;
        }
        let (_, worst, _) = sampled.select_nth_unstable(wanted - 1);
        Some(*worst)
    }

    /// At least the first `wanted` rows of the sorted order and few others, not sorted yet.
    fn select(
        &self,
        rows: &Rows,
        wanted: usize,
        ties: Ties,
        stop: &mut dyn FnMut() -> bool,
    ) -> Option<Candidates> {
        let room = (2 * wanted).max(1024);
        let mut candidates = Candidates { entries: Vec::with_capacity(room), nulls: Vec::new() };
        // When ties are kept, a row that is equal to the worst kept row must stay, so the bound is one higher.
        let slack = u64::from(ties == Ties::Keep);
        // Rows of the sample are not candidates yet, so that rows equal to its worst may be needed.
        let mut bound: Option<u64> = self.first_bound(rows, wanted).and_then(|worst| worst.checked_add(1));
        let mut limit = room;
        let mut consider =
            |candidates: &mut Candidates, bound: &mut Option<u64>, number: u64, position: u32| {
                if bound.is_some_and(|bound| number >= bound) {
                    return;
                }
                candidates.entries.push((number, position));
                if candidates.entries.len() < limit {
                    return;
                }
                let (_, worst, _) = candidates.entries.select_nth_unstable(wanted - 1);
                let worst = worst.0;
                *bound = worst.checked_add(slack);
                if ties == Ties::Keep {
                    candidates.entries.retain(|(number, _)| *number <= worst);
                    limit = room.max(2 * candidates.entries.len());
                } else {
                    candidates.entries.truncate(wanted);
                }
            };
        self.for_each_block(rows, stop, |block| match block {
            Block::Numbers(numbers, start) => {
                if let Some(bound) = bound
                    && !any_below(numbers, bound)
                {
                    return;
                }
                for (number, position) in numbers.iter().zip(start..) {
                    consider(&mut candidates, &mut bound, *number, position);
                }
            }
            Block::One(Some(number), position) => consider(&mut candidates, &mut bound, number, position),
            Block::One(None, position) => {
                if candidates.nulls.len() < wanted || ties == Ties::Keep {
                    candidates.nulls.push(position);
                }
            }
        })?;
        if candidates.entries.len() >= wanted && ties == Ties::Drop {
            candidates.entries.select_nth_unstable(wanted - 1);
            candidates.entries.truncate(wanted);
        }
        if candidates.entries.len() >= wanted {
            candidates.nulls.clear();
        }
        Some(candidates)
    }

    /// Calls `visit` with the numbers of the active rows, in their order.
    fn for_each_block(
        &self,
        rows: &Rows,
        stop: &mut dyn FnMut() -> bool,
        mut visit: impl FnMut(Block<'_>),
    ) -> Option<()> {
        let flip = self.flip;
        match &self.numbers.values {
            Values::Ints(values) => {
                self.for_each_number(rows, stop, |row| of_int(values[row]) ^ flip, &mut visit)
            }
            Values::Floats(values) => {
                self.for_each_number(rows, stop, |row| of_float(values[row]) ^ flip, &mut visit)
            }
            Values::Bools(values) => {
                self.for_each_number(rows, stop, |row| u64::from(values.value(row)) ^ flip, &mut visit)
            }
            Values::Texts(codes, ranks) => {
                self.for_each_number(rows, stop, |row| ranks.get(codes[row]) ^ flip, &mut visit)
            }
        }
    }

    fn for_each_number(
        &self,
        rows: &Rows,
        stop: &mut dyn FnMut() -> bool,
        number: impl Fn(usize) -> u64,
        visit: &mut impl FnMut(Block<'_>),
    ) -> Option<()> {
        let mut numbers = [0u64; BLOCK];
        for start in (0..rows.len()).step_by(BLOCK) {
            let positions = start..(start + BLOCK).min(rows.len());
            let numbers = &mut numbers[..positions.len()];
            match (rows.selection(), self.numbers.nulls) {
                (Selection::First(_), None) => {
                    with_wide_vectors(
                        #[inline(always)]
                        || numbers.iter_mut().zip(positions).for_each(|(out, row)| *out = number(row)),
                    );
                    visit(Block::Numbers(numbers, start as u32));
                }
                (Selection::List(list), None) => {
                    let listed = &list[positions];
                    with_wide_vectors(
                        #[inline(always)]
                        || numbers.iter_mut().zip(listed).for_each(|(out, row)| *out = number(*row as usize)),
                    );
                    visit(Block::Numbers(numbers, start as u32));
                }
                (_, Some(nulls)) => positions.for_each(|position| {
                    let row = rows.row(position);
                    visit(Block::One(nulls.is_valid(row).then(|| number(row)), position as u32));
                }),
            }
            if start % CHUNK == 0 && stop() {
                return None;
            }
        }
        Some(())
    }
}

/// Encoded values of active rows.
enum Block<'a> {
    /// Of some rows without nulls, and the position of the first.
    Numbers(&'a [u64], u32),
    /// Of one row (`None` for null), and its position.
    One(Option<u64>, u32),
}

/// True if a number is below the bound; looked at without branches.
fn any_below(numbers: &[u64], bound: u64) -> bool {
    with_wide_vectors(
        #[inline(always)]
        || numbers.iter().fold(0, |any, number| any | u64::from(*number < bound)) != 0,
    )
}

/// Partitions the items in halves until a part is short, so that `stop` can be called between the parts.
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
