//! Tests of datasets.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first error")]
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

mod support;
mod seed;
mod validation;
mod custom;
mod python_worker;
