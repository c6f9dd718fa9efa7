//! Runs graphs of asynchronous calls, CPU work and blocking calls, with timeouts, limits, retries, fallbacks and one
//! deadline for the whole.
//!
//! A node starts as soon as its inputs are available. A run never blocks the thread that polls it, stops everything it
//! started when it is dropped, and leaves a timeline that shows where the time went.
//!
//! # Two ways to write a graph
//!
//! - [`Flow`]: named closures with typed values, for graphs that are written down in code. Start here; the [`flow`]
//!   module has an example.
//! - [`Workload`]: one type that says what node number `n` does, for graphs that come from data (a query, a build,
//!   a table of a million cells). Nodes are numbers, a [`Dag`] or your own [`Graph`] has the edges, [`Policies`] have one
//!   [`Policy`] per node. No allocation per node.
//!
//! Both run on the same scheduler, [`Engine::run`]:
//!
//! ```
//! use anabranch_engine::limit::{Allowance, Limits};
//! use anabranch_engine::workload::{BoxError, BoxFuture, BoxJob};
//! use anabranch_engine::*;
//! use std::{sync::Arc, time::Duration};
//!
//! /// Nodes 0 and 1 call a backend, which does not answer the first; node 2 adds up.
//! struct Prices([u64; 3]);
//!
//! impl Workload for Prices {
//!     type Value = u64;
//!     type Error = BoxError;
//!     type Future = BoxFuture<u64, BoxError>;
//!     type Job = BoxJob<u64, BoxError>;
//!
//!     fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
//!         let [first, second, _] = self.0;
//!         match node.0 {
//!             0 => Step::future(std::future::pending()),
//!             1 => Step::future(async { Ok("40".parse()?) }),
//!             _ => Step::job(move |_, _| Ok(first + second), Cost::Unknown),
//!         }
//!     }
//!
//!     fn finish(&mut self, node: NodeId, value: u64, _: &mut Drops) {
//!         self.0[node.index()] = value;
//!     }
//!
//!     fn fallback(&mut self, _: NodeId, _: &Failure<BoxError>) -> Instead<u64> {
//!         Instead::Value(2)
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let engine = Engine::new(&Config::default())?;
//! let limits = Limits::new(Arc::clone(engine.clock()));
//! let backend = limits.add("backend", Allowance::fixed(10))?;
//! let call = Policy {
//!     limit: Some(backend),
//!     timeout: Some(Duration::from_millis(20)),
//!     on_error: OnError::Fallback,
//!     ..Policy::default()
//! };
//! let policies = Policies::repeating(vec![call, call, Policy::default()]);
//! let dag = Dag::new(3, &[(NodeId(0), NodeId(2), Edge::Needs), (NodeId(1), NodeId(2), Edge::Needs)])?;
//! let options = Options {
//!     label: "prices of request 7f3a".into(),
//!     deadline: Some(engine.clock().now() + Duration::from_secs(10)),
//!     limits: Some(limits),
//!     ..Options::default()
//! };
//! let mut prices = Prices([0; 3]);
//! let report = engine.run(&dag, &policies, &mut prices, &options)?.await?;
//! assert_eq!((report.finished, report.fell_back, prices.0[2]), (3, 1, 42));
//! # Ok::<(), BoxError>(()) }).unwrap();
//! ```
//!
//! # How a run ends
//!
//! [`Engine::run`] admits a run or says why not ([`Refused`](admission::Refused)). The [`Run`] is a future:
//!
//! - `Ok(`[`Report`]`)`: every node has ended. A node that failed without ending the run is counted as failed
//!   ([`OnError::Isolate`]) or as fallen back ([`OnError::Fallback`]).
//! - `Err(`[`Stopped`]`)`: a node failed with [`OnError::FailRun`], the deadline passed, the engine was drained, or the
//!   run itself was ([`Options::drain`]).
//! - Dropped: as stopped, without an answer.
//!
//! In all three cases futures are dropped, tasks aborted and jobs told to stop by their [`Check`].
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | bound the calls to a backend, fixed or adaptive | [`limit`] |
//! | try again after a failure | [`retry`], [`Policy::retry`] |
//! | choose where a node runs: inline, task, CPU pool, blocking pool | [`policy::StepKind`], [`Cost`] |
//! | run one node at a time on a resource | [`policy::SerialKey`] |
//! | share one computation among concurrent callers (single flight) | [`flight`] |
//! | see where the time of a run went | [`timeline`] |
//! | follow runs while they run: events, progress, metrics | [`event`], [`progress`], [`metrics`] |
//! | shut down | [`Engine::drain`] |
//! | stop some runs softly, and keep the results of calls in flight | [`Drain`] |
//! | test with virtual time | [`seams`], [`clock`], [`pool`], [`tasks`] |
//! | schedule a graph yourself | [`frontier`] |

mod graph;
pub mod dag;
mod ready;
pub mod frontier;
pub mod limit;
pub mod retry;
pub mod policy;
pub mod workload;
mod check;
pub mod clock;
mod sync;
mod panics;
mod mailbox;
pub mod pool;
mod threads;
pub mod tasks;
pub mod seams;
pub mod event;
pub mod admission;
pub mod flight;
pub mod config;
mod drain;
pub mod options;
mod engine;
mod run;
pub mod flow;
pub mod timeline;
pub mod diagram;
pub mod progress;
pub mod metrics;

pub use check::Check;
#[doc(inline)]
pub use config::Config;
#[doc(inline)]
pub use dag::Dag;
pub use drain::Drain;
pub use engine::Engine;
#[doc(inline)]
pub use flow::Flow;
pub use graph::{Edge, Graph, NodeId};
#[doc(inline)]
pub use options::Options;
#[doc(inline)]
pub use policy::{OnError, Policies, Policy};
pub use run::{Report, Run, Stopped};
#[doc(inline)]
pub use workload::{Budget, Cost, Drops, Failure, Instead, Job, Step, Workload};

/// Runs the examples of two pages as tests of this crate.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/flow-control.md")]
    mod flow_control {}
    #[doc = include_str!("../../../docs/offloading.md")]
    mod offloading {}
}
