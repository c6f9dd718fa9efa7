//! For tests only: a seeded simulator in which virtual time, tasks and pools stand in for the real ones, a disk that
//! loses what a power cut may take, Redis servers, real and scripted, the TypeScript type checker, and CPU time.

#![allow(clippy::unwrap_used, reason = "a broken simulator should stop the test")]

mod cpu;
mod patient;
mod rng;
mod sim;
mod disk;
mod redis;
mod tsc;

pub use cpu::thread_cpu_time;
pub use disk::{Counts, Crash, CrashDisk};
pub use patient::patient;
pub use redis::{Conversation, DelayProxy, FakeServer, RedisCluster, RedisServer};
pub use rng::Rng;
pub use sim::{Leftovers, Sim};
pub use tsc::tsc;
