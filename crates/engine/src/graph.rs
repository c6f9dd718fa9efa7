//! What a graph is: dense node numbers and edges of two kinds.

use std::fmt;

/// One node of a graph: a dense number, which is also its priority (lower starts first).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The number as an index into a table with one entry a node.
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

/// When an edge lets its dependent start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Satisfied only by success: the dependent is dropped when the input fails or is dropped.
    Needs,
    /// Satisfied by success, failure or drop.
    After,
}

/// A graph over the nodes `0..node_count()`, without cycles or double edges, fixed while a run looks at it.
///
/// [`Dag`](crate::Dag) stores any graph; a regular one (a grid, say) can compute its edges instead.
pub trait Graph {
    /// How many nodes there are.
    fn node_count(&self) -> u32;

    /// How many edges `node` waits for.
    fn input_count(&self, node: NodeId) -> u32;

    /// How many edges wait for `node`.
    fn dependent_count(&self, node: NodeId) -> u32;

    /// Visits each edge that `node` waits for.
    fn inputs(&self, node: NodeId, visit: impl FnMut(NodeId, Edge));

    /// Visits each edge that waits for `node`.
    fn dependents(&self, node: NodeId, visit: impl FnMut(NodeId, Edge));
}
