//! Tests of the content crate.

mod store;
