//! Cuts a plan into stages: the nodes of the engine's graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::{Dag, Edge, LimitKey, NodeId, Policies, Policy, StepKind};
use anabranch_rows::Rows;

use super::Surroundings;
use super::choices::{self, Side};
use crate::compiled::{Compiled, Origin, PlanNode, Stage, What};
use crate::op::{Form, Mark};

/// Makes the stages of `nodes`, which are in an order with inputs first.
///
/// Stages that wait get the lowest numbers, so that of what is ready they start first.
pub(super) fn cut(
    name: String,
    nodes: Vec<PlanNode>,
    outputs: &[usize],
    dead: Vec<(String, String)>,
    shared_reads: usize,
    with: &Surroundings<'_>,
) -> Compiled {
    let chains = chains(&nodes, outputs);
    let (waiting, computing): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        chains.into_iter().partition(|chain| matches!(nodes[chain[0]].form, Form::Wait(_)));
    let mut stage_of = vec![usize::MAX; nodes.len()];
    let mut stages: Vec<Stage> = Vec::new();
    for chain in waiting.into_iter().chain(computing) {
        chain.iter().for_each(|node| stage_of[*node] = stages.len());
        let what = match &nodes[chain[0]].form {
            Form::Wait(_) => What::Wait(chain[0]),
            Form::Compute(_) => What::Chain(chain),
        };
        stages.push(Stage { what, inputs: Vec::new(), given_away: false, is_output: false });
    }
    for stage in &mut stages {
        let first = match &stage.what {
            What::Wait(node) => *node,
            What::Chain(nodes) => nodes[0],
            What::Gate { .. } => continue,
        };
        stage.inputs = nodes[first].inputs.iter().map(|input| stage_of[*input]).collect();
    }
    let mut edges = edges(&nodes, &stages);
    add_gates(&nodes, outputs, &stage_of, &mut stages, &mut edges);
    let outputs: Vec<usize> = outputs.iter().map(|node| stage_of[*node]).collect();
    mark_uses(&mut stages, &outputs);
    let edges: Vec<_> =
        edges.into_iter().map(|((from, to), kind)| (NodeId(from as u32), NodeId(to as u32), kind)).collect();
    let graph =
        Dag::new(stages.len() as u32, &edges).expect("a checked plan has no cycle, and its edges are a map");
    let policies = policies(&nodes, &stages, with.limits);
    let registries = Arc::clone(with.registries);
    let nothing = Rows::none();
    let origin = Origin::default();
    Compiled {
        name,
        registries,
        nodes,
        stages,
        graph,
        policies,
        outputs,
        shared_reads,
        nothing,
        dead,
        origin,
    }
}

/// Nodes that compute one after the other, each for the next one alone, in one list; every node is in one.
fn chains(nodes: &[PlanNode], outputs: &[usize]) -> Vec<Vec<usize>> {
    let mut uses = vec![0u32; nodes.len()];
    nodes.iter().flat_map(|node| &node.inputs).for_each(|input| uses[*input] += 1);
    outputs.iter().for_each(|output| uses[*output] += 1);
    let fits =
        |node: &PlanNode| matches!(node.form, Form::Compute(_)) && node.op.spec().mark != Mark::Expensive;
    let mut chains: Vec<Vec<usize>> = Vec::new();
    let mut chain_of = vec![usize::MAX; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        let behind = match node.inputs[..] {
            [input] if uses[input] == 1 && fits(node) && fits(&nodes[input]) && node.choice.is_none() => {
                Some(input)
            }
            _ => None,
        };
        chain_of[number] = match behind {
            Some(input) => {
                chains[chain_of[input]].push(number);
                chain_of[input]
            }
            None => {
                chains.push(vec![number]);
                chains.len() - 1
            }
        };
    }
    chains
}

type Edges = BTreeMap<(usize, usize), Edge>;

/// The sides of an `if` are only waited for; all else is needed.
fn edges(nodes: &[PlanNode], stages: &[Stage]) -> Edges {
    let mut edges = Edges::new();
    for (number, stage) in stages.iter().enumerate() {
        let first = match &stage.what {
            What::Wait(node) => &nodes[*node],
            What::Chain(chain) => &nodes[chain[0]],
            What::Gate { .. } => continue,
        };
        let kind = if first.choice.is_some() { Edge::After } else { Edge::Needs };
        edges.extend(stage.inputs.iter().map(|input| ((*input, number), kind)));
    }
    edges
}

/// A gate for each side that some stages hang on: those that nothing else would keep from running need it.
fn add_gates(
    nodes: &[PlanNode],
    outputs: &[usize],
    stage_of: &[usize],
    stages: &mut Vec<Stage>,
    edges: &mut Edges,
) {
    let sides = choices::sides(nodes, outputs);
    let first_gate = stages.len();
    for (number, side) in sides.of.iter().enumerate() {
        let Some(side) = side else { continue };
        let stage = stage_of[number];
        // An input that hangs on the same side keeps it from running.
        let kept = |input: &usize| sides.of[*input] == Some(*side);
        let needs = nodes[number].choice.is_none();
        if !(needs && nodes[number].inputs.iter().any(kept)) {
            edges.insert((first_gate + side, stage), Edge::Needs);
        }
    }
    for (at, Side { node, then }) in sides.list.iter().enumerate() {
        let when = &nodes[*node].choice.as_ref().expect("sides are of nodes with a choice").when;
        let what = What::Gate { node: *node, open: *then, when: Arc::clone(when) };
        stages.push(Stage { what, inputs: Vec::new(), given_away: false, is_output: false });
        // An `if` within another side: its gates need not be asked if that is closed.
        if let Some(outer) = sides.of[*node] {
            edges.insert((first_gate + outer, first_gate + at), Edge::Needs);
        }
    }
}

/// Marks what is an output, and what else has one reader alone.
fn mark_uses(stages: &mut [Stage], outputs: &[usize]) {
    let mut uses = vec![0u32; stages.len()];
    stages.iter().flat_map(|stage| &stage.inputs).for_each(|input| uses[*input] += 1);
    outputs.iter().for_each(|output| stages[*output].is_output = true);
    for (stage, uses) in stages.iter_mut().zip(uses) {
        stage.given_away = uses <= 1 && !stage.is_output;
    }
}

fn policies(nodes: &[PlanNode], stages: &[Stage], limits: &[Option<LimitKey>]) -> Policies {
    let limit = |stage: &Stage| match stage.what {
        What::Wait(node) => nodes[node].endpoint.and_then(|endpoint| limits[endpoint]),
        What::Chain(_) | What::Gate { .. } => None,
    };
    let step = |stage: &Stage| match &stage.what {
        What::Wait(_) => StepKind::Auto,
        What::Gate { .. } => StepKind::Inline,
        What::Chain(chain) => match nodes[chain[0]].op.spec().mark {
            Mark::Expensive => StepKind::Pool,
            // A chain is trivial if all of it is.
            _ if chain.iter().all(|node| nodes[*node].op.spec().mark == Mark::Inline) => StepKind::Inline,
            _ => StepKind::Auto,
        },
    };
    let policy = |stage| Policy { step: step(stage), limit: limit(stage), ..Policy::default() };
    let policies = stages.iter().map(policy).collect();
    Policies::repeating(policies).expect("a plan has an output, so it has a stage")
}
