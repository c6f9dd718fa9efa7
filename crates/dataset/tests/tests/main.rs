//! Tests of datasets.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first error")]
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

mod kit;
mod support;
mod config;
mod schedule;
mod flow;
mod paid;
mod plan;
mod dry;
mod resume;
mod spend;
mod stages;
mod edits;
mod random_edits;
mod rows;
mod processors;
mod columns;
mod seed;
mod validation;
mod custom;
mod python_worker;
mod compat;
