//! Rows against naive models of them.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod random;
mod views;
mod sort;
mod concat;
mod arrow;
