//! The options of one run: its deadline, its label, its limits, and how it shares the engine with other runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// Names the run where the engine reports it, for example in [`Drained`](crate::admission::Drained). A string
    /// literal costs no allocation; a request id fits as well. Default: `run`.
    pub label: Cow<'static, str>,
    /// The run must have ended by then. Default: no deadline.
    pub deadline: Option<Instant>,
    /// How long the run may go on after its deadline when everything left to do runs on its own task. Default: 0.
    pub grace: Duration,
    /// The part of the deadline that late nodes with a fallback leave to the nodes behind them. Default:
    /// [`Reserve::Share`].
    pub reserve: Reserve,
    /// The CPU pool that serves the run. Default: [`Class::Latency`].
    pub class: Class,
    /// Nodes that may be in flight at the same time, not counting those that run on the run's own task. Default: 1024.
    pub in_flight: usize,
    /// Replaces [`Config::inline_threshold`](crate::Config::inline_threshold) for this run. Default: `None`.
    pub inline_threshold: Option<Duration>,
    /// The table of limits whose keys the run's policies name. Default: none.
    pub limits: Option<Limits>,
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
            seed: 0,
        }
    }
}

/// The priority of a run's CPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Requests: a caller is waiting for the answer.
    Latency,
    /// Background work. It has threads of its own, which the operating system schedules behind the others.
    Batch,
}

/// The part of a deadline that is kept for the nodes behind a late one. Only nodes with a fallback are cut early by it.
#[derive(Clone, Debug)]
pub enum Reserve {
    /// A tenth of the run's time, between 2 and 10 ms: for use without measurements. (Timers fire up to 1 ms late.)
    Share,
    /// One duration per node, from measurements; see [`Dag::time_after`](crate::Dag::time_after).
    PerNode(Arc<[Duration]>),
}
