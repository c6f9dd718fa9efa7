//! Seeded random values: categories, distributions, dates, people.
//!
//! Each (column, row) has a random stream of its own, so that a value does not depend on the order in which values are
//! drawn.

mod params;

pub use params::*;
