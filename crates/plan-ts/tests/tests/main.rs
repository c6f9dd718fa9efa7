//! Plans written in TypeScript, seen from outside.

#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod world;
mod seeds;
mod surface;
mod loader;
mod modules;
mod own_ops;
mod page;
mod natives;
mod errors;
mod mistakes;
mod types;
mod fuzz;
mod hostile;
