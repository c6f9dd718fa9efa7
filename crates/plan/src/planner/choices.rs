//! The nodes that run only for one branch of a choice: of an `if`, of a region, or of a region's fallback.

use crate::compiled::{PlanNode, RegionMembership};
use crate::op::When;

/// A branch of a choice without which some nodes are not needed.
pub(super) struct ChoiceBranch {
    /// The node that chooses.
    pub(super) node: usize,
    /// True for the branch that is taken when the condition holds.
    pub(super) then: bool,
    /// True if a stage opens it. The members of a region run in any case.
    pub(super) gated: bool,
}

/// The branches that nodes depend on.
pub(super) struct ChoiceBranches {
    pub(super) list: Vec<ChoiceBranch>,
    /// By node: the index of the closest branch that all paths from the outputs to the node go through. The choice of
    /// that branch may depend on another branch.
    pub(super) of: Vec<Option<usize>>,
    /// The nodes of regions, in order.
    pub(super) regions: Vec<usize>,
    /// The regions whose input is also read by nodes outside.
    pub(super) open: Vec<usize>,
    /// By node: the region it belongs to.
    memberships: Vec<Option<RegionMembership>>,
}

/// The branches that nodes depend on. Inputs must come before the nodes that use them.
pub(super) fn sides(nodes: &[PlanNode], outputs: &[usize]) -> ChoiceBranches {
    let mut sides = ChoiceBranches {
        list: Vec::new(),
        of: vec![None; nodes.len()],
        regions: Vec::new(),
        open: Vec::new(),
        memberships: vec![None; nodes.len()],
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
            // The condition's own input is needed for both branches.
            let shared = other.into_iter().chain(choice.on());
            let both = shared.into_iter().any(|other| node.inputs[other] == input);
            let hanging = match node.alone && then {
                // The planner made the region for this one node, so it has no other members.
                true => hanging_alone(nodes, &uses, number, input),
                false => hanging(nodes, &mut uses, number, input),
            };
            if both || hanging.is_empty() {
                if is_region && then {
                    sides.open.push(number);
                }
                continue;
            }
            // A choice within a branch comes before the choice that the branch belongs to, so the first is the closest.
            let place = sides.list.len();
            for hanging in hanging {
                sides.of[hanging].get_or_insert(place);
            }
            sides.list.push(ChoiceBranch { node: number, then, gated: !(is_region && then) });
        }
    }
    // The choice comes after the nodes of its branches.
    for number in (0..nodes.len()).rev() {
        let Some(ChoiceBranch { node, then, .. }) = sides.of[number].map(|side| &sides.list[side]) else {
            continue;
        };
        sides.memberships[number] = match sides.regions.binary_search(node) {
            Ok(region) => Some(RegionMembership { region, is_fallback: !then }),
            Err(_) => sides.memberships[*node],
        };
    }
    sides
}

impl ChoiceBranches {
    /// The closest branch, from `side` outwards, that a stage opens.
    pub(super) fn gated(&self, mut side: Option<usize>) -> Option<usize> {
        while let Some(at) = side
            && !self.list[at].gated
        {
            side = self.of[self.list[at].node];
        }
        side
    }

    /// The region that a node belongs to.
    pub(super) fn membership(&self, node: usize) -> Option<RegionMembership> {
        self.memberships[node]
    }

    /// The regions that a node belongs to, the closest first.
    pub(super) fn memberships(&self, node: usize) -> impl Iterator<Item = RegionMembership> + '_ {
        std::iter::successors(self.memberships[node], |membership| {
            self.memberships[self.regions[membership.region]]
        })
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
