//! The options of one run: its deadline, its label, its limits, and how it shares the engine with other runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::drain::Drain;
use crate::limit::Limits;

/// The options of one run.
///
/// ```
/// use anabranch_engine::Options;
/// let request = "7f3a";
/// let options = Options { label: format!("feed {request}").into(), ..Options::default() };
/// assert_eq!((&*options.label, &*Options::default().label), ("feed 7f3a", "run"));
/// ```
#[derive(Clone)]
pub struct Options {
    /// The name of the run in reports of the engine, for example in [`DrainReport`](crate::admission::DrainReport). A string
    /// literal costs no allocation; a request id fits as well. Default: `run`.
    pub label: Cow<'static, str>,
    /// The time by which the run must end. Default: no deadline.
    pub deadline: Option<Instant>,
    /// The time for which the run may continue after its deadline if all remaining nodes run on its own task. Default:
    /// 0.
    pub grace: Duration,
    /// The time before the deadline that is kept for the nodes after a late one. Default: [`Reserve::Share`].
    pub reserve: Reserve,
    /// The CPU pool that runs its jobs. Default: [`Class::Latency`].
    pub class: Class,
    /// The number of nodes that may be in flight, without those that run on the run's own task. Default: 1024.
    pub in_flight: usize,
    /// Replaces [`Config::inline_threshold`](crate::Config::inline_threshold) for this run. Default: `None`.
    pub inline_threshold: Option<Duration>,
    /// The limits that the run's policies name by key. Default: none.
    pub limits: Option<Limits>,
    /// Stops the run softly: it starts nothing more and ends when its work in flight has ended. Default: none.
    pub drain: Option<Drain>,
    /// Seeds the random part of the pauses before retries. Default: 0.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            label: Cow::Borrowed("run"),
            deadline: None,
            grace: Duration::ZERO,
            reserve: Reserve::Share,
            class: Class::Latency,
            in_flight: 1024,
            inline_threshold: None,
            limits: None,
            drain: None,
            seed: 0,
        }
    }
}

/// The priority of a run's CPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Requests: a caller is waiting for the answer.
    Latency,
    /// Background work. It runs on separate threads with a lower priority of the operating system.
    Batch,
}

/// The time before the deadline that is kept for the nodes after a late one. A node with a fallback is cut that much
/// before the deadline; other nodes are not.
#[derive(Clone, Debug)]
pub enum Reserve {
    /// A tenth of the run's time, between 2 and 10 ms: for runs without measurements. (Timers fire up to 1 ms late.)
    Share,
    /// One duration per node, from measurements; see [`Dag::time_after`](crate::Dag::time_after).
    PerNode(Arc<[Duration]>),
}
