//! Tests of datasets.

mod kit;
mod processors;
mod rows;
mod schedule;
