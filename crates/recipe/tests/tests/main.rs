//! Tests of recipes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod crowd;
mod depth;
mod deriva;
mod edges;
mod seed;
mod world;
