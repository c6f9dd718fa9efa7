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
mod dag;
mod ready;
mod frontier;
mod limit;
mod retry;
mod policy;
mod workload;
mod check;
mod clock;
mod sync;
mod panics;
mod mailbox;
mod pool;
mod threads;
mod event;
mod admission;
mod flights;
mod engine;
mod run;
mod timeline;
mod progress;
mod metrics;

pub use admission::{Drained, Refused};
pub use check::Check;
pub use clock::{Clock, Sleep, SystemClock};
pub use dag::{Dag, Error as GraphError};
pub use engine::{Class, Config, Engine, Options, Reserve, Seams, ZeroSetting};
pub use event::{Ending, Event, Events, Heard, Listener, Place, Reason, RunId, Wait, What};
pub use flights::{Flights, Panicked, Waiter};
pub use frontier::{Change, Counts, Frontier, Phase};
pub use graph::{Edge, Graph, NodeId};
pub use limit::{
    Adaptive, Allowance, Bounds, Bucket, Call, Concurrency, Error as LimitError, Learned, LimitKey, Limits,
    Moved, Quota, Ramp, Rate, Standing, Verdict, Why,
};
pub use metrics::{Metrics, Page, Pause, Snapshot, Times};
pub use policy::{OnError, Policies, Policy, SerialKey, StepKind};
pub use pool::{Pool, Task, ThreadPool};
pub use progress::{Progress, Tally};
pub use retry::{Classified, Retry, Severity};
pub use run::{Report, Run, Stopped};
pub use threads::{AbortOnDrop, Tasks, TokioTasks};
pub use timeline::{Category, Error as TimelineError, Outcome, Spent, Timeline, Track};
pub use workload::{Budget, Cost, Drops, Failure, Instead, Job, Step, Workload};

/// Runs the examples of two pages as tests of this crate.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/flow-control.md")]
    mod flow_control {}
    #[doc = include_str!("../../../docs/offloading.md")]
    mod offloading {}
}
