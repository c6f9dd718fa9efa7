//! Makes a replayed request drop the nodes that the captured one dropped.
//!
//! Time decided about them, and no time passes in a replay. So the plan is compiled again, and the dropped stages are
//! replaced: by one that fails, one that is dropped, or one that never ends.

use std::collections::HashSet;
use std::sync::Arc;

use anabranch_engine::{Graph as _, NodeId};
use anabranch_plan::call::Call;
use anabranch_plan::expr::{Filter, Pred, Scope};
use anabranch_plan::inspect::{
    Compiled, ObservedRead, Observer, PlanNode, Region, RegionMembership, StageWork,
};
use anabranch_plan::op::{Condition, Form, Inputs, StartedWork, Wait};
use anabranch_plan::schema::Schema;
use anabranch_plan::{Error, LedgerEntry, OpError, Plan};
use anabranch_rows::Rows;
use anabranch_text::Problems;
use tokio::sync::Notify;

/// The fate of a stage in a request that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It fails.
    Fail,
    /// It is dropped with its region.
    Drop,
    /// It never ends: the request that failed may not have got to it.
    Wait,
}

/// A plan whose stages have the fates that a ledger names.
pub(super) struct ForcedPlan {
    pub(super) plan: Plan,
    /// Sees the nodes that were to fail, if one was.
    pub(super) expected: Arc<ExpectedFailures>,
    /// The nodes that forced ones stand for, by number; the forced ones come behind those of the plan.
    pub(super) stand_for: Vec<Option<usize>>,
}

/// The nodes of which one failed. One that makes rows now ends the replay: nothing would go on.
#[derive(Default)]
pub(super) struct ExpectedFailures {
    nodes: HashSet<usize>,
    pub(super) unfailed: Notify,
}

impl ForcedPlan {
    /// The plan with the fates that a ledger names, and all stages but those before the node that failed held back, if
    /// one did: the others may have been anywhere then, and now that node is to fail first.
    pub(super) fn new(
        plan: &Plan,
        ledger: &[LedgerEntry],
        failed: Option<&str>,
    ) -> Result<ForcedPlan, Error> {
        let compiled = plan.compiled();
        let fates = fates(compiled, ledger, failed).unwrap_or_default();
        let expected = failed.map_or_else(HashSet::new, |node| expected(compiled, node));
        let expected = Arc::new(ExpectedFailures { nodes: expected, unfailed: Notify::new() });
        if failed.is_some() && expected.nodes.is_empty() {
            // A node that is not there does not fail.
            expected.unfailed.notify_one();
        }
        if fates.iter().all(Option::is_none) {
            return Ok(ForcedPlan { plan: plan.clone(), expected, stand_for: Vec::new() });
        }
        let mut stand_for = Vec::new();
        let plan = plan.changed(|compiled| {
            for (stage, fate) in fates.iter().enumerate() {
                if let Some(fate) = fate {
                    force(compiled, stage, *fate, &mut stand_for);
                }
            }
        })?;
        Ok(ForcedPlan { plan, expected, stand_for })
    }
}

/// By stage, its fate; `None` if the ledger is of another plan.
fn fates(plan: &Compiled, ledger: &[LedgerEntry], failed: Option<&str>) -> Option<Vec<Option<Fate>>> {
    let mut fates = match failed {
        Some(node) => all_but_before(plan, node),
        None => vec![None; plan.stages.len()],
    };
    let number = |id: &str| plan.nodes.iter().position(|node| node.id == id);
    for entry in ledger.iter().filter(|entry| entry.replaces_rows()) {
        let node = number(&entry.node)?;
        let carries_out = |what: &StageWork| what.nodes().is_some_and(|nodes| nodes.contains(&node));
        let stage = plan.stages.iter().position(|stage| carries_out(&stage.what));
        let membership = stage.and_then(|stage| plan.membership(stage));
        match entry.region.as_deref().map(number) {
            None => fates[stage?] = Some(Fate::Fail),
            Some(region) => {
                let region = plan.regions.iter().position(|other| Some(other.node) == region)?;
                if membership == Some(RegionMembership { region, is_fallback: true }) {
                    fates[stage?] = Some(Fate::Fail);
                    continue;
                }
                let Region { members, timer, .. } = &plan.regions[region];
                members.iter().chain(timer).for_each(|stage| fates[*stage] = Some(Fate::Drop));
            }
        }
    }
    Some(fates)
}

/// The stages that a node does not wait for, which wait; itself is not one of them.
fn all_but_before(plan: &Compiled, node: &str) -> Vec<Option<Fate>> {
    let is = |stage: usize| match plan.stages[stage].what.nodes() {
        Some(nodes) => nodes.iter().any(|number| plan.nodes[*number].id == node),
        None => plan.nodes[plan.first_node(stage)].id == node,
    };
    let count = plan.stages.len();
    let mut fates = vec![Some(Fate::Wait); count];
    let mut open: Vec<usize> = (0..count).filter(|stage| is(*stage)).collect();
    open.iter().for_each(|stage| fates[*stage] = None);
    while let Some(stage) = open.pop() {
        plan.graph.inputs(NodeId(stage as u32), |input, _| {
            if fates[input.index()].take().is_some() {
                open.push(input.index());
            }
        });
    }
    fates
}

/// The last nodes of the stages that the node is part of.
fn expected(plan: &Compiled, node: &str) -> HashSet<usize> {
    let is = |stage: &usize| match &plan.stages[*stage].what {
        StageWork::Exit(region) => plan.nodes[plan.regions[*region].node].id == node,
        what => what.nodes().is_some_and(|nodes| nodes.iter().any(|number| plan.nodes[*number].id == node)),
    };
    (0..plan.stages.len()).filter(is).filter_map(|stage| plan.last_node(stage)).collect()
}

/// Puts a stage in the place of another that has this fate.
fn force(plan: &mut Compiled, stage: usize, fate: Fate, stand_for: &mut Vec<Option<usize>>) {
    let node = plan.first_node(stage);
    let what = match fate {
        Fate::Drop => StageWork::Gate { node, open: true, when: never(plan) },
        Fate::Fail | Fate::Wait => {
            // A new node, because other stages may use the one that it replaces.
            stand_for.push(plan.last_node(stage));
            let form = Form::Wait(Arc::new(ForcedNode(fate)));
            let node = PlanNode { form, ..plan.nodes[node].clone() };
            plan.nodes.push(node);
            StageWork::Wait(plan.nodes.len() - 1)
        }
    };
    plan.stages[stage].what = what;
}

/// A condition that does not hold.
fn never(plan: &Compiled) -> Condition {
    let registries = &plan.registries;
    let schema = Schema::new([]);
    let scope = Scope { keys: &registries.keys, params: &registries.params, schema: &schema };
    let filter = Filter::compile(&Pred::Const(false), scope, "replay", &mut Problems::default());
    Condition { filter: Arc::new(filter.expect("a constant is a condition")), on: None }
}

struct ForcedNode(Fate);

impl Wait for ForcedNode {
    fn start(self: Arc<Self>, _: Inputs, _: &Arc<Call>) -> StartedWork {
        match self.0 {
            Fate::Fail => StartedWork::Ready(Err(OpError::Late("as recorded".to_owned()))),
            Fate::Drop | Fate::Wait => StartedWork::Later(Box::pin(std::future::pending())),
        }
    }
}

impl Observer for ExpectedFailures {
    fn read(&self, _: &ObservedRead<'_>) {}

    fn node(&self, node: usize, _: &Rows) {
        if self.nodes.contains(&node) {
            self.unfailed.notify_one();
        }
    }
}
