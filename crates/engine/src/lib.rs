//! Runs graphs of work: nodes that wait on the network, burn CPU or block, each started the moment its inputs are
//! there.
//!
//! A [`Graph`] says which node waits for which; [`Dag`] stores one. A [`Workload`] says what a node does and keeps
//! its value. [`Engine::run`] brings the two together: a [`Run`] is one future that moves a [`Frontier`] over the
//! graph, carries steps out in place or on a pool, and ends when every node has, when one fails, or at its deadline.
//!
//! ```
//! use anabranch_engine::*;
//!
//! /// Adds up numbers along the edges of a diamond.
//! struct Sum { edges: Vec<(NodeId, NodeId, Edge)>, values: [u64; 4] }
//!
//! impl Workload for Sum {
//!     type Value = u64;
//!     type Error = std::convert::Infallible;
//!     type Future = std::future::Ready<Result<u64, Self::Error>>;
//!     type Job = fn(Option<u64>, &Check<'_>) -> Result<u64, Self::Error>;
//!
//!     fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
//!         let inputs = self.edges.iter().filter(|edge| edge.1 == node);
//!         Step::Ready(Ok(1 + inputs.map(|edge| self.values[edge.0.index()]).sum::<u64>()))
//!     }
//!
//!     fn finish(&mut self, node: NodeId, value: u64, _: &mut Drops) {
//!         self.values[node.index()] = value;
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let edges: Vec<_> = [(0, 1), (0, 2), (1, 3), (2, 3)].map(|(a, b)| (NodeId(a), NodeId(b), Edge::Needs)).into();
//! let dag = Dag::new(4, &edges)?;
//! let mut sum = Sum { edges, values: [0; 4] };
//! let engine = Engine::new(&Config::default())?;
//! let report = engine.run(&dag, &Policies::default(), &mut sum, &Options::default())?.await?;
//! assert_eq!((report.finished, sum.values[3]), (4, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Reading order: the modules as listed.

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
pub mod options;
mod engine;
mod run;
pub mod timeline;
pub mod progress;
pub mod metrics;

pub use check::Check;
#[doc(inline)]
pub use config::Config;
#[doc(inline)]
pub use dag::Dag;
pub use engine::Engine;
pub use graph::{Edge, Graph, NodeId};
#[doc(inline)]
pub use options::Options;
#[doc(inline)]
pub use policy::{OnError, Policies, Policy};
#[doc(inline)]
pub use pool::Cost;
pub use run::{Report, Run, Stopped};
#[doc(inline)]
pub use workload::{Budget, Drops, Failure, Instead, Job, Step, Workload};
