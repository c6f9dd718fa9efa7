//! The errors of flows and their nodes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::Name;
use crate::admission::Refused;
use crate::dag;
use crate::graph::NodeId;
use crate::run::Stopped;
use crate::workload::{BoxError, Failure};

/// The reason why a flow, or one of its nodes, has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node failed.
    #[error("node `{node}` failed: {failure}")]
    Node {
        /// The name of the node.
        node: Cow<'static, str>,
        /// The cause.
        failure: Arc<Failure<BoxError>>,
    },
    /// A node was dropped.
    #[error("node `{node}` has no value: a node that it needs failed")]
    Dropped {
        /// The name of the node.
        node: Cow<'static, str>,
    },
    /// The deadline passed.
    #[error("the deadline passed before {} had finished", Names(.late))]
    Deadline {
        /// The names of the nodes in flight when it did.
        late: Vec<Cow<'static, str>>,
    },
    /// The engine was drained and the flow did not end in time.
    #[error("the engine shut down before {} had finished", Names(.late))]
    Cut {
        /// The names of the nodes in flight.
        late: Vec<Cow<'static, str>>,
    },
    /// The flow was drained ([`Options::drain`](crate::Options::drain)) before all of its nodes had ended.
    #[error("the flow was drained before all of its nodes had ended")]
    Drained,
    /// The engine did not admit the flow.
    #[error("flow `{label}` was refused: {refused}")]
    Refused {
        /// The label of the flow.
        label: Cow<'static, str>,
        /// The cause.
        refused: Refused,
    },
    /// A node names a limit that the flow does not have.
    #[error("node `{node}` names a limit that is not in the flow's table; pass the table to `Flow::limits`")]
    UnknownLimit {
        /// The name of the node.
        node: Cow<'static, str>,
    },
    /// A node reads a handle of another flow.
    #[error("node `{node}` reads a node of another flow; use the handles that this flow gave")]
    OtherFlow {
        /// The name of the node that reads.
        node: Cow<'static, str>,
    },
    /// Results were requested for a handle of another flow.
    #[error("handle {node} belongs to another flow; use the handles that this flow gave")]
    OtherResults {
        /// The number of the handle's node in its own flow.
        node: NodeId,
    },
    /// The flow is too large for a graph.
    #[error(transparent)]
    Graph(dag::Error),
}

impl Error {
    pub(super) fn stopped(stopped: Stopped<BoxError>, names: &[Name]) -> Error {
        let name = |node: NodeId| names[node.index()].clone();
        let all = |nodes: Vec<NodeId>| nodes.into_iter().map(name).collect();
        match stopped {
            Stopped::Node { node, failure } => Error::Node { node: name(node), failure: Arc::new(failure) },
            Stopped::Deadline { late } => Error::Deadline { late: all(late) },
            Stopped::Cut { late } => Error::Cut { late: all(late) },
            Stopped::Drained => Error::Drained,
        }
    }
}

/// Shows the first few names of a list.
struct Names<'a>(&'a [Name]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        for (position, name) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}`{name}`", if position == 0 { "" } else { ", " })?;
        }
        match self.0.len() {
            0 => f.write_str("all nodes"),
            count if count > SHOWN => write!(f, " and {} more", count - SHOWN),
            _ => Ok(()),
        }
    }
}
