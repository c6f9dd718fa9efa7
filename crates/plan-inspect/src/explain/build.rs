//! Explains a compiled plan.

use std::time::Duration;

use anabranch_engine::{Dag, Edge, Graph as _, NodeId};

use super::{After, Column, Dead, Explanation, Kind, Node, Read, Stage};
use anabranch_plan::Registries;
use anabranch_plan::inspect::{Compiled, PlanNode, StageWork};
use anabranch_plan::registry::EndpointKind;
use anabranch_plan::source::{self, Part, Pattern, Reader};

pub(super) fn explain(plan: &Compiled, inline_threshold: Duration) -> Explanation {
    let shown = plan.nodes.iter().filter(|node| !node.early);
    let nodes = shown.map(|node| explain_node(plan, node)).collect();
    let mut stages: Vec<Stage> = (0..plan.stages.len()).map(|stage| explain_stage(plan, stage)).collect();
    let inputs = |stage: &Stage| stage.after.iter().map(|after| after.stage).collect();
    let order = Dag::sort(&stages.iter().map(inputs).collect::<Vec<_>>(), |_| {});
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for &stage in &order {
        let level = stages[stage].after.iter().map(|after| stages[after.stage].level + 1).max().unwrap_or(0);
        stages[stage].level = level;
        levels.resize_with(levels.len().max(level + 1), Vec::new);
        levels[level].push(stage);
    }
    levels.iter_mut().for_each(|level| level.sort_unstable());
    let (critical_trips, critical_path) = longest_way(&stages, &order);
    Explanation {
        plan: plan.name.clone(),
        nodes,
        outputs: outputs(plan),
        trips: stages.iter().map(|stage| stage.trips).sum(),
        critical_trips,
        critical_path,
        stages,
        levels,
        inline_threshold_us: inline_threshold.as_secs_f64() * 1e6,
        deadline_ms: plan.deadline.map(|deadline| deadline.as_secs_f64() * 1e3),
        dead: plan.dead.iter().map(|(id, op)| Dead { id: id.clone(), op: op.clone() }).collect(),
    }
}

fn explain_node(plan: &Compiled, node: &PlanNode) -> Node {
    let registries = &plan.registries;
    let name =
        |key| registries.keys.get(key).map_or_else(|| format!("key {key}"), |entry| entry.name.clone());
    let column = |(key, kind): (_, anabranch_rows::Kind)| Column {
        name: name(key),
        kind: kind.to_string(),
        asked: node.demand.keys.has(key),
    };
    let early = node.inputs.iter().map(|input| &plan.nodes[*input]).find(|input| input.early);
    let reader = early.unwrap_or(node);
    let inputs = node.inputs.iter().map(|input| &plan.nodes[*input]).filter(|input| !input.early);
    Node {
        id: node.id.clone(),
        op: node.op.spec().name.to_owned(),
        trace: node.about.trace.clone(),
        settings: node.about.settings.clone(),
        guard: reader.about.guard.clone(),
        stands_for: node.about.also.clone(),
        inputs: inputs.map(|input| input.id.clone()).collect(),
        reads_with: early.map(|early| plan.nodes[early.inputs[0]].id.clone()),
        columns: node.about.schema.iter().map(column).collect(),
        first_rows: node.demand.rows,
        reads: reader.about.reads.iter().map(|reader| explain_read(registries, reader)).collect(),
    }
}

fn explain_read(registries: &Registries, reader: &Reader) -> Read {
    let endpoint =
        registries.endpoints.iter().nth(reader.endpoint).expect("reads are of registered endpoints");
    let pattern = shown(&reader.pattern, registries);
    let (command, fields, limit) = match &reader.read {
        source::Read::Fields(fields) => {
            let names: Vec<String> = fields.iter().map(|field| field.name.to_string()).collect();
            (format!("{} {pattern} {}", reader.read.command(), names.join(" ")), names, None)
        }
        source::Read::List { limit } => {
            (format!("LRANGE {pattern} 0 {}", limit.saturating_sub(1)), Vec::new(), Some(*limit))
        }
        source::Read::Scored { limit } => {
            let last = limit.saturating_sub(1);
            (format!("ZRANGE {pattern} 0 {last} REV WITHSCORES"), Vec::new(), Some(*limit))
        }
    };
    let command = match endpoint.kind {
        EndpointKind::Redis => command,
        EndpointKind::Http => match limit {
            Some(limit) => format!("POST {pattern}: the first {limit} ids"),
            None => format!("POST {pattern}: {}", fields.join(", ")),
        },
    };
    Read {
        endpoint: endpoint.id.clone(),
        endpoint_name: endpoint.name.clone(),
        command,
        pattern,
        fields,
        limit,
        shared: reader.is_shared(),
    }
}

/// A pattern with the names of its keys and parameters, as a plan would write it.
pub(crate) fn shown(pattern: &Pattern, registries: &Registries) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.to_string(),
        Part::User => "{user_id}".to_owned(),
        Part::Key(key) => match registries.keys.get(*key) {
            Some(entry) => format!("{{{}}}", entry.name),
            None => format!("{{key {key}}}"),
        },
        Part::Param(index) => match registries.params.iter().nth(*index) {
            Some(entry) => format!("{{${}}}", entry.name),
            None => format!("{{param {index}}}"),
        },
    };
    pattern.parts().iter().map(part).collect()
}

fn explain_stage(plan: &Compiled, stage: usize) -> Stage {
    let number = NodeId(u32::try_from(stage).expect("a graph has fewer than 2^32 nodes"));
    let (kind, nodes) = match &plan.stages[stage].what {
        StageWork::Wait(node) => (Kind::Wait, vec![*node]),
        StageWork::Chain(nodes) => (Kind::Compute, nodes.clone()),
        StageWork::Exit(region) => (Kind::Compute, vec![plan.regions[*region].node]),
        StageWork::Timer(_) => (Kind::Timer, Vec::new()),
        StageWork::Gate { .. } | StageWork::RunFallback(_) | StageWork::PassFallback(_) => {
            (Kind::Gate, Vec::new())
        }
    };
    let mut after = Vec::new();
    plan.graph.inputs(number, |input, edge| {
        after.push(After { stage: input.index(), needed: edge == Edge::Needs });
    });
    after.sort_unstable_by_key(|after| after.stage);
    let trips = nodes.iter().map(|node| plan.nodes[*node].about.reads.len()).sum::<usize>();
    Stage {
        name: plan.stage_name(number),
        kind,
        nodes: nodes.iter().map(|node| plan.nodes[*node].id.clone()).collect(),
        after,
        level: 0,
        trips: u32::try_from(trips).expect("a node makes a few reads"),
    }
}

/// The nodes at the end of the stages whose rows are the answer.
fn outputs(plan: &Compiled) -> Vec<String> {
    let last = |stage: &usize| match &plan.stages[*stage].what {
        StageWork::Chain(nodes) => *nodes.last().expect("a chain has a node"),
        _ => plan.first_node(*stage),
    };
    plan.outputs.iter().map(|stage| plan.nodes[last(stage)].id.clone()).collect()
}

/// The most consecutive trips, and a path of stages with this number.
fn longest_way(stages: &[Stage], order: &[usize]) -> (u32, Vec<usize>) {
    let mut trips = vec![0u32; stages.len()];
    let mut before: Vec<Option<usize>> = vec![None; stages.len()];
    for &stage in order {
        let inputs = stages[stage].after.iter().map(|after| after.stage);
        // Of equal paths, the first one, so that the result is deterministic.
        let longest = inputs.max_by_key(|input| (trips[*input], std::cmp::Reverse(*input)));
        before[stage] = longest;
        trips[stage] = longest.map_or(0, |input| trips[input]) + stages[stage].trips;
    }
    let last = order.iter().copied().max_by_key(|stage| (trips[*stage], stages[*stage].level));
    let mut way: Vec<usize> = std::iter::successors(last, |stage| before[*stage]).collect();
    way.reverse();
    (last.map_or(0, |stage| trips[stage]), way)
}
