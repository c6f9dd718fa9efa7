//! For tests only.
//!
//! - [`Sim`]: a seeded simulator. It replaces the clock, the tasks and the thread pools of an engine by virtual ones.
//! - [`CrashDisk`]: a disk in memory that loses unsynced data in a crash, and fails as a test tells it to.
//! - [`RedisServer`], [`RedisCluster`]: real Redis servers. [`FakeServer`] answers from a script, and [`DelayProxy`] makes
//!   the connections to a server slow.
//! - [`ModelServer`]: a scripted server of language models, with latency, limits and faults.
//! - [`Browser`]: a real browser, for tests of pages.
//! - [`tsc()`]: the TypeScript type checker.
//! - [`Rng`]: seeded random numbers.
//! - [`thread_cpu_time`] and [`patient()`]: for claims that must hold on a busy machine.

#![allow(clippy::unwrap_used, reason = "an error in a test tool should stop the test")]

mod cpu;
mod patient;
mod rng;
mod sim;
mod disk;
mod redis;
mod model_server;
mod browser;
mod tsc;

pub use browser::{Browser, FOREIGN_HOST, View};
pub use cpu::thread_cpu_time;
pub use disk::{CallCounts, Crash, CrashDisk};
pub use model_server::{
    HeaderScript, ModelCall, ModelFault, ModelFaultKind, ModelScript, ModelServer, ReplyScript,
};
pub use patient::patient;
pub use redis::{Connection, DelayProxy, FakeServer, RedisCluster, RedisServer};
pub use rng::Rng;
pub use sim::{Leftovers, Sim, spend};
pub use tsc::tsc;
