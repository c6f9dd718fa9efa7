//! The policy of each node: timeout, limit, retry, and the handling of failures. One table serves every run of a graph.

use std::time::Duration;

use crate::graph::NodeId;
use crate::limit::LimitKey;
use crate::retry::Retry;

/// The execution of one node, and the handling of its failure. The default has no timeout, limit or retry, and fails
/// the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The place where the node runs.
    pub step: StepKind,
    /// The time limit of one attempt, from the start of the node. Time in the queue of a pool counts; time before the
    /// start, such as waiting for a limit, does not.
    pub timeout: Option<Duration>,
    /// The handling of the node's failure.
    pub on_error: OnError,
    /// The retries of the node before it counts as failed.
    pub retry: Option<Retry>,
    /// The limit that the node counts against, of the table in [`Options::limits`](crate::Options::limits).
    pub limit: Option<LimitKey>,
    /// The tokens of that limit that one try is expected to use.
    pub tokens: u32,
    /// A resource that only one node of the run may use at a time, the lowest node number first.
    pub serial: Option<SerialKey>,
}

/// Names a resource that only one node of a run may use at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SerialKey(pub u32);

/// The place where a node runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepKind {
    /// A future is polled by the run; a job runs on the run's own task or on the CPU pool, depending on its cost.
    #[default]
    Auto,
    /// A job runs on the run's own task regardless of its cost, for work that is known to be trivial.
    Inline,
    /// A future is spawned as a task and aborted with its run: for I/O that also needs much CPU time.
    Spawned,
    /// A job goes to the CPU pool regardless of its cost, for work that may turn out to be expensive.
    Pool,
    /// A job goes to the blocking pool: for calls that wait.
    Blocking,
}

/// The handling of a node's failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The run ends immediately with this failure; everything in flight is cancelled.
    #[default]
    FailRun,
    /// The nodes that need this one are dropped; the run continues.
    Isolate,
    /// [`Workload::fallback`](crate::Workload::fallback) supplies a substitute value.
    Fallback,
}

/// The policies of a graph: node `n` has entry `n % len`, or one of a few entries of its own in front.
///
/// One entry serves all nodes of a graph. One entry per column serves a grid that is numbered row by row.
#[derive(Clone, Debug)]
pub struct Policies {
    entries: Box<[Policy]>,
    /// The number of entries in front that do not repeat.
    head: usize,
    /// The highest limit that a policy names.
    highest_limit: Option<LimitKey>,
}

impl Policies {
    /// The same policy for all nodes.
    pub fn uniform(policy: Policy) -> Policies {
        Policies { highest_limit: policy.limit, entries: Box::new([policy]), head: 0 }
    }

    /// One policy per node, repeating from the start when there are more nodes than policies. An empty list, which
    /// belongs to an empty graph, is the default policy for all nodes.
    ///
    /// ```
    /// use anabranch_engine::{NodeId, OnError, Policies, Policy};
    /// let isolate = Policy { on_error: OnError::Isolate, ..Policy::default() };
    /// let policies = Policies::repeating(vec![Policy::default(), isolate]);
    /// assert_eq!(policies.of(NodeId(3)), &isolate);
    /// ```
    pub fn repeating(policies: Vec<Policy>) -> Policies {
        Policies::repeating_after(Vec::new(), policies)
    }

    /// One policy for each of the first nodes (`head`), then those of `policies` repeating: for a grid that is numbered
    /// row by row behind some nodes of the whole grid.
    ///
    /// ```
    /// use anabranch_engine::{NodeId, OnError, Policies, Policy};
    /// let isolate = Policy { on_error: OnError::Isolate, ..Policy::default() };
    /// let policies = Policies::repeating_after(vec![Policy::default()], vec![isolate, Policy::default()]);
    /// assert_eq!(policies.of(NodeId(3)), &isolate);
    /// ```
    pub fn repeating_after(head: Vec<Policy>, policies: Vec<Policy>) -> Policies {
        let mut entries = head;
        let head = entries.len();
        entries.extend(policies);
        if entries.len() == head {
            entries.push(Policy::default());
        }
        let highest_limit = entries.iter().filter_map(|policy| policy.limit).max();
        Policies { entries: entries.into(), head, highest_limit }
    }

    /// The policy of `node`.
    #[inline]
    pub fn of(&self, node: NodeId) -> &Policy {
        let (number, count) = (node.index(), self.entries.len());
        if number < count {
            return &self.entries[number];
        }
        &self.entries[self.head + (number - self.head) % (count - self.head)]
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
