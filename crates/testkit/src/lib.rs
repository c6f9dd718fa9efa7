//! For tests only: a seeded simulator in which virtual time, tasks and pools stand in for the real ones.

#![allow(clippy::unwrap_used, reason = "a broken simulator should stop the test")]

mod rng;
mod sim;

pub use rng::Rng;
pub use sim::{Leftovers, Sim};
