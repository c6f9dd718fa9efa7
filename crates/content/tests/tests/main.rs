//! Tests of the content crate.

mod store;
mod kill;
