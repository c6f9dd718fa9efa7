//! Tests of samplers: exact values, statistics, and parameters that must be refused.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first error")]

mod support;
mod golden;
mod streams;
mod statistics;
mod hostile;
mod times;
mod convert;
mod persons;
