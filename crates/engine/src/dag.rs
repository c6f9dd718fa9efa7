//! A stored graph: compressed adjacency arrays, checked for cycles when built.

use std::fmt;
use std::time::Duration;

use crate::frontier::{Frontier, Phase};
use crate::graph::{Edge, Graph, NodeId};

/// A directed acyclic graph as four arrays: 8 bytes per node and 8 bytes per edge.
pub struct Dag {
    dependents: Adjacency,
    inputs: Adjacency,
}

/// The reason why a list of edges is not a valid graph.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An edge names a node that does not exist.
    #[error("edge {input} -> {dependent}: the graph has only {node_count} nodes, numbered from 0")]
    MissingNode { input: NodeId, dependent: NodeId, node_count: u32 },
    /// Two edges connect the same two nodes.
    #[error("edge {input} -> {dependent} is there twice; give each pair of nodes one edge")]
    DuplicateEdge { input: NodeId, dependent: NodeId },
    /// Each node of the list waits for the one before it, and the first for the last.
    #[error("these nodes wait for each other in a cycle: {}", Cycle(.0))]
    Cycle(Vec<NodeId>),
    /// The graph has too many nodes or edges.
    #[error("{count} {what} are too many; a graph holds at most {MAX}")]
    TooLarge {
        /// `nodes` or `edges`.
        what: &'static str,
        count: usize,
    },
}

/// The most nodes or edges of one graph: the frontier uses three bits of a word for its own state.
const MAX: usize = (1 << 29) - 2;

impl Dag {
    /// Builds a graph of `node_count` nodes from `(input, dependent, kind)` edges.
    ///
    /// ```
    /// use anabranch_engine::{Dag, Edge, NodeId};
    /// let edges = [(NodeId(0), NodeId(1), Edge::Needs), (NodeId(1), NodeId(0), Edge::After)];
    /// let error = Dag::new(2, &edges).err().unwrap();
    /// assert_eq!(error.to_string(), "these nodes wait for each other in a cycle: #0 -> #1 -> #0");
    /// ```
    pub fn new(node_count: u32, edges: &[(NodeId, NodeId, Edge)]) -> Result<Dag, Error> {
        for (what, count) in [("nodes", node_count as usize), ("edges", edges.len())] {
            if count > MAX {
                return Err(Error::TooLarge { what, count });
            }
        }
        for &(input, dependent, _) in edges {
            if input.0.max(dependent.0) >= node_count {
                return Err(Error::MissingNode { input, dependent, node_count });
            }
        }
        let dag = Dag::unchecked(node_count, edges.iter().copied());
        let mut scratch = vec![0; node_count as usize];
        dag.refuse_duplicates(&mut scratch)?;
        dag.refuse_cycles(&mut scratch)?;
        Ok(dag)
    }

    /// Sorts nodes, given by their inputs: each behind its inputs, otherwise by number. Left out are nodes that wait for
    /// each other in a cycle, and those behind them; `cycle` is called with each cycle, up to ten: each node in it
    /// has the next one as an input, and the last one has the first.
    ///
    /// ```
    /// use anabranch_engine::Dag;
    /// let inputs = [vec![2], vec![], vec![1], vec![4], vec![3]];
    /// let mut cycles = Vec::new();
    /// assert_eq!(Dag::sort(&inputs, |cycle| cycles.push(cycle.to_owned())), [1, 2, 0]);
    /// assert_eq!(cycles, [[3, 4]]);
    /// ```
    pub fn sort(inputs: &[Vec<usize>], mut cycle: impl FnMut(&[usize])) -> Vec<usize> {
        const MOST_CIRCLES: usize = 10;
        assert!(
            inputs.iter().map(Vec::len).sum::<usize>().max(inputs.len()) <= MAX,
            "a list fits into memory"
        );
        let edges = inputs.iter().enumerate().flat_map(|(node, inputs)| {
            inputs.iter().map(move |input| (NodeId(*input as u32), NodeId(node as u32), Edge::After))
        });
        let dag = Dag::unchecked(inputs.len() as u32, edges);
        let mut frontier = Frontier::new(&dag);
        let mut order = Vec::with_capacity(inputs.len());
        let finish_ready = |frontier: &mut Frontier<'_, Dag>, visit: &mut dyn FnMut(usize)| {
            while let Some(node) = frontier.start_next() {
                frontier.finish(node, |_| {});
                visit(node.index());
            }
        };
        finish_ready(&mut frontier, &mut |node| order.push(node));
        for _ in 0..MOST_CIRCLES {
            let found = dag.find_cycle(|node| frontier.phase(node) == Phase::Waiting);
            if found.is_empty() {
                break;
            }
            cycle(&found.iter().map(|node| node.index()).collect::<Vec<_>>());
            // Nodes that are only behind this cycle do not belong to another one.
            found.into_iter().for_each(|node| _ = frontier.drop(node, |_| {}));
            finish_ready(&mut frontier, &mut |_| {});
        }
        order
    }

    fn unchecked(node_count: u32, edges: impl Iterator<Item = (NodeId, NodeId, Edge)> + Clone) -> Dag {
        let turned = edges.clone().map(|(input, dependent, kind)| (dependent, input, kind));
        Dag { dependents: Adjacency::new(node_count, edges), inputs: Adjacency::new(node_count, turned) }
    }

    /// For each node, the longest time from its end to the end of the graph, when a node takes `time_of(node)`.
    ///
    /// This is the reserve that a late node must leave to the rest of its run.
    pub fn time_after(&self, time_of: impl Fn(NodeId) -> Duration) -> Vec<Duration> {
        let mut after = vec![Duration::ZERO; self.node_count() as usize];
        let mut waiting = vec![0; after.len()];
        visit_topologically(&self.inputs, &self.dependents, &mut waiting, |node| {
            let from_start = after[node.index()] + time_of(node);
            self.inputs(node, |input, _| {
                let longest = &mut after[input.index()];
                *longest = (*longest).max(from_start);
            });
        });
        after
    }

    fn refuse_duplicates(&self, last_dependent_of: &mut [u32]) -> Result<(), Error> {
        const NO_NODE: u32 = u32::MAX;
        last_dependent_of.fill(NO_NODE);
        for dependent in (0..self.node_count()).map(NodeId) {
            let mut twice = None;
            self.inputs(dependent, |input, _| {
                if last_dependent_of[input.index()] == dependent.0 {
                    twice = Some(input);
                }
                last_dependent_of[input.index()] = dependent.0;
            });
            if let Some(input) = twice {
                return Err(Error::DuplicateEdge { input, dependent });
            }
        }
        Ok(())
    }

    fn refuse_cycles(&self, waiting: &mut [u32]) -> Result<(), Error> {
        let count = visit_topologically(&self.dependents, &self.inputs, waiting, |_| {});
        if count == self.node_count() {
            return Ok(());
        }
        let mut cycle = self.find_cycle(|node| waiting[node.index()] > 0);
        cycle.reverse();
        let lowest = cycle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(place, _)| place);
        cycle.rotate_left(lowest);
        Err(Error::Cycle(cycle))
    }

    /// Nodes that wait for each other, each for the next one; none if no node waits. Every node that waits has an input
    /// that does, so walking up inputs must come round.
    fn find_cycle(&self, is_waiting: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let Some(mut at) = (0..self.node_count()).map(NodeId).find(|node| is_waiting(*node)) else {
            return Vec::new();
        };
        let mut step_of = vec![u32::MAX; self.node_count() as usize];
        let mut path = Vec::new();
        while step_of[at.index()] == u32::MAX {
            step_of[at.index()] = path.len() as u32;
            path.push(at);
            let mut next = None;
            self.inputs(at, |input, _| next = next.or(is_waiting(input).then_some(input)));
            at = next.expect("a waiting node has a waiting input");
        }
        path.split_off(step_of[at.index()] as usize)
    }
}

/// Visits each node after all its neighbours in `before`, and returns the number of nodes that it reached. For the other
/// nodes `waiting` is then more than 0.
///
/// The nodes to visit form a linked list through their own entries of `waiting`, which need no count any more.
fn visit_topologically(
    after: &Adjacency,
    before: &Adjacency,
    waiting: &mut [u32],
    mut visit: impl FnMut(NodeId),
) -> u32 {
    const END: u32 = u32::MAX;
    let mut next = END;
    for (number, entry) in (0..).zip(waiting.iter_mut()) {
        *entry = before.count(NodeId(number));
        if *entry == 0 {
            *entry = std::mem::replace(&mut next, number);
        }
    }
    let mut count = 0;
    while next != END {
        let node = NodeId(next);
        next = std::mem::replace(&mut waiting[node.index()], 0);
        visit(node);
        count += 1;
        after.visit(node, |other, _| {
            let entry = &mut waiting[other.index()];
            *entry -= 1;
            if *entry == 0 {
                *entry = std::mem::replace(&mut next, other.0);
            }
        });
    }
    count
}

impl Graph for Dag {
    #[inline]
    fn node_count(&self) -> u32 {
        self.inputs.starts.len() as u32 - 1
    }

    #[inline]
    fn input_count(&self, node: NodeId) -> u32 {
        self.inputs.count(node)
    }

    #[inline]
    fn dependent_count(&self, node: NodeId) -> u32 {
        self.dependents.count(node)
    }

    #[inline]
    fn inputs(&self, node: NodeId, visit: impl FnMut(NodeId, Edge)) {
        self.inputs.visit(node, visit);
    }

    #[inline]
    fn dependents(&self, node: NodeId, visit: impl FnMut(NodeId, Edge)) {
        self.dependents.visit(node, visit);
    }
}

impl fmt::Debug for Dag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dag({} nodes, {} edges)", self.node_count(), self.inputs.ends.len())
    }
}

/// Each node has a slice of `ends`. The top bit of an end marks an after-edge.
struct Adjacency {
    starts: Box<[u32]>,
    ends: Box<[u32]>,
}

const AFTER: u32 = 1 << 31;

impl Adjacency {
    fn new(node_count: u32, edges: impl Iterator<Item = (NodeId, NodeId, Edge)> + Clone) -> Adjacency {
        let mut starts = vec![0u32; node_count as usize + 1];
        for (from, _, _) in edges.clone() {
            starts[from.index() + 1] += 1;
        }
        // While the slice of node n is filled, entry `n + 1` counts up from its start, and so arrives at its end.
        let mut total = 0;
        for entry in &mut starts[1..] {
            total += std::mem::replace(entry, total);
        }
        let mut ends = vec![0u32; total as usize];
        for (from, to, kind) in edges {
            let place = &mut starts[from.index() + 1];
            ends[*place as usize] = if kind == Edge::After { to.0 | AFTER } else { to.0 };
            *place += 1;
        }
        Adjacency { starts: starts.into(), ends: ends.into() }
    }

    #[inline]
    fn count(&self, node: NodeId) -> u32 {
        self.starts[node.index() + 1] - self.starts[node.index()]
    }

    #[inline]
    fn visit(&self, node: NodeId, mut visit: impl FnMut(NodeId, Edge)) {
        let range = self.starts[node.index()] as usize..self.starts[node.index() + 1] as usize;
        for &end in &self.ends[range] {
            let kind = if end & AFTER == 0 { Edge::Needs } else { Edge::After };
            visit(NodeId(end & !AFTER), kind);
        }
    }
}

/// Shows the first nodes of a cycle.
struct Cycle<'a>(&'a [NodeId]);

impl fmt::Display for Cycle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        for node in self.0.iter().take(SHOWN) {
            write!(f, "{node} -> ")?;
        }
        if self.0.len() > SHOWN {
            write!(f, "({} more) -> ", self.0.len() - SHOWN)?;
        }
        write!(f, "{}", self.0[0])
    }
}
