//! The relation of a node's output to its first input, checked after every node in debug builds.

use anabranch_rows::Rows;

/// The guarantee of an op about its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// The same rows active, in the same order; in a new batch if they were sparse.
    SameRows,
    /// Some of the active rows, in the same order.
    Subsequence,
    /// The first active rows.
    Prefix,
    /// The active rows in another order, or some of them if only the first are needed.
    Permutation,
    /// A new batch, all of it active.
    Dense,
    /// The first input or a new batch. Active rows must be valid.
    Any,
}

impl Contract {
    /// The rule that `output` breaks, if any.
    pub(crate) fn broken_by(self, input: Option<&Rows>, output: &Rows) -> Option<String> {
        let rows = output.batch().len();
        if let Some(row) = output.iter().find(|row| *row >= rows) {
            return Some(format!("row {row} is active, but the batch has {rows}"));
        }
        let same_batch = || input.filter(|input| input.batch().len() == rows);
        let fits = match self {
            Contract::Any => true,
            Contract::Dense => output.is_dense(),
            Contract::SameRows => match same_batch() {
                Some(input) => input.iter().eq(output.iter()),
                None => output.is_dense() && input.is_some_and(|input| input.ids().eq(output.ids())),
            },
            Contract::Prefix => {
                same_batch().is_some_and(|input| input.iter().take(output.len()).eq(output.iter()))
            }
            Contract::Subsequence => same_batch().is_some_and(|input| {
                let mut left = input.iter();
                output.iter().all(|row| left.any(|other| other == row))
            }),
            Contract::Permutation => same_batch().is_some_and(|input| {
                let mut seen = vec![0u8; rows];
                input.iter().for_each(|row| seen[row] = 1);
                output.iter().all(|row| std::mem::take(&mut seen[row]) == 1)
            }),
        };
        (!fits).then(|| format!("{self:?} does not hold for {} active of {rows} rows", output.len()))
    }
}
