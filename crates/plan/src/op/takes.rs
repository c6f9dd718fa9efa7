//! The demand that flows from a node's output to its inputs: columns and rows.

use anabranch_rows::Key;

use super::Window;
use crate::schema::KeySet;

/// The use that a node makes of one of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Takes {
    /// Columns that it looks at.
    pub reads: KeySet,
    /// True if the input's other columns are in the output when they are requested.
    pub passes: bool,
    /// The rows that it needs.
    pub rows: RowsNeeded,
    /// The columns that it adds, if it reads only for them. The input's own columns of these keys are not passed on. If
    /// none of them is needed, nothing is read.
    pub makes: KeySet,
    /// The columns of the input that are not passed on, because others of the same keys replace them.
    pub withholds: KeySet,
}

/// The rows of an input that a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsNeeded {
    /// All of them.
    All,
    /// The first `n` rows.
    First(u32),
    /// The rows of a window, or fewer of them if fewer are needed of the node itself.
    Window(Window),
    /// As many of the first rows as are needed of the node itself.
    AsAsked,
}

/// The demand on a node's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The columns that are read later; the others may be left out.
    pub keys: KeySet,
    /// The number of rows, if only the first ones are wanted.
    pub rows: Option<u32>,
}

impl Takes {
    /// All rows, and of their columns these, for itself.
    pub fn reading(reads: impl IntoIterator<Item = Key>) -> Takes {
        let reads = reads.into_iter().collect();
        let (makes, withholds) = (KeySet::default(), KeySet::default());
        Takes { reads, passes: false, rows: RowsNeeded::All, makes, withholds }
    }

    /// All rows, these columns for itself, the others for those who ask for them.
    pub fn passing(reads: impl IntoIterator<Item = Key>) -> Takes {
        Takes { passes: true, ..Takes::reading(reads) }
    }

    /// Only these rows.
    #[must_use]
    pub fn rows(mut self, rows: RowsNeeded) -> Takes {
        self.rows = rows;
        self
    }

    /// All but these columns, for those who ask for them.
    #[must_use]
    pub fn withholding(mut self, keys: impl IntoIterator<Item = Key>) -> Takes {
        self.withholds = keys.into_iter().collect();
        self
    }

    /// Only to make these columns.
    #[must_use]
    pub fn making(mut self, makes: impl IntoIterator<Item = Key>) -> Takes {
        self.makes = makes.into_iter().collect();
        self
    }
}
