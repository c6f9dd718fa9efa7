//! Tests of recipes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod file;
mod seed;
