//! The engine's tests. Start with `seeds`: what the engine promises, one test a promise.
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]
#![allow(missing_docs, reason = "tests document themselves")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod alloc;
mod judge;
mod late;
mod script;
mod tape;

mod backends;
mod dag;
mod diagram;
mod drain;
mod event;
mod examples;
mod flights;
mod flow;
mod frontier;
mod handoff;
mod limit_machines;
mod metrics;
mod progress;
mod queue;
mod quotas;
mod real;
mod run;
mod scale;
mod seeds;
mod sim;
mod soft_stop;
mod step;
mod timeline;
mod waits;
