//! Each op by itself.

#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

mod kit;

mod checks;
mod random;
mod reading;
mod rows;
mod sparse;
