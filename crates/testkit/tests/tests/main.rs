//! The kit's own promises. A test that rests on a disk that is too kind proves nothing.
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod files;

mod bytes;
mod faults;
mod names;
mod real;
mod rest;
