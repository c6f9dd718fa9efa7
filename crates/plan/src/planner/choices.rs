//! Which nodes run only when an `if` goes one way.

use crate::compiled::PlanNode;

/// A side of an `if`, and the nodes that only it needs.
pub(super) struct Side {
    /// The `if`.
    pub(super) node: usize,
    /// Whether it is the side taken when the condition holds.
    pub(super) then: bool,
    /// The nodes that are not to run otherwise, by number.
    pub(super) only: Vec<bool>,
}

/// The sides that some nodes hang on. Inputs come before the nodes that use them.
pub(super) fn sides(nodes: &[PlanNode], outputs: &[usize]) -> Vec<Side> {
    let mut sides = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let Some(choice) = &node.choice else { continue };
        for (then, input, other) in [(true, choice.then, choice.or), (false, choice.or, choice.then)] {
            if node.inputs[input] == node.inputs[other] {
                continue;
            }
            let reached = reached_without(nodes, outputs, number, input);
            let only: Vec<bool> = reached.into_iter().map(|reached| !reached).collect();
            if only.contains(&true) {
                sides.push(Side { node: number, then, only });
            }
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
