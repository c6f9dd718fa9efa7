//! Graphs: nodes are numbers from 0, and edges have one of two kinds.

use std::fmt;

/// A node of a graph: a number from 0, which is also its priority (lower numbers start first).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The number as an index into a table with one entry per node.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The kind of an edge: what must happen to its input before its dependent can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The input finished. If it fails or is dropped, the dependent is dropped as well.
    Needs,
    /// The input finished, failed or was dropped.
    After,
}

/// A graph over the nodes `0..node_count()`, without cycles or duplicate edges. It must not change during a run.
///
/// [`Dag`](crate::Dag) stores any graph. A regular graph, such as a grid, can compute its edges instead.
pub trait Graph {
    /// The number of nodes.
    fn node_count(&self) -> u32;

    /// The number of edges that end at `node`.
    fn input_count(&self, node: NodeId) -> u32;

    /// The number of edges that start at `node`.
    fn dependent_count(&self, node: NodeId) -> u32;

    /// Visits the edges that end at `node`, by their inputs.
    fn inputs(&self, node: NodeId, visit: impl FnMut(NodeId, Edge));

    /// Visits the edges that start at `node`, by their dependents.
    fn dependents(&self, node: NodeId, visit: impl FnMut(NodeId, Edge));
}
