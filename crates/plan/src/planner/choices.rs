//! Which nodes run only when an `if` goes one way.

use crate::compiled::PlanNode;

/// A side of an `if` without which some nodes are not needed.
pub(super) struct Side {
    /// The `if`.
    pub(super) node: usize,
    /// Whether it is the side taken when the condition holds.
    pub(super) then: bool,
}

/// The sides that nodes hang on.
pub(super) struct Sides {
    pub(super) list: Vec<Side>,
    /// By node: the closest side, by its place, that all ways from the outputs to it go through. The `if` of that side
    /// may hang on another one in turn.
    pub(super) of: Vec<Option<usize>>,
}

/// The sides that some nodes hang on. Inputs come before the nodes that use them.
pub(super) fn sides(nodes: &[PlanNode], outputs: &[usize]) -> Sides {
    let mut sides = Sides { list: Vec::new(), of: vec![None; nodes.len()] };
    for (number, node) in nodes.iter().enumerate() {
        let Some(choice) = &node.choice else { continue };
        for (then, input, other) in [(true, choice.then, choice.or), (false, choice.or, choice.then)] {
            if node.inputs[input] == node.inputs[other] {
                continue;
            }
            let reached = reached_without(nodes, outputs, number, input);
            if reached[node.inputs[input]] {
                continue;
            }
            // An `if` within a side comes before the one that it is a side of, so the first to come is the closest.
            let place = sides.list.len();
            let hanging = sides.of.iter_mut().zip(reached).filter(|(_, reached)| !reached);
            hanging.for_each(|(side, _)| _ = side.get_or_insert(place));
            sides.list.push(Side { node: number, then });
        }
    }
    sides
}

/// Which nodes the outputs need if `node` did not have its input at `without`.
fn reached_without(nodes: &[PlanNode], outputs: &[usize], node: usize, without: usize) -> Vec<bool> {
    let mut reached = vec![false; nodes.len()];
    outputs.iter().for_each(|output| reached[*output] = true);
    for number in (0..nodes.len()).rev() {
        if reached[number] {
            for input in &nodes[number].inputs {
                if (number, *input) != (node, nodes[node].inputs[without]) {
                    reached[*input] = true;
                }
            }
        }
    }
    reached
}
