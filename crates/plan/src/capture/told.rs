//! What time decided about a captured request, stage by stage.

use anabranch_engine::{Graph as _, NodeId};

use super::parts::Outcome;
use crate::compiled::{Compiled, Region, What};
use crate::ledger::LedgerEntry;
use crate::run::Told;

/// What becomes of each stage in a replay; nothing if time decided nothing.
pub(super) fn stages(plan: &Compiled, outcome: &Outcome) -> Option<Box<[Told]>> {
    let failed = outcome.failure.as_ref().and_then(|failure| failure.node.as_deref());
    if failed.is_none() && outcome.ledger.is_empty() {
        return None;
    }
    let mut told = match failed {
        Some(node) => before(plan, node),
        None => vec![Told::Run; plan.stages.len()].into(),
    };
    outcome.ledger.iter().for_each(|entry| apply(plan, entry, &mut told));
    Some(told)
}

/// Has what an entry of the ledger names not make it once more.
fn apply(plan: &Compiled, entry: &LedgerEntry, told: &mut [Told]) {
    let stages: Vec<usize> = (0..told.len()).filter(|stage| carries_out(plan, *stage, &entry.node)).collect();
    let names = |region: &&Region| Some(&plan.nodes[region.node].id) == entry.region.as_ref();
    let around = |region: &&Region| {
        let alone = plan.nodes[region.node].alone;
        alone
            && (plan.nodes[region.node].id == entry.node
                || stages.iter().any(|stage| region.members.contains(stage)))
    };
    let own = |stage: &usize| {
        let stand_ins = &plan.nodes[plan.first_node(*stage)].stand_ins;
        stand_ins.iter().any(|stand_in| stand_in.name() == entry.fallback)
    };
    let lost = match entry.region {
        Some(_) => plan.regions.iter().find(names),
        None if stages.iter().any(own) => None,
        None => plan.regions.iter().find(around),
    };
    match lost {
        // What was to stand in for the region did not make it either.
        Some(region) if stages.iter().any(|stage| region.spares.contains(stage)) => fail(&stages, told),
        Some(region) => {
            region.members.iter().for_each(|stage| told[*stage] = Told::Wait);
            told[region.timer] = Told::Over;
        }
        None => fail(&stages, told),
    }
}

fn fail(stages: &[usize], told: &mut [Told]) {
    stages.iter().for_each(|stage| told[*stage] = Told::Fail);
}

/// Whether a stage carries out the node of this id.
fn carries_out(plan: &Compiled, stage: usize, node: &str) -> bool {
    let nodes = plan.stages[stage].what.nodes().unwrap_or_default();
    nodes.iter().any(|number| plan.nodes[*number].id == node)
}

/// Only what comes before a node runs. When it failed the other stages may have been anywhere, so a replay holds them
/// up: it is this node that failed first.
fn before(plan: &Compiled, node: &str) -> Box<[Told]> {
    let is = |stage: usize| match &plan.stages[stage].what {
        What::Wait(_) | What::Chain(_) => carries_out(plan, stage, node),
        What::Gate { .. } | What::Exit(_) | What::Timer(_) | What::Spare(_) => {
            plan.nodes[plan.first_node(stage)].id == node
        }
    };
    let count = plan.stages.len();
    let mut told: Box<[Told]> = vec![Told::Wait; count].into();
    let mut waiting: Vec<usize> = (0..count).filter(|stage| is(*stage)).collect();
    waiting.iter().for_each(|stage| told[*stage] = Told::Run);
    while let Some(stage) = waiting.pop() {
        plan.graph.inputs(NodeId(stage as u32), |input, _| {
            if std::mem::replace(&mut told[input.index()], Told::Run) == Told::Wait {
                waiting.push(input.index());
            }
        });
    }
    told
}
