//! Tests of rows, most of them against a naive implementation.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first error")]

mod random;
mod views;
mod sort;
mod concat;
mod arrow;
