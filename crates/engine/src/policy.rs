//! How nodes are to be carried out, as data: one table, shared by every run of a graph.

use std::time::Duration;

use crate::graph::NodeId;
use crate::limit::LimitKey;
use crate::retry::Retry;

/// How one node is carried out and what happens when it does not make it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Where its step is carried out.
    pub step: StepKind,
    /// The longest it may take once started; waiting for a pool thread counts.
    pub timeout: Option<Duration>,
    /// What its failure means.
    pub on_error: OnError,
    /// Whether it is tried again first.
    pub retry: Option<Retry>,
    /// The limit its calls count against.
    pub limit: Option<LimitKey>,
    /// What one call is expected to use of that limit's tokens.
    pub tokens: u32,
    /// Something that takes one node of the run at a time, the lowest number first.
    pub serial: Option<SerialKey>,
}

/// Names something that only one node at a time may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SerialKey(pub u32);

/// Where a step is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepKind {
    /// A future is polled in place; a job goes where its cost says.
    #[default]
    Auto,
    /// In place, whatever it costs: for work its author knows to be trivial.
    Inline,
    /// A future becomes a task of its own, aborted with its run: for I/O with much work of its own.
    Spawned,
    /// A job goes to the CPU pool, whatever its cost says: for work that may turn out expensive.
    Pool,
    /// A job goes to the blocking pool: for calls that wait.
    Blocking,
}

/// What the failure of a node means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The run ends at once with this failure; everything in flight is cancelled.
    #[default]
    FailRun,
    /// What needs the node is dropped; the run carries on.
    Isolate,
    /// The workload is asked what is to stand in for it; the number is its own note of which.
    Fallback(u32),
}

/// A policy for every node: entry `number % len`.
///
/// One entry serves a whole graph, one a node a graph with named nodes, and one a column a grid numbered row by row.
#[derive(Clone, Debug)]
pub struct Policies {
    entries: Box<[Policy]>,
    /// The highest limit that any of them names.
    highest_limit: Option<LimitKey>,
}

impl Policies {
    /// The same policy for all nodes.
    pub fn uniform(policy: Policy) -> Policies {
        Policies { highest_limit: policy.limit, entries: Box::new([policy]) }
    }

    /// A policy a node, repeating from the start when there are more nodes than policies.
    ///
    /// `None` when the list is empty.
    pub fn repeating(policies: Vec<Policy>) -> Option<Policies> {
        let highest_limit = policies.iter().filter_map(|policy| policy.limit).max();
        if policies.is_empty() { None } else { Some(Policies { entries: policies.into(), highest_limit }) }
    }

    /// The policy of `node`.
    #[inline]
    pub fn of(&self, node: NodeId) -> &Policy {
        let (number, count) = (node.index(), self.entries.len());
        if number < count { &self.entries[number] } else { &self.entries[number % count] }
    }

    pub(crate) fn highest_limit(&self) -> Option<LimitKey> {
        self.highest_limit
    }
}

impl Default for Policies {
    fn default() -> Policies {
        Policies::uniform(Policy::default())
    }
}
