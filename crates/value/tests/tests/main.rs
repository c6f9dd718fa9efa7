//! Tests of values.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first error")]

mod json;
mod order;
