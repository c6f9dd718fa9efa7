//! Tests of recipes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod deriva;
mod file;
mod seed;
