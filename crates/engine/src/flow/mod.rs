//! Small graphs by closures: a [`Flow`] has named nodes with typed values, and an edge wherever one node reads another.
//!
//! [`Flow::node`] names a node. Builder methods set its policy (timeout, limit, retry, fallback). Then
//! [`future`](NodeBuilder::future) or [`job`](NodeBuilder::job) gives it its inputs and its work, and returns a
//! [`Node`]: the handle by which later nodes read its value.
//!
//! ```
//! use anabranch_engine::{Config, Engine, Flow};
//! use std::time::Duration;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let mut flow = Flow::new("greeting of request 7f3a");
//! flow.deadline(Duration::from_secs(10));
//! let user = flow.node("user").future((), |()| async { Ok("Ada".to_owned()) });
//! let city = flow
//!     .node("city")
//!     .timeout(Duration::from_millis(1))
//!     .fallback("nowhere".to_owned())
//!     .future((), |()| std::future::pending());
//! let text = flow.node("text").job((&user, city), |(user, city), _| Ok(format!("{user} in {city}")));
//!
//! let mut results = flow.run(&Engine::new(&Config::default())?).await?;
//! assert_eq!(results.take(text)?, "Ada in nowhere");
//! assert_eq!((results.get(&user)?.as_str(), results.report().fell_back), ("Ada", 1));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # How values travel
//!
//! The way a handle is passed decides how its value travels:
//!
//! - `node` (by value): the reader takes the value itself. The handle is gone, so the value is freed with its reader.
//! - `&node`: the reader gets a clone, so the type must be `Clone`. The value stays until the flow ends and can be read
//!   from the [`Results`]. Let the value be an `Arc` where clones are expensive.
//! - [`optional`]`(node)` or `optional(&node)`: the reader gets an `Option`, and runs also if the node failed (see
//!   [`NodeBuilder::isolate`]) or was dropped.
//!
//! A tuple, a `Vec`, an array or a slice of these is one input as well: `.job(quotes, ..)` reads a `Vec<Node<u64>>` as a
//! `Vec<u64>`.
//!
//! # How a flow runs
//!
//! A flow is compiled to a [`Dag`], [`Policies`] and a [`Workload`](crate::Workload) and run by the engine like every
//! other graph. It runs once. Nodes that could start at the same time start in the order in which they were made.

mod error;
mod inputs;
mod node;
mod results;
mod trace;
mod work;

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::Refused;
use crate::dag::Dag;
use crate::engine::Engine;
use crate::graph::{Edge, NodeId};
use crate::limit::Limits;
use crate::options::Options;
use crate::policy::{Policies, Policy, SerialKey};
pub use error::Error;
pub use inputs::{Handle, Inputs, Optional, optional};
pub use node::{Node, NodeBuilder, Once, RetriedNode};
pub use results::Results;
use trace::Recorder;
pub use trace::Trace;
use work::Work;

/// A graph of closures; see the [module](self).
pub struct Flow {
    options: Options,
    deadline: Option<Duration>,
    names: Vec<Name>,
    policies: Vec<Policy>,
    edges: Vec<(NodeId, NodeId, Edge)>,
    work: Work,
    /// The names from [`NodeBuilder::serial`]; the position is the key.
    serials: Vec<Name>,
    /// The first mistake in building the flow. It is reported when the flow is run.
    mistake: Option<Error>,
    trace: Option<Trace>,
    identity: Identity,
}

type Name = Cow<'static, str>;

/// Identifies the flow of a handle, by its allocation.
type Identity = Arc<()>;

impl Flow {
    /// A flow without nodes. The label names it in reports; a request id fits.
    pub fn new(label: impl Into<Cow<'static, str>>) -> Flow {
        Flow {
            options: Options { label: label.into(), ..Options::default() },
            deadline: None,
            names: Vec::new(),
            policies: Vec::new(),
            edges: Vec::new(),
            work: Work::default(),
            serials: Vec::new(),
            mistake: None,
            trace: None,
            identity: Identity::default(),
        }
    }

    /// The flow must end within this time after its start; otherwise it ends with [`Error::Deadline`]. Nodes with a
    /// fallback are replaced a little earlier, so that the nodes after them have time left.
    pub fn deadline(&mut self, after_start: Duration) -> &mut Flow {
        self.deadline = Some(after_start);
        self
    }

    /// The table of the limits that nodes name with [`NodeBuilder::limit`].
    pub fn limits(&mut self, limits: &Limits) -> &mut Flow {
        self.options.limits = Some(limits.clone());
        self
    }

    /// All options of the run.
    pub fn options(&mut self) -> &mut Options {
        &mut self.options
    }

    /// Records the run. The returned handle has the timeline once the flow has ended, whether or not it succeeded.
    pub fn trace(&mut self) -> Trace {
        self.trace.get_or_insert_with(Trace::default).clone()
    }

    /// A node to be; it becomes part of the flow with [`NodeBuilder::future`] or [`NodeBuilder::job`]. The name is for
    /// error texts and the timeline.
    pub fn node<T: Send + 'static>(&mut self, name: impl Into<Cow<'static, str>>) -> NodeBuilder<'_, T> {
        NodeBuilder::new(self, name.into())
    }

    /// Runs the flow. Dropping the returned future stops everything that it started.
    pub async fn run(self, engine: &Engine) -> Result<Results, Error> {
        let Flow {
            mut options, deadline, names, policies, edges, mut work, mistake, trace, identity, ..
        } = self;
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        let dag = Dag::new(u32::try_from(names.len()).unwrap_or(u32::MAX), &edges).map_err(Error::Graph)?;
        let policies = Policies::repeating(policies);
        let now = engine.clock().now();
        options.deadline = deadline.and_then(|deadline| now.checked_add(deadline)).or(options.deadline);
        let names: Arc<[Name]> = names.into();
        // Declared before the run, so that it is dropped after it and hears its end.
        let mut recorder =
            trace.map(|trace| Recorder::new(trace, engine.events(), &dag, &names, &options.label));
        let mut run = match engine.run(&dag, &policies, &mut work, &options) {
            Ok(run) => run,
            Err(refused) => return Err(refusal(refused, &policies, &names, options.label)),
        };
        let id = run.id();
        let ended = poll_fn(|cx| {
            let polled = Pin::new(&mut run).poll(cx);
            if let Some(recorder) = &mut recorder {
                recorder.hear(id);
            }
            polled
        });
        let ended = ended.await;
        drop(run);
        drop(recorder);
        match ended {
            Ok(report) => Ok(Results::new(report, work.values, names, identity)),
            Err(stopped) => Err(Error::stopped(stopped, &names)),
        }
    }

    fn serial(&mut self, name: Name) -> SerialKey {
        let known = self.serials.iter().position(|known| *known == name);
        let position = known.unwrap_or_else(|| {
            self.serials.push(name);
            self.serials.len() - 1
        });
        SerialKey(position as u32)
    }
}

fn refusal(refused: Refused, policies: &Policies, names: &[Name], label: Name) -> Error {
    if let Refused::UnknownLimit(key) = refused
        && let Some((_, name)) =
            (0..).map(NodeId).zip(names).find(|(node, _)| policies.of(*node).limit == Some(key))
    {
        return Error::UnknownLimit { node: name.clone() };
    }
    Error::Refused { label, refused }
}
