//! Regions: nodes that must be done in time as a whole, or are stood in for as a whole.

use anabranch_engine::Edge;
use anabranch_text::{Problem, Problems};

use super::StandInsByNode;
use super::choices::ChoiceBranches;
use super::stages::Edges;
use crate::compiled::{MadeColumn, PlanNode, Region, RegionMembership, Stage, StageWork};

/// How deep regions may be within each other.
const DEEPEST: usize = 16;

/// Notes regions that cannot be: what others read too cannot be given up for one of them.
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
    let deep = |number: &&usize| sides.homes(**number).nth(DEEPEST - 1).is_some();
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

/// Whether a node belongs to a region, directly or not.
fn within(sides: &ChoiceBranches, node: usize, region: usize) -> bool {
    sides.homes(node).any(|home| home == RegionMembership { region, spare: false })
}

/// Whether there is a fallback for the stages that belong here.
pub(super) fn degrades(regions: &[Region], home: Option<RegionMembership>) -> bool {
    let mut homes = std::iter::successors(home, |home| regions[home.region].home);
    homes.any(|home| !regions[home.region].stand_ins.is_empty())
}

/// What stands in for a region and runs anyway, since others need it too: the exit waits for it only if the region is
/// lost.
fn relay(stages: &mut Vec<Stage>, edges: &mut Edges, region: usize, [exit, at]: [usize; 2]) {
    let (opens, relay) = (stages.len(), stages.len() + 1);
    let (home, spare) = (stages[exit].home, stages[exit].inputs[at]);
    stages.push(Stage { home, ..Stage::new(StageWork::Spare(region)) });
    stages.push(Stage { home, inputs: vec![spare], ..Stage::new(StageWork::Relay(region)) });
    edges.insert((opens, relay), Edge::Needs);
    edges.insert((spare, relay), Edge::Needs);
    edges.insert((relay, exit), Edge::After);
    stages[exit].inputs[at] = relay;
    if !stages[exit].inputs.contains(&spare) {
        edges.remove(&(spare, exit));
    }
}

/// By region, the gate of what stands in for it.
fn spare_gates(stages: &[Stage], regions: usize) -> Vec<Option<usize>> {
    let mut gates = vec![None; regions];
    for (number, stage) in stages.iter().enumerate() {
        if let StageWork::Spare(region) = stage.what {
            gates[region] = Some(number);
        }
    }
    gates
}

/// Makes the regions of `core::timeout` nodes: a timer each, which starts when all rows from outside are there, and the
/// exit, which waits for the end of both, the rows and the timer. Timers have the highest numbers of all stages.
pub(super) fn add(
    nodes: &[PlanNode],
    sides: &ChoiceBranches,
    stage_of: &[usize],
    stages: &mut Vec<Stage>,
    edges: &mut Edges,
    gates: &[Option<usize>],
) -> Vec<Region> {
    let spares = spare_gates(stages, sides.regions.len());
    for (region, &number) in sides.regions.iter().enumerate() {
        let or = nodes[number].choice.as_ref().and_then(|choice| choice.or);
        if let Some(at) = or.filter(|_| spares[region].is_none()) {
            relay(stages, edges, region, [stage_of[number], at]);
        }
    }
    let (spares, first_timer) = (spare_gates(stages, sides.regions.len()), stages.len());
    for (number, node) in nodes.iter().enumerate() {
        for home in sides.homes(number).filter(|home| !home.spare) {
            let outside = node.inputs.iter().filter(|input| !within(sides, **input, home.region));
            edges.extend(outside.map(|input| ((stage_of[*input], first_timer + home.region), Edge::After)));
        }
    }
    let mut regions = Vec::new();
    for (region, &number) in sides.regions.iter().enumerate() {
        let (exit, timer) = (stage_of[number], stages.len());
        let home = sides.home(number);
        let mut given_at = None;
        if let Some((node, _)) = given(nodes, sides, region) {
            // It may also stand in for the region itself, as a node that it falls back to.
            given_at = Some(stages[exit].inputs.len());
            stages[exit].inputs.push(stage_of[node]);
            edges.entry((stage_of[node], exit)).or_insert(Edge::After);
        }
        stages.push(Stage { home, ..Stage::new(StageWork::Timer(region)) });
        edges.insert((timer, exit), Edge::After);
        let inner = stage_of[nodes[number].inputs[0]];
        stages[inner].completes = Some(region);
        let spare = spares[region];
        for ended in [inner, timer] {
            edges.extend(spare.map(|spare| ((ended, spare), Edge::After)));
        }
        if let Some(side) = sides.gated(sides.of[number]) {
            let gate = gates[side].expect("something opens it");
            edges.extend([timer].into_iter().chain(spare).map(|stage| ((gate, stage), Edge::Needs)));
        }
        regions.push(Region {
            node: number,
            exit,
            timer: Some(timer),
            stand_ins: Vec::new(),
            members: Vec::new(),
            spares: Vec::new(),
            given: given_at,
            home,
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
        let region = RegionMembership { region: regions.len(), spare: false };
        let home = stages[exit].home.replace(region);
        let given = (!stages[exit].inputs.is_empty()).then_some(0);
        let (members, spares) = (Vec::new(), Vec::new());
        regions.push(Region { node, exit, timer: None, stand_ins, members, spares, given, home });
    }
}

/// Gives each region the stages that belong to it, directly or not.
pub(super) fn add_members(stages: &[Stage], regions: &mut [Region]) {
    for (number, stage) in stages.iter().enumerate() {
        let mut home = stage.home;
        while let Some(RegionMembership { region, spare }) = home {
            match spare {
                false => regions[region].members.push(number),
                true => regions[region].spares.push(number),
            }
            home = regions[region].home;
        }
    }
}
