//! The differences between the first rows of two answers.

use std::collections::HashMap;

use serde::Serialize;

/// A row, and the score that it is ranked by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RankedRow {
    pub(super) id: i64,
    pub(super) score: Option<f64>,
}

/// The differences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Change {
    /// True if it is not the same rows in the same order.
    pub(super) changed: bool,
    /// Rows that only the second answer has.
    pub(super) entered: u64,
    /// Rows that only the first answer has.
    pub(super) left: u64,
    /// Rows that both have.
    pub(super) common: u64,
    /// The total number of places that they moved.
    pub(super) moved: u64,
    /// The number of common rows that have a score in both.
    pub(super) scored: u64,
    /// The sum of the score differences.
    pub(super) shift: f64,
    /// The largest score difference.
    pub(super) most: f64,
}

/// The rows of an answer that changed, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangedRows {
    /// Rows that only the second answer has, in its order.
    pub entered: Vec<i64>,
    /// Rows that only the first answer has, in its order.
    pub left: Vec<i64>,
    /// Rows that both have, at another place.
    pub moved: Vec<MovedRow>,
}

/// A row at another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MovedRow {
    /// Its id.
    pub id: i64,
    /// Its place in the first answer, from 1.
    pub from: usize,
    /// Its place in the second answer, from 1.
    pub to: usize,
}

/// The rows that changed from one answer to another. The second row of an id is another one than its first.
pub(super) fn changed_rows(before: &[RankedRow], after: &[RankedRow]) -> ChangedRows {
    let (before_at, after_at) = (places(before), places(after));
    let only = |own: &HashMap<(i64, u32), usize>, other: &HashMap<(i64, u32), usize>| {
        let mut rows: Vec<(usize, i64)> =
            own.iter().filter(|(row, _)| !other.contains_key(*row)).map(|((id, _), at)| (*at, *id)).collect();
        rows.sort_unstable();
        rows.into_iter().map(|(_, id)| id).collect()
    };
    let mut moved: Vec<MovedRow> = before_at
        .iter()
        .filter_map(|(row, from)| {
            let to = after_at.get(row).filter(|to| *to != from)?;
            Some(MovedRow { id: row.0, from: from + 1, to: to + 1 })
        })
        .collect();
    moved.sort_unstable_by_key(|row| (row.to, row.from));
    ChangedRows { entered: only(&after_at, &before_at), left: only(&before_at, &after_at), moved }
}

/// Compares the rows of two answers. The second row of an id is another one than its first.
pub(super) fn compare(before: &[RankedRow], after: &[RankedRow]) -> Change {
    let before_at = places(before);
    let after_at = places(after);
    let mut change = Change {
        changed: before.len() != after.len() || before.iter().zip(after).any(|(a, b)| a.id != b.id),
        entered: after_at.keys().filter(|row| !before_at.contains_key(*row)).count() as u64,
        ..Change::default()
    };
    // In order: the sum of floats depends on it.
    let mut rows: Vec<((i64, u32), usize)> = before_at.into_iter().collect();
    rows.sort_unstable_by_key(|(_, at)| *at);
    for (row, at) in rows {
        let Some(now) = after_at.get(&row) else {
            change.left += 1;
            continue;
        };
        change.common += 1;
        change.moved += at.abs_diff(*now) as u64;
        if let (Some(was), Some(is)) = (before[at].score, after[*now].score) {
            let shift = (is - was).abs();
            change.scored += 1;
            change.shift += shift;
            change.most = change.most.max(shift);
        }
    }
    change
}

/// The position of each row, by its id and the number of earlier rows with this id.
fn places(rows: &[RankedRow]) -> HashMap<(i64, u32), usize> {
    let mut seen: HashMap<i64, u32> = HashMap::new();
    let mut places = HashMap::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let nth = seen.entry(row.id).or_default();
        places.insert((row.id, *nth), at);
        *nth += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{Change, RankedRow, compare};

    fn check(before: &[(i64, f64)], after: &[(i64, f64)], expected: Change) {
        let ranked = |rows: &[(i64, f64)]| -> Vec<RankedRow> {
            rows.iter().map(|(id, score)| RankedRow { id: *id, score: Some(*score) }).collect()
        };
        assert_eq!(compare(&ranked(before), &ranked(after)), expected);
    }

    #[test]
    fn rows_enter_leave_and_move() {
        let same = Change { common: 2, scored: 2, ..Change::default() };
        check(&[(1, 3.0), (2, 2.0)], &[(1, 3.0), (2, 2.0)], same);
        let swapped = Change {
            changed: true,
            common: 2,
            moved: 2,
            scored: 2,
            shift: 1.5,
            most: 1.0,
            ..Change::default()
        };
        check(&[(1, 3.0), (2, 2.0)], &[(2, 3.0), (1, 2.5)], swapped);
        let other = Change { changed: true, entered: 1, left: 1, common: 1, scored: 1, ..Change::default() };
        check(&[(1, 3.0), (2, 2.0)], &[(1, 3.0), (7, 2.0)], other);
        let fewer = Change { changed: true, left: 1, common: 1, scored: 1, ..Change::default() };
        check(&[(1, 3.0), (1, 3.0)], &[(1, 3.0)], fewer);
    }

    /// Sums of floats depend on their order.
    #[test]
    fn the_same_rows_shift_by_the_same() {
        let rows = |by: f64| -> Vec<RankedRow> {
            (1..40).map(|id| RankedRow { id, score: Some(by / id as f64) }).collect()
        };
        let (before, after) = (rows(0.1), rows(0.7));
        let first = compare(&before, &after);
        assert!((0..50).all(|_| compare(&before, &after) == first));
    }
}
