//! The rule by which rows of a node's inputs are in its output, and at which position: as data, so that `why` can
//! explain it.

use anabranch_rows::{Key, Rows, SortKey};

/// The rule by which a node's rows come from those of its inputs. A node without a rule is explained by its rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// The rows for which the predicate in this parameter holds.
    Where(&'static str),
    /// The rows of a window.
    Slice(Window),
    /// All of them, in the order of these columns.
    Sorted(Vec<SortKey>),
    /// The rows of a window, in the order of these columns.
    Top(Vec<SortKey>, Window),
    /// The first `n` rows of each value of a column, and all rows without a value.
    PerValue(Key, u32),
    /// One row of each value of a column, and all rows without a value.
    Once(Key, Keep),
    /// The rows of these inputs, one after the other.
    Parts(Vec<usize>, Repeats),
    /// The rows of the first input, by their matches in another one.
    Joined(Join),
    /// New rows: at most this many ids from the list of each row.
    Listed(u32),
}

/// A run of rows: `offset` rows are skipped, then at most `count` rows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of rows before the first that is kept.
    pub offset: u32,
    /// The most rows that are kept.
    pub count: u32,
}

impl Window {
    /// The number of input rows that are looked at.
    pub fn end(self) -> u32 {
        self.offset.saturating_add(self.count)
    }

    /// The rows of the window.
    pub fn of(self, rows: &Rows) -> Rows {
        let Window { offset, count } = self;
        if offset == 0 {
            return rows.first(count as usize);
        }
        let kept = rows.iter().skip(offset as usize).take(count as usize);
        rows.with_active(kept.map(|row| row as u32).collect::<Vec<_>>())
    }

    /// The window without the rows behind the first `rows` of it.
    #[must_use]
    pub fn at_most(self, rows: Option<u32>) -> Window {
        Window { count: rows.map_or(self.count, |rows| rows.min(self.count)), ..self }
    }
}

/// The one of several equal rows that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first.
    First,
    /// The last.
    Last,
}

/// The treatment of an id that occurs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// The duplicate stays.
    Stay,
    /// The first stays.
    Go,
}

/// The matching of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The index of the input that they are matched with.
    pub with: usize,
    /// The column of the first input.
    pub left: Key,
    /// The column of the other.
    pub right: Key,
    /// The treatment of rows with and without a match.
    pub matching: Matching,
}

/// The treatment of rows that match, and of those that do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// A row for each match.
    Inner,
    /// A row for each match, and one for a row that matches nothing.
    Left,
    /// The rows that match.
    Semi,
    /// The rows that do not.
    Anti,
}

impl Rule {
    /// Whether rows of the input at this index come out unless they are dropped. `passes` is from the node's `Takes`.
    pub(crate) fn carries(&self, at: usize, passes: bool) -> bool {
        match self {
            Rule::Listed(_) => false,
            Rule::Joined(_) => at == 0,
            _ => passes,
        }
    }
}
