//! Plans that compute and read nothing: what they are, and how a loop by hand does the same.

use super::plans::{self, KEPT, LISTED, WEIGHT};

/// A plan that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Score, filter, sort, take.
    Pipeline(usize),
    /// A larger score, a larger filter.
    Expr(usize),
}

pub(super) const ALL: [Work; 5] = [
    Work::Pipeline(10),
    Work::Pipeline(1_000),
    Work::Pipeline(10_000),
    Work::Pipeline(100_000),
    Work::Expr(10_000),
];

impl Work {
    pub(super) fn name(self) -> String {
        match self {
            Work::Pipeline(rows) => format!("cpu_pipeline_{rows}"),
            Work::Expr(rows) => format!("cpu_expr_{rows}"),
        }
    }

    pub(super) fn rows(self) -> usize {
        let (Work::Pipeline(rows) | Work::Expr(rows)) = self;
        rows
    }

    pub(super) fn plan(self) -> String {
        match self {
            Work::Pipeline(rows) => plans::cpu_pipeline(rows),
            Work::Expr(rows) => plans::cpu_expr(rows),
        }
    }

    /// The same by hand.
    pub(super) fn by_hand(self) -> Vec<(i64, f64)> {
        match self {
            Work::Pipeline(rows) => pipeline(rows),
            Work::Expr(rows) => expr(rows),
        }
    }
}

fn pipeline(rows: usize) -> Vec<(i64, f64)> {
    let mut good = Vec::with_capacity(rows);
    good.extend((1..=rows as i64).map(|id| (id, id as f64 * WEIGHT)).filter(|(_, score)| *score >= 0.6));
    // The earlier first where scores are equal, as a stable sort has it: ids rise here.
    let falling = |a: &(i64, f64), b: &(i64, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if good.len() > KEPT {
        good.select_nth_unstable_by(KEPT, falling);
        good.truncate(KEPT);
    }
    good.sort_unstable_by(falling);
    good
}

fn expr(rows: usize) -> Vec<(i64, f64)> {
    let mut good = Vec::with_capacity(rows);
    for id in 1..=rows as i64 {
        let x = id as f64;
        let score = x * 0.5 + (x * WEIGHT - -(x + 3.0));
        if (score > 100.0 || LISTED.contains(&id)) && score != 7.0 {
            good.push((id, score));
        }
    }
    good
}

/// Looks at every id and score once: an answer is there to be read.
pub(super) fn read_out(rows: impl IntoIterator<Item = (i64, f64)>) -> u64 {
    let add = |sum: u64, (id, score): (i64, f64)| sum.wrapping_add(id as u64).wrapping_add(score.to_bits());
    rows.into_iter().fold(0, add)
}

/// Sums up rows, so that two answers can be compared from afar.
pub(super) fn digest(rows: impl IntoIterator<Item = (i64, f64)>) -> u64 {
    let add = |sum: u64, part: u64| (sum ^ part).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    rows.into_iter().fold(0xcbf2_9ce4_8422_2325, |sum, (id, score)| add(add(sum, id as u64), score.to_bits()))
}
