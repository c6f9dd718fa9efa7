//! The frontier (ready queue) of a graph: which nodes may start next. Plain data without clock, task or lock.

use crate::graph::{Edge, Graph, NodeId};
use crate::ready::ReadySet;

/// The state of the nodes of one run. Each edge is visited once, when its input ends; no operation scans the graph.
///
/// ```
/// use anabranch_engine::{Dag, Edge, NodeId, frontier::Frontier};
/// let dag = Dag::new(2, &[(NodeId(0), NodeId(1), Edge::Needs)])?;
/// let mut frontier = Frontier::new(&dag);
/// let first = frontier.start_next().unwrap();
/// assert!(frontier.start_next().is_none());
/// frontier.finish(first, |_| {});
/// assert_eq!(frontier.start_next(), Some(NodeId(1)));
/// # Ok::<(), anabranch_engine::dag::Error>(())
/// ```
pub struct Frontier<'g, G> {
    graph: &'g G,
    nodes: Box<[Node]>,
    ready: ReadySet,
    /// Nodes that failed or were dropped and whose dependents were not updated yet.
    unsettled: Vec<NodeId>,
    counts: Counts,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Some inputs have not ended.
    Waiting,
    /// It may start.
    Ready,
    /// It has started and not ended.
    InFlight,
    /// It succeeded.
    Finished,
    /// It failed.
    Failed,
    /// It will not run, or was stopped.
    Dropped,
}

/// A change of another node that followed from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node was dropped. `ticket` is the number from [`Frontier::set_ticket`], if the node was in flight and had one.
    Dropped { node: NodeId, ticket: Option<u32> },
    /// The last dependent of a finished node has ended, so its value will not be read again.
    Released(NodeId),
}

/// The number of nodes that ended, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub finished: u32,
    pub failed: u32,
    pub dropped: u32,
}

struct Node {
    /// The phase in the lowest three bits. Above them: the number of inputs that have not ended (waiting), or the ticket
    /// (in flight).
    word: u32,
    /// The number of dependents that have not ended, or [`RESULT`].
    unread: u32,
}

const PHASE_BITS: u32 = 3;
const PHASE_MASK: u32 = (1 << PHASE_BITS) - 1;
const NO_TICKET: u32 = u32::MAX >> PHASE_BITS;
/// `unread` of a node without dependents: its value is a result of the run and is never released.
const RESULT: u32 = u32::MAX;

impl<'g, G: Graph> Frontier<'g, G> {
    /// A frontier on which no node has started.
    pub fn new(graph: &'g G) -> Self {
        let node_count = graph.node_count();
        let mut ready = ReadySet::new(node_count);
        let nodes = (0..node_count)
            .map(|number| {
                let node = NodeId(number);
                let unread = match graph.dependent_count(node) {
                    0 => RESULT,
                    count => count,
                };
                let word = match graph.input_count(node) {
                    0 => {
                        ready.insert(number);
                        pack(Phase::Ready, 0)
                    }
                    count => pack(Phase::Waiting, count),
                };
                Node { word, unread }
            })
            .collect();
        Frontier { graph, nodes, ready, unsettled: Vec::new(), counts: Counts::default() }
    }

    /// The graph.
    pub fn graph(&self) -> &'g G {
        self.graph
    }

    /// Starts the ready node with the lowest number.
    #[inline]
    pub fn start_next(&mut self) -> Option<NodeId> {
        let node = NodeId(self.ready.pop_first()?);
        self.nodes[node.index()].word = pack(Phase::InFlight, NO_TICKET);
        Some(node)
    }

    /// The ready node with the lowest number.
    pub fn first_ready(&self) -> Option<NodeId> {
        self.ready.first().map(NodeId)
    }

    /// Starts this node if it is ready, and returns whether it was.
    pub fn start(&mut self, node: NodeId) -> bool {
        if self.phase(node) != Phase::Ready {
            return false;
        }
        self.ready.remove(node.0);
        self.nodes[node.index()].word = pack(Phase::InFlight, NO_TICKET);
        true
    }

    /// Attaches a number to a node in flight. If the node is dropped, [`Change::Dropped`] returns it.
    pub fn set_ticket(&mut self, node: NodeId, ticket: u32) {
        assert!(
            ticket < NO_TICKET && self.phase(node) == Phase::InFlight,
            "only a node in flight has a ticket"
        );
        self.nodes[node.index()].word = pack(Phase::InFlight, ticket);
    }

    /// Removes the number of a node in flight.
    pub fn clear_ticket(&mut self, node: NodeId) {
        if self.phase(node) == Phase::InFlight {
            self.nodes[node.index()].word = pack(Phase::InFlight, NO_TICKET);
        }
    }

    /// The number of a node in flight.
    pub fn ticket(&self, node: NodeId) -> Option<u32> {
        let number = self.nodes[node.index()].word >> PHASE_BITS;
        (self.phase(node) == Phase::InFlight && number != NO_TICKET).then_some(number)
    }

    /// Ends a node in flight with success. Returns `false`, and changes nothing, if the node is not in flight.
    #[inline]
    pub fn finish(&mut self, node: NodeId, mut changed: impl FnMut(Change)) -> bool {
        let entry = &mut self.nodes[node.index()];
        if entry.word & PHASE_MASK != Phase::InFlight as u32 {
            return false;
        }
        entry.word = Phase::Finished as u32;
        self.counts.finished += 1;
        if entry.unread == 0 {
            changed(Change::Released(node));
        }
        let (nodes, ready) = (&mut self.nodes, &mut self.ready);
        self.graph.dependents(node, |dependent, _| satisfy(nodes, ready, dependent));
        self.release_inputs(node, &mut changed);
        true
    }

    /// Ends a node in flight with an error. Nodes that need it are dropped. Nodes that are only after it no longer wait
    /// for it.
    pub fn fail(&mut self, node: NodeId, mut changed: impl FnMut(Change)) -> bool {
        if self.phase(node) != Phase::InFlight {
            return false;
        }
        self.nodes[node.index()].word = Phase::Failed as u32;
        self.counts.failed += 1;
        self.unsettled.push(node);
        self.settle(&mut changed);
        true
    }

    /// Drops a node that has not ended, and all nodes that need it.
    pub fn drop(&mut self, node: NodeId, mut changed: impl FnMut(Change)) -> bool {
        let dropped = self.drop_one(node, &mut changed);
        self.settle(&mut changed);
        dropped
    }

    /// The state of `node`.
    #[inline]
    pub fn phase(&self, node: NodeId) -> Phase {
        match self.nodes[node.index()].word & PHASE_MASK {
            0 => Phase::Waiting,
            1 => Phase::Ready,
            2 => Phase::InFlight,
            3 => Phase::Finished,
            4 => Phase::Failed,
            _ => Phase::Dropped,
        }
    }

    /// The number of edges that `node` still waits for.
    pub fn waiting_on(&self, node: NodeId) -> u32 {
        match self.phase(node) {
            Phase::Waiting => self.nodes[node.index()].word >> PHASE_BITS,
            _ => 0,
        }
    }

    /// The number of nodes that ended so far, by how they ended.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether every node has ended.
    #[inline]
    pub fn is_done(&self) -> bool {
        let Counts { finished, failed, dropped } = self.counts;
        (finished + failed + dropped) as usize == self.nodes.len()
    }

    fn drop_one(&mut self, node: NodeId, changed: &mut impl FnMut(Change)) -> bool {
        let ticket = match self.phase(node) {
            Phase::Waiting => None,
            Phase::Ready => {
                self.ready.remove(node.0);
                None
            }
            Phase::InFlight => self.ticket(node),
            Phase::Finished | Phase::Failed | Phase::Dropped => return false,
        };
        self.nodes[node.index()].word = Phase::Dropped as u32;
        self.counts.dropped += 1;
        self.unsettled.push(node);
        changed(Change::Dropped { node, ticket });
        true
    }

    /// Updates the dependents of all unsettled nodes. A list instead of recursion, so that deep graphs need no stack.
    fn settle(&mut self, changed: &mut impl FnMut(Change)) {
        let graph = self.graph;
        while let Some(node) = self.unsettled.pop() {
            graph.dependents(node, |dependent, edge| match edge {
                Edge::After => satisfy(&mut self.nodes, &mut self.ready, dependent),
                Edge::Needs => {
                    self.drop_one(dependent, changed);
                }
            });
            self.release_inputs(node, changed);
        }
    }

    #[inline]
    fn release_inputs(&mut self, node: NodeId, changed: &mut impl FnMut(Change)) {
        self.graph.inputs(node, |input, _| {
            let entry = &mut self.nodes[input.index()];
            entry.unread -= 1;
            if entry.unread == 0 && entry.word == Phase::Finished as u32 {
                changed(Change::Released(input));
            }
        });
    }
}

/// Marks one input edge of a waiting node as satisfied. A node that has ended is left alone.
#[inline]
fn satisfy(nodes: &mut [Node], ready: &mut ReadySet, dependent: NodeId) {
    let word = &mut nodes[dependent.index()].word;
    if *word & PHASE_MASK != Phase::Waiting as u32 {
        return;
    }
    *word -= 1 << PHASE_BITS;
    if *word >> PHASE_BITS == 0 {
        *word = pack(Phase::Ready, 0);
        ready.insert(dependent.0);
    }
}

#[inline]
fn pack(phase: Phase, number: u32) -> u32 {
    number << PHASE_BITS | phase as u32
}
