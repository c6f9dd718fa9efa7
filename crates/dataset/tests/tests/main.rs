//! Tests of datasets.

mod compat;
mod kit;
mod processors;
mod rows;
mod schedule;
