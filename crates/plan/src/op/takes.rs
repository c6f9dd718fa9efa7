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
    /// Which rows it needs.
    pub rows: RowsNeeded,
    /// Columns that it makes, when that is all it reads for: the input's own are not passed on, and when nobody asks
    /// for one of these, nothing is read.
    pub makes: KeySet,
    /// Columns of the input that are not passed on: others of the same keys take their place.
    pub withholds: KeySet,
}

/// Which rows of an input a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsNeeded {
    /// All of them.
    All,
    /// The first so many.
    First(u32),
    /// The rows of a window, or fewer of them if fewer are asked of the node itself.
    Window(Window),
    /// The first so many as are asked of the node itself.
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
