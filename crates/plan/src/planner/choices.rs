//! Which nodes run only for one side of a choice: of an `if`, of a region, or of what stands in for one.

use crate::compiled::{PlanNode, RegionMembership};
use crate::op::When;

/// A side of a choice without which some nodes are not needed.
pub(super) struct ChoiceBranch {
    /// The node that chooses.
    pub(super) node: usize,
    /// Whether it is the side taken when the answer is yes.
    pub(super) then: bool,
    /// Whether something opens it: what is in a region runs anyway.
    pub(super) gated: bool,
}

/// The sides that nodes hang on.
pub(super) struct ChoiceBranches {
    pub(super) list: Vec<ChoiceBranch>,
    /// By node: the closest side, by its place, that all ways from the outputs to it go through. The node of that side
    /// may hang on another one in turn.
    pub(super) of: Vec<Option<usize>>,
    /// The nodes of regions, in order.
    pub(super) regions: Vec<usize>,
    /// Regions whose input somebody else reads too.
    pub(super) open: Vec<usize>,
    /// By node: the region it belongs to.
    homes: Vec<Option<RegionMembership>>,
}

/// The sides that some nodes hang on. Inputs come before the nodes that use them.
pub(super) fn sides(nodes: &[PlanNode], outputs: &[usize]) -> ChoiceBranches {
    let mut sides = ChoiceBranches {
        list: Vec::new(),
        of: vec![None; nodes.len()],
        regions: Vec::new(),
        open: Vec::new(),
        homes: vec![None; nodes.len()],
    };
    let mut uses = uses(nodes, outputs);
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
            let hanging = match node.alone && then {
                // It is the region of this one node, however much hangs on that.
                true => hanging_alone(nodes, &uses, number, input),
                false => hanging(nodes, &mut uses, number, input),
            };
            if both || hanging.is_empty() {
                if is_region && then {
                    sides.open.push(number);
                }
                continue;
            }
            // What chooses within a side comes before the one that it is a side of, so the first to come is the closest.
            let place = sides.list.len();
            for hanging in hanging {
                sides.of[hanging].get_or_insert(place);
            }
            sides.list.push(ChoiceBranch { node: number, then, gated: !(is_region && then) });
        }
    }
    // The node of a side comes behind what is on it.
    for number in (0..nodes.len()).rev() {
        let Some(ChoiceBranch { node, then, .. }) = sides.of[number].map(|side| &sides.list[side]) else {
            continue;
        };
        sides.homes[number] = match sides.regions.binary_search(node) {
            Ok(region) => Some(RegionMembership { region, spare: !then }),
            Err(_) => sides.homes[*node],
        };
    }
    sides
}

impl ChoiceBranches {
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
    pub(super) fn home(&self, node: usize) -> Option<RegionMembership> {
        self.homes[node]
    }

    /// The regions that a node belongs to, the closest first.
    pub(super) fn homes(&self, node: usize) -> impl Iterator<Item = RegionMembership> + '_ {
        std::iter::successors(self.homes[node], |home| self.homes[self.regions[home.region]])
    }
}

/// By node, how often it is an input or an output.
fn uses(nodes: &[PlanNode], outputs: &[usize]) -> Vec<usize> {
    let mut uses = vec![0; nodes.len()];
    nodes.iter().flat_map(|node| &node.inputs).chain(outputs).for_each(|used| uses[*used] += 1);
    uses
}

/// The input `without` itself, if no output would need it.
fn hanging_alone(nodes: &[PlanNode], uses: &[usize], node: usize, without: usize) -> Vec<usize> {
    let own = nodes[node].inputs.iter().filter(|input| **input == without).count();
    if uses[without] == own { vec![without] } else { Vec::new() }
}

/// The nodes that no output would need if `node` did not have its input `without`. `uses` is left as it was.
fn hanging(nodes: &[PlanNode], uses: &mut [usize], node: usize, without: usize) -> Vec<usize> {
    let own = nodes[node].inputs.iter().filter(|input| **input == without).count();
    uses[without] -= own;
    let mut hanging = Vec::new();
    let mut open = if uses[without] == 0 { vec![without] } else { Vec::new() };
    while let Some(number) = open.pop() {
        hanging.push(number);
        for input in &nodes[number].inputs {
            uses[*input] -= 1;
            if uses[*input] == 0 {
                open.push(*input);
            }
        }
    }
    hanging.iter().flat_map(|number| &nodes[*number].inputs).for_each(|input| uses[*input] += 1);
    uses[without] += own;
    hanging
}
