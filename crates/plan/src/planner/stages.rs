//! Cuts a plan into stages: the nodes of the engine's graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::limit::LimitKey;
use anabranch_engine::policy::StepKind;
use anabranch_engine::{Dag, Edge, NodeId, OnError, Policies, Policy};
use anabranch_rows::Rows;

use super::choices::{ChoiceBranch, ChoiceBranches};
use super::{Parts, StandInsByNode, Surroundings, regions};
use crate::compiled::{Compiled, PlanNode, Region, Stage, StageWork};
use crate::op::{Condition, Form, Mark, When};
use crate::times::Times;

/// Creates the stages of a plan's nodes, which are in an order with inputs first.
///
/// Stages that wait get the lowest numbers, so that they start first among the ready ones.
pub(super) fn cut(parts: Parts, sides: &ChoiceBranches, with: &Surroundings<'_>) -> Compiled {
    let Parts { name, nodes, stand_ins, outputs, output_names, dead, shared_reads, .. } = parts;
    let (deadline, node_timeout, origin) = (parts.deadline, parts.node_timeout, parts.origin);
    let chains = chains(&nodes, &stand_ins, &outputs, sides);
    let (waiting, computing): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        chains.into_iter().partition(|chain| matches!(nodes[chain[0]].form, Form::Wait(_)));
    let mut stage_of = vec![usize::MAX; nodes.len()];
    let mut stages: Vec<Stage> = Vec::new();
    for chain in waiting.into_iter().chain(computing) {
        chain.iter().for_each(|node| stage_of[*node] = stages.len());
        let what = match (&nodes[chain[0]].form, sides.regions.binary_search(&chain[0])) {
            (_, Ok(region)) => StageWork::Exit(region),
            (Form::Wait(_), _) => StageWork::Wait(chain[0]),
            (Form::Compute(_), _) => StageWork::Chain(chain),
        };
        stages.push(Stage::new(what));
    }
    for stage in &mut stages {
        let Some(first) = first(&stage.what, sides) else { continue };
        stage.inputs = nodes[first].inputs.iter().map(|input| stage_of[*input]).collect();
        stage.membership = sides.membership(first);
    }
    let mut edges = edges(&nodes, &stages, sides);
    let gates = add_gates(&nodes, sides, &stage_of, &mut stages, &mut edges);
    let mut regions = regions::add(&nodes, sides, &stage_of, &mut stages, &mut edges, &gates);
    regions::add_stand_ins(stand_ins, &stage_of, &mut stages, &mut regions);
    regions::add_members(&stages, &mut regions);
    let outputs: Vec<usize> = outputs.iter().map(|node| stage_of[*node]).collect();
    mark_uses(&mut stages, &regions, &outputs);
    let edges: Vec<_> =
        edges.into_iter().map(|((from, to), kind)| (NodeId(from as u32), NodeId(to as u32), kind)).collect();
    let graph =
        Dag::new(stages.len() as u32, &edges).expect("a checked plan has no cycle, and its edges are a map");
    let policies = policies(&nodes, &stages, &regions, with.limits);
    let slow_conditions = slow_conditions(&nodes);
    let compiled = Compiled {
        name,
        registries: Arc::clone(with.registries),
        degrades: !regions.is_empty(),
        nodes,
        stages,
        graph,
        policies,
        outputs,
        output_names,
        shared_reads,
        slow_conditions,
        nothing: Rows::empty(),
        dead,
        regions,
        deadline,
        origin,
        times: Times::default(),
    };
    match node_timeout {
        Some(timeout) => Compiled { policies: compiled.stricter(timeout), ..compiled },
        None => compiled,
    }
}

fn slow_conditions(nodes: &[PlanNode]) -> Vec<Condition> {
    let of = |node: &PlanNode| match &node.choice.as_ref()?.when {
        When::Holds(condition) if condition.filter.has_setup() => Some(condition.clone()),
        When::Holds(_) | When::InTime => None,
    };
    nodes.iter().filter_map(of).collect()
}

/// The node whose inputs a stage takes.
fn first(what: &StageWork, sides: &ChoiceBranches) -> Option<usize> {
    match what {
        StageWork::Wait(node) => Some(*node),
        StageWork::Chain(nodes) => Some(nodes[0]),
        StageWork::Exit(region) => Some(sides.regions[*region]),
        StageWork::Gate { .. }
        | StageWork::Timer(_)
        | StageWork::RunFallback(_)
        | StageWork::PassFallback(_) => None,
    }
}

/// Nodes that compute one after the other, each for the next one alone, in one list; every node is in one.
fn chains(
    nodes: &[PlanNode],
    stand_ins: &StandInsByNode,
    outputs: &[usize],
    sides: &ChoiceBranches,
) -> Vec<Vec<usize>> {
    let mut uses = vec![0u32; nodes.len()];
    nodes.iter().flat_map(|node| &node.inputs).for_each(|input| uses[*input] += 1);
    outputs.iter().for_each(|output| uses[*output] += 1);
    // A node with a timeout or a fallback is a stage of its own.
    let guarded = |node: usize| nodes[node].timeout.is_some() || stand_ins.contains_key(&node);
    let region = |node: usize| sides.regions.binary_search(&node).is_ok();
    let fits = |node: usize| {
        let PlanNode { form, op, .. } = &nodes[node];
        let computes = matches!(form, Form::Compute(_)) && op.spec().mark != Mark::Expensive;
        computes && !guarded(node) && !region(node)
    };
    let mut chains: Vec<Vec<usize>> = Vec::new();
    let mut chain_of = vec![usize::MAX; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        let behind = match node.inputs[..] {
            [input]
                if uses[input] == 1
                    && fits(number)
                    && fits(input)
                    && node.choice.is_none()
                    && sides.membership(input) == sides.membership(number) =>
            {
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

pub(super) type Edges = BTreeMap<(usize, usize), Edge>;

/// The sides of a choice are only waited for; all else is needed.
fn edges(nodes: &[PlanNode], stages: &[Stage], sides: &ChoiceBranches) -> Edges {
    let mut edges = Edges::new();
    for (number, stage) in stages.iter().enumerate() {
        let Some(first) = first(&stage.what, sides) else { continue };
        for (at, input) in stage.inputs.iter().enumerate() {
            let side = nodes[first].choice.as_ref().is_some_and(|choice| choice.on() != Some(at));
            let kind = edges.entry((*input, number)).or_insert(Edge::After);
            if !side {
                *kind = Edge::Needs;
            }
        }
    }
    edges
}

/// A gate for each side that something opens: the stages on it that nothing else would keep from running need it. By
/// side, its gate.
fn add_gates(
    nodes: &[PlanNode],
    sides: &ChoiceBranches,
    stage_of: &[usize],
    stages: &mut Vec<Stage>,
    edges: &mut Edges,
) -> Vec<Option<usize>> {
    let mut gates = vec![None; sides.list.len()];
    for (at, ChoiceBranch { node, then, gated }) in sides.list.iter().enumerate() {
        let choice = nodes[*node].choice.as_ref().expect("sides are of nodes with a choice");
        let what = match (&choice.when, sides.regions.binary_search(node)) {
            _ if !gated => continue,
            (When::Holds(when), _) => StageWork::Gate { node: *node, open: *then, when: when.clone() },
            (When::InTime, region) => {
                StageWork::RunFallback(region.expect("what chooses by time is a region"))
            }
        };
        let on = choice.on().map(|on| stage_of[nodes[*node].inputs[on]]);
        edges.extend(on.map(|on| ((on, stages.len()), Edge::Needs)));
        gates[at] = Some(stages.len());
        let inputs = on.into_iter().collect();
        stages.push(Stage { inputs, membership: sides.membership(*node), ..Stage::new(what) });
    }
    let closest: Vec<Option<usize>> = sides.of.iter().map(|side| sides.gated(*side)).collect();
    for (number, side) in closest.iter().enumerate() {
        let Some(side) = side else { continue };
        let gate = gates[*side].expect("it has a gate: something opens it");
        // An input that hangs on the same side keeps it from running.
        let kept = |input: &usize| closest[*input] == Some(*side);
        let needs = nodes[number].choice.is_none();
        if !(needs && nodes[number].inputs.iter().any(kept)) {
            edges.insert((gate, stage_of[number]), Edge::Needs);
        }
    }
    for (at, ChoiceBranch { node, .. }) in sides.list.iter().enumerate() {
        // A choice within another side: its gates need not be asked if that is closed.
        if let (Some(gate), Some(outer)) = (gates[at], closest[*node]) {
            edges.insert((gates[outer].expect("it has a gate"), gate), Edge::Needs);
        }
    }
    gates
}

/// Marks the stages that are outputs, and of the others those with one reader. A stage with a fallback of its own reads
/// without taking: the fallback needs the rows too.
fn mark_uses(stages: &mut [Stage], regions: &[Region], outputs: &[usize]) {
    let mut uses = vec![0u32; stages.len()];
    for stage in stages.iter() {
        let kept = stage.membership.is_some_and(|membership| regions[membership.region].is_one_stage());
        stage.inputs.iter().for_each(|input| uses[*input] += 1 + u32::from(kept));
    }
    outputs.iter().for_each(|output| stages[*output].is_output = true);
    for (stage, uses) in stages.iter_mut().zip(uses) {
        stage.given_away = uses <= 1 && !stage.is_output;
    }
}

fn policies(
    nodes: &[PlanNode],
    stages: &[Stage],
    regions: &[Region],
    limits: &[Option<LimitKey>],
) -> Policies {
    let policy = |stage: &Stage| {
        let (limit, timeout) = match &stage.what {
            StageWork::Wait(node) => {
                let node = &nodes[*node];
                (node.endpoint.and_then(|endpoint| limits[endpoint]), node.timeout)
            }
            StageWork::Chain(chain) => (None, nodes[chain[0]].timeout),
            StageWork::Timer(region) => (None, nodes[regions[*region].node].timeout),
            StageWork::Gate { .. }
            | StageWork::Exit(_)
            | StageWork::RunFallback(_)
            | StageWork::PassFallback(_) => (None, None),
        };
        let on_error = match &stage.what {
            _ if regions::degrades(regions, stage.membership) => OnError::Fallback,
            StageWork::Timer(region) if !regions[*region].stand_ins.is_empty() => OnError::Fallback,
            // Without a fallback, no time is reserved for it: only its own timeout ends a region.
            StageWork::Timer(_) => OnError::Isolate,
            _ => OnError::FailRun,
        };
        Policy { step: step(nodes, stage), limit, timeout, on_error, ..Policy::default() }
    };
    let policies = stages.iter().map(policy).collect();
    Policies::repeating(policies)
}

fn step(nodes: &[PlanNode], stage: &Stage) -> StepKind {
    match &stage.what {
        StageWork::Wait(_) | StageWork::Timer(_) => StepKind::Auto,
        StageWork::Gate { .. }
        | StageWork::Exit(_)
        | StageWork::RunFallback(_)
        | StageWork::PassFallback(_) => StepKind::Inline,
        StageWork::Chain(chain) => match nodes[chain[0]].op.spec().mark {
            Mark::Expensive => StepKind::Pool,
            // A chain is trivial if all of it is.
            _ if chain.iter().all(|node| nodes[*node].op.spec().mark == Mark::Inline) => StepKind::Inline,
            _ => StepKind::Auto,
        },
    }
}
