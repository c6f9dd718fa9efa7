//! Nodes that need each other in a circle.

use anabranch_engine::Dag;
use anabranch_text::{Problem, Problems, circle, quote};

use super::DocumentNode;

/// Notes circles among the nodes, up to a few.
pub(super) fn find(nodes: &[Option<DocumentNode>], problems: &mut Problems) {
    let inputs: Vec<Vec<usize>> =
        nodes.iter().map(|node| node.as_ref().map_or_else(Vec::new, |node| node.inputs.clone())).collect();
    let node = |place: &usize| nodes[*place].as_ref().map_or(("", ""), |node| (&*node.id, &*node.op));
    Dag::sort(&inputs, |places| {
        let (id, op) = node(&places[0]);
        let what =
            format!("the nodes form a circle: {}", circle(places.iter().map(|place| node(place).0), "needs"));
        problems.error(Problem::new(format!("node {} ({op}), inputs", quote(id)), what));
    });
}
