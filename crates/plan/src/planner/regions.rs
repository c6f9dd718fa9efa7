//! Regions: nodes that must be done in time as a whole, or are stood in for as a whole.

use anabranch_engine::Edge;
use anabranch_text::{Problem, Problems};

use super::StandInsByNode;
use super::choices::ChoiceBranches;
use super::stages::Edges;
use crate::compiled::{MadeColumn, PlanNode, Region, RegionMembership, Stage, StageWork};

/// The maximum nesting depth of regions.
const DEEPEST: usize = 16;

/// Reports impossible regions: a node that others read as well cannot be dropped for one of them.
pub(super) fn check(nodes: &[PlanNode], sides: &ChoiceBranches, problems: &mut Problems) {
    for &number in &sides.open {
        let node = &nodes[number];
        let input = &nodes[node.inputs[0]].id;
        let what = format!(
            "node `{input}` is also read by others, or an output: it cannot be given up for this one"
        );
        let help = "let them all read this node, or put `timeout_ms` and `fallback` on the node itself";
        let place = format!("node `{}` ({}), inputs", node.id, node.op.spec().name);
        problems.error(Problem::new(place, what).help(help));
    }
    let deep = |number: &&usize| sides.memberships(**number).nth(DEEPEST - 1).is_some();
    if let Some(number) = sides.regions.iter().find(deep) {
        let what = format!("it is within {DEEPEST} other regions; that is as deep as they may be");
        problems.error(Problem::new(format!("node `{}`", nodes[*number].id), what));
    }
}

/// The node outside a region whose rows it was given and the columns that it adds to them, if it is a way of nodes that
/// each go on with the rows of the one before.
pub(super) fn given(
    nodes: &[PlanNode],
    sides: &ChoiceBranches,
    region: usize,
) -> Option<(usize, Vec<MadeColumn>)> {
    let number = sides.regions[region];
    let mut at = nodes[number].inputs[0];
    let mut made: Vec<MadeColumn> = nodes[number].made.clone();
    while within(sides, at, region) {
        let node = &nodes[at];
        if !node.passes {
            return None;
        }
        for column in &node.made {
            match made.iter_mut().find(|other| other.key == column.key) {
                Some(other) => other.of_itself &= column.of_itself,
                None => made.push(*column),
            }
        }
        at = *node.inputs.first()?;
    }
    made.retain(|column| nodes[number].about.schema.kind(column.key).is_some());
    Some((at, made))
}

/// True if a node belongs to a region, directly or not.
fn within(sides: &ChoiceBranches, node: usize, region: usize) -> bool {
    sides.memberships(node).any(|membership| membership == RegionMembership { region, is_fallback: false })
}

/// True if the stages of this region, or of one around it, have a fallback.
pub(super) fn degrades(regions: &[Region], membership: Option<RegionMembership>) -> bool {
    let mut memberships =
        std::iter::successors(membership, |membership| regions[membership.region].membership);
    memberships.any(|membership| !regions[membership.region].stand_ins.is_empty())
}

/// Adds the stages for a fallback of a region that other nodes need too, so that it runs in any case: the exit waits for
/// it only if the region is lost.
fn relay(stages: &mut Vec<Stage>, edges: &mut Edges, region: usize, [exit, at]: [usize; 2]) {
    let (opens, relay) = (stages.len(), stages.len() + 1);
    let (membership, is_fallback) = (stages[exit].membership, stages[exit].inputs[at]);
    stages.push(Stage { membership, ..Stage::new(StageWork::RunFallback(region)) });
    stages.push(Stage {
        membership,
        inputs: vec![is_fallback],
        ..Stage::new(StageWork::PassFallback(region))
    });
    edges.insert((opens, relay), Edge::Needs);
    edges.insert((is_fallback, relay), Edge::Needs);
    edges.insert((relay, exit), Edge::After);
    stages[exit].inputs[at] = relay;
    if !stages[exit].inputs.contains(&is_fallback) {
        edges.remove(&(is_fallback, exit));
    }
}

/// The gate of each region's fallback.
fn spare_gates(stages: &[Stage], regions: usize) -> Vec<Option<usize>> {
    let mut gates = vec![None; regions];
    for (number, stage) in stages.iter().enumerate() {
        if let StageWork::RunFallback(region) = stage.what {
            gates[region] = Some(number);
        }
    }
    gates
}

/// Creates the regions of `core::timeout` nodes. Each has a timer, which starts when all rows from outside are
/// available, and an exit, which waits for the rows and the timer. Timers have the highest numbers of all stages.
pub(super) fn add(
    nodes: &[PlanNode],
    sides: &ChoiceBranches,
    stage_of: &[usize],
    stages: &mut Vec<Stage>,
    edges: &mut Edges,
    gates: &[Option<usize>],
) -> Vec<Region> {
    let fallback_stages = spare_gates(stages, sides.regions.len());
    for (region, &number) in sides.regions.iter().enumerate() {
        let or = nodes[number].choice.as_ref().and_then(|choice| choice.or);
        if let Some(at) = or.filter(|_| fallback_stages[region].is_none()) {
            relay(stages, edges, region, [stage_of[number], at]);
        }
    }
    let (fallback_stages, first_timer) = (spare_gates(stages, sides.regions.len()), stages.len());
    for (number, node) in nodes.iter().enumerate() {
        for membership in sides.memberships(number).filter(|membership| !membership.is_fallback) {
            let outside = node.inputs.iter().filter(|input| !within(sides, **input, membership.region));
            edges.extend(
                outside.map(|input| ((stage_of[*input], first_timer + membership.region), Edge::After)),
            );
        }
    }
    let mut regions = Vec::new();
    for (region, &number) in sides.regions.iter().enumerate() {
        let (exit, timer) = (stage_of[number], stages.len());
        let membership = sides.membership(number);
        let mut given_at = None;
        if let Some((node, _)) = given(nodes, sides, region) {
            // It may also stand in for the region itself, as a node that it falls back to.
            given_at = Some(stages[exit].inputs.len());
            stages[exit].inputs.push(stage_of[node]);
            edges.entry((stage_of[node], exit)).or_insert(Edge::After);
        }
        stages.push(Stage { membership, ..Stage::new(StageWork::Timer(region)) });
        edges.insert((timer, exit), Edge::After);
        let inner = stage_of[nodes[number].inputs[0]];
        stages[inner].completes = Some(region);
        let is_fallback = fallback_stages[region];
        for ended in [inner, timer] {
            edges.extend(is_fallback.map(|is_fallback| ((ended, is_fallback), Edge::After)));
        }
        if let Some(side) = sides.gated(sides.of[number]) {
            let gate = gates[side].expect("something opens it");
            edges.extend([timer].into_iter().chain(is_fallback).map(|stage| ((gate, stage), Edge::Needs)));
        }
        regions.push(Region {
            node: number,
            exit,
            timer: Some(timer),
            stand_ins: Vec::new(),
            members: Vec::new(),
            fallback_stages: Vec::new(),
            given: given_at,
            membership,
        });
    }
    regions
}

/// Gives regions their fallbacks. Other nodes with fallbacks become regions of one stage, within the region that the stage
/// was in.
pub(super) fn add_stand_ins(
    mut stand_ins: StandInsByNode,
    stage_of: &[usize],
    stages: &mut [Stage],
    regions: &mut Vec<Region>,
) {
    for region in regions.iter_mut() {
        region.stand_ins = stand_ins.remove(&region.node).unwrap_or_default();
    }
    for (node, stand_ins) in stand_ins {
        let exit = stage_of[node];
        let region = RegionMembership { region: regions.len(), is_fallback: false };
        let membership = stages[exit].membership.replace(region);
        let given = (!stages[exit].inputs.is_empty()).then_some(0);
        let (members, fallback_stages) = (Vec::new(), Vec::new());
        regions.push(Region {
            node,
            exit,
            timer: None,
            stand_ins,
            members,
            fallback_stages,
            given,
            membership,
        });
    }
}

/// Gives each region the stages that belong to it, directly or not.
pub(super) fn add_members(stages: &[Stage], regions: &mut [Region]) {
    for (number, stage) in stages.iter().enumerate() {
        let mut membership = stage.membership;
        while let Some(RegionMembership { region, is_fallback }) = membership {
            match is_fallback {
                false => regions[region].members.push(number),
                true => regions[region].fallback_stages.push(number),
            }
            membership = regions[region].membership;
        }
    }
}
