//! Tests of the disk for tests: if it lost less than a real one, the tests that use it would prove nothing. Beside it, the
//! server of language models.
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may stop the test")]

mod files;

mod bytes;
mod faults;
mod names;
mod real;
mod edits;
mod model_server;
