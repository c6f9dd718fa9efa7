//! The ops `test::*`: rows, delays and CPU load on demand, for tests and benchmarks of plans.
//!
//! They take as much time as a plan says, so a project refuses plans with them unless it sets `test_ops = true`.

mod busy_cpu;
mod fixed_source;
mod sleep;

pub(super) use busy_cpu::BusyCpu;
pub(super) use fixed_source::FixedSource;
pub(super) use sleep::Sleep;
