//! Tests of recipes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod budgets;
mod bytes;
mod crowd;
mod data;
mod decoders;
mod depth;
mod deriva_functions;
mod deriva;
mod edges;
mod file;
mod folder;
mod format_1;
mod fused;
mod imports;
mod kit;
mod long_calls;
mod memory;
mod params;
mod plain;
mod plain_compress;
mod plain_cuts;
mod plain_digests;
mod plain_rows;
mod refusals;
mod room;
mod seed;
mod template;
mod text;
mod trace;
mod world;
