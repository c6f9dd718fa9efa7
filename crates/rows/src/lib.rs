//! Columnar tables over Arrow memory.
//!
//! A [`Batch`] is an immutable table: one id per row, and columns by [`Key`]. [`Rows`] is a batch together with its
//! active rows in order (a selection vector). To filter, sort or truncate rows makes a new selection and copies no
//! column; [`Rows::compact`] and [`Rows::concat`] copy. Code that adds columns begins with [`Rows::to_extend`], which
//! copies the active rows when there are few of them.
//!
//! ```
//! use anabranch_rows::*;
//! let batch = Batch::new(vec![7, 8, 9]).with_column(Key(2001), Column::floats([Some(0.3), None, Some(0.9)]));
//! let rows = Rows::new(batch).with_active(vec![2, 0]);
//! assert_eq!(rows.ids().collect::<Vec<_>>(), [9, 7]);
//! assert_eq!(rows.first(1).ids().collect::<Vec<_>>(), [9]);
//! ```

mod vectors;
mod key;
mod dictionary;
mod column;
mod batch;
mod rows;
mod cell;
mod gather;
mod numbers;
mod sort;
mod concat;
mod arrow;

pub use arrow::Error;
pub use batch::Batch;
pub use cell::Cell;
pub use column::{Column, Text};
pub use dictionary::{Dictionary, Interner};
pub use key::{Key, Kind};
pub use numbers::Numbers;
pub use rows::{Rows, Selection};
pub use sort::{Order, SortKey};
pub use vectors::with_wide_vectors;
