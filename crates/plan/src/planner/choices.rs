//! Which nodes run only for one side of a choice: of an `if`, of a region, or of what stands in for one.

use crate::compiled::{Home, PlanNode};
use crate::op::When;

/// A side of a choice without which some nodes are not needed.
pub(super) struct Side {
    /// The node that chooses.
    pub(super) node: usize,
    /// Whether it is the side taken when the answer is yes.
    pub(super) then: bool,
    /// Whether something opens it: what is in a region runs anyway.
    pub(super) gated: bool,
}

/// The sides that nodes hang on.
pub(super) struct Sides {
    pub(super) list: Vec<Side>,
    /// By node: the closest side, by its place, that all ways from the outputs to it go through. The node of that side
    /// may hang on another one in turn.
    pub(super) of: Vec<Option<usize>>,
    /// The nodes of regions, in order.
    pub(super) regions: Vec<usize>,
    /// Regions whose input somebody else reads too.
    pub(super) open: Vec<usize>,
    /// By node: the region it belongs to.
    homes: Vec<Option<Home>>,
}

/// The sides that some nodes hang on. Inputs come before the nodes that use them.
pub(super) fn sides(nodes: &[PlanNode], outputs: &[usize]) -> Sides {
    let mut sides = Sides {
        list: Vec::new(),
        of: vec![None; nodes.len()],
        regions: Vec::new(),
        open: Vec::new(),
        homes: vec![None; nodes.len()],
    };
    for (number, node) in nodes.iter().enumerate() {
        let Some(choice) = &node.choice else { continue };
        let is_region = matches!(choice.when, When::InTime);
        if is_region {
            sides.regions.push(number);
        }
        for (then, input, other) in
            [(true, Some(choice.then), choice.or), (false, choice.or, Some(choice.then))]
        {
            let Some(input) = input.map(|at| node.inputs[at]) else { continue };
            // The condition's own input is needed whichever side is taken.
            let shared = other.into_iter().chain(choice.on());
            let both = shared.into_iter().any(|other| node.inputs[other] == input);
            let reached = reached_without(nodes, outputs, number, input);
            if both || reached[input] {
                if is_region && then {
                    sides.open.push(number);
                }
                continue;
            }
            // What chooses within a side comes before the one that it is a side of, so the first to come is the closest.
            let place = sides.list.len();
            let hangs = |number: usize| !reached[number] && (!(node.alone && then) || number == input);
            let hanging = sides.of.iter_mut().enumerate().filter(|(number, _)| hangs(*number));
            hanging.for_each(|(_, side)| _ = side.get_or_insert(place));
            sides.list.push(Side { node: number, then, gated: !(is_region && then) });
        }
    }
    // The node of a side comes behind what is on it.
    for number in (0..nodes.len()).rev() {
        let Some(Side { node, then, .. }) = sides.of[number].map(|side| &sides.list[side]) else { continue };
        sides.homes[number] = match sides.regions.binary_search(node) {
            Ok(region) => Some(Home { region, spare: !then }),
            Err(_) => sides.homes[*node],
        };
    }
    sides
}

impl Sides {
    /// The closest side, from `side` outwards, that something opens.
    pub(super) fn gated(&self, mut side: Option<usize>) -> Option<usize> {
        while let Some(at) = side
            && !self.list[at].gated
        {
            side = self.of[self.list[at].node];
        }
        side
    }

    /// The region that a node belongs to.
    pub(super) fn home(&self, node: usize) -> Option<Home> {
        self.homes[node]
    }

    /// The regions that a node belongs to, the closest first.
    pub(super) fn homes(&self, node: usize) -> impl Iterator<Item = Home> + '_ {
        std::iter::successors(self.homes[node], |home| self.homes[self.regions[home.region]])
    }
}

/// Which nodes the outputs need if `node` did not have its input `without`.
fn reached_without(nodes: &[PlanNode], outputs: &[usize], node: usize, without: usize) -> Vec<bool> {
    let mut reached = vec![false; nodes.len()];
    outputs.iter().for_each(|output| reached[*output] = true);
    for number in (0..nodes.len()).rev() {
        if reached[number] {
            for input in &nodes[number].inputs {
                if (number, *input) != (node, without) {
                    reached[*input] = true;
                }
            }
        }
    }
    reached
}
