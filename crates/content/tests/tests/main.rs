//! Tests of the content crate.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod kit;
mod allocated;
mod canonical;
mod cache;
mod store;
mod put_file;
mod listing;
mod collect;
mod kill;
mod decoders;
mod archive;
mod owner;
mod crash;
mod flips;
mod faults;
mod health;
mod meet;
mod derived;
mod findings;
