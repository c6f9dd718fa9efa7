//! Tests of recipes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod data;
mod kit;
mod plain;
mod text;
