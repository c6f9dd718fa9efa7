//! Datasets.

mod config;
