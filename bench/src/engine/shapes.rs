//! The graphs, the same for every contender.

use anabranch_engine::{Dag, Edge, Graph, NodeId};

/// A graph whose nodes are numbered so that inputs come first.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) dag: Dag,
    /// Nodes that nothing depends on.
    sinks: Vec<NodeId>,
    /// Nodes on the longest path.
    pub(crate) depth: u32,
}

/// The shapes that can have any number of nodes.
pub(crate) const SHAPES: [fn(u32) -> Shape; 4] = [chain, fan, ladder, random];

/// Each node needs the one before.
pub(crate) fn chain(nodes: u32) -> Shape {
    Shape::new("chain", nodes, (1..nodes).map(|node| (node - 1, node)))
}

/// A source, everything else but the sink side by side, a sink.
pub(crate) fn fan(nodes: u32) -> Shape {
    let sink = nodes - 1;
    Shape::new("fan", nodes, (1..sink).flat_map(|middle| [(0, middle), (middle, sink)]))
}

/// Diamonds, each ending where the next begins.
fn ladder(nodes: u32) -> Shape {
    let edges = (1..nodes).flat_map(|node| match node % 3 {
        0 => [Some((node - 2, node)), Some((node - 1, node))],
        sides => [Some((node - sides, node)), None],
    });
    Shape::new("ladder", nodes, edges.flatten())
}

/// Each node needs one to three earlier ones, drawn with a fixed seed.
fn random(nodes: u32) -> Shape {
    let mut seed = 1u64;
    let mut draw = move |below: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((seed >> 32) * u64::from(below)) >> 32) as u32
    };
    let edges = (1..nodes).flat_map(|node| {
        let mut inputs: Vec<u32> = (0..=draw(3)).map(|_| draw(node)).collect();
        inputs.sort_unstable();
        inputs.dedup();
        inputs.into_iter().map(move |input| (input, node))
    });
    Shape::new("random", nodes, edges)
}

/// Fifteen nodes as a ranking has them: two sources of candidates, looked up, scored and filtered apart, then merged,
/// scored, sorted, cut and dressed.
pub(crate) fn ranking() -> Shape {
    let branches = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 7), (7, 8)];
    let tail = [(4, 9), (8, 9), (9, 10), (10, 11), (11, 12), (12, 13), (13, 14)];
    Shape::new("ranking", 15, branches.into_iter().chain(tail))
}

impl Shape {
    fn new(name: &'static str, nodes: u32, edges: impl Iterator<Item = (u32, u32)>) -> Shape {
        let edges: Vec<_> = edges.map(|(input, node)| (NodeId(input), NodeId(node), Edge::Needs)).collect();
        let dag = Dag::new(nodes, &edges).expect("shapes have neither cycles nor double edges");
        let mut depths = vec![1u32; nodes as usize];
        for (input, node, _) in edges {
            depths[node.index()] = depths[node.index()].max(depths[input.index()] + 1);
        }
        let sinks = (0..nodes).map(NodeId).filter(|node| dag.dependent_count(*node) == 0).collect();
        Shape { name, dag, sinks, depth: depths.into_iter().max().unwrap_or(0) }
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.dag.node_count()).map(NodeId)
    }

    /// What `node` starts from: its number and the values of its inputs.
    pub(crate) fn gather(&self, node: NodeId, value: impl Fn(NodeId) -> u64) -> u64 {
        let mut sum = u64::from(node.0);
        self.dag.inputs(node, |input, _| sum = sum.wrapping_add(value(input)));
        sum
    }

    /// The result of the whole graph: the values of its sinks.
    pub(crate) fn result(&self, value: impl Fn(NodeId) -> u64) -> u64 {
        self.sinks.iter().fold(0, |sum, sink| sum.wrapping_add(value(*sink)))
    }

    pub(crate) fn sinks(&self) -> &[NodeId] {
        &self.sinks
    }
}
