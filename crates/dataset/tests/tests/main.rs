//! Tests of datasets.

mod compat;
mod config;
mod kit;
mod processors;
mod rows;
mod schedule;
