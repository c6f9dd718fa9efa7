//! Tests of the content crate.
