//! For tests only: a seeded simulator in which virtual time, tasks and pools stand in for the real ones, and a
//! disk that loses what a power cut may take.

#![allow(clippy::unwrap_used, reason = "a broken simulator should stop the test")]

mod rng;
mod sim;
mod disk;

pub use disk::{Counts, Crash, CrashDisk};
pub use rng::Rng;
pub use sim::{Leftovers, Sim};
