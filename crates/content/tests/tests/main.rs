//! Tests of the content crate.

mod canonical;
mod cache;
mod store;
mod collect;
mod kill;
mod decoders;
mod owner;
