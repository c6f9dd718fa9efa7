//! Inspects a captured request while it is replayed: why a row is where it is, and the rows of a node.

use std::sync::Arc;

use super::error::Error;
use super::load::Capture;
use super::replay::{Replayer, again, written};
use crate::why::{NodeRecords, Why};
use anabranch_plan::Plan;
use anabranch_plan::Registries;
use anabranch_plan::inspect::{Compiled, PlanNode};
use anabranch_plan::{Answer, RequestId, Stats};

/// The rows of one node, as a captured request had them.
#[derive(Debug)]
pub struct NodeRows {
    /// The node that made them: the one that stands for it, if several are equal.
    pub node: String,
    /// Its rows, as those of an answer.
    pub answer: Answer,
    /// The registry that names their columns.
    pub registries: Arc<Registries>,
}

impl Replayer {
    /// Explains why a row is in the answer to a captured request, or is not.
    pub async fn why(&self, capture: &Capture, row: i64) -> Result<Why, Error> {
        if let Some(cause) = &capture.outcome.failure {
            return Err(Error::CapturedFailure { address: capture.address, cause: cause.clone() });
        }
        let plan = self.plan_of(capture)?;
        let request = capture.request_to(&plan)?;
        let (seen, answer) = self.watch(&plan, capture).await?;
        let answer = answer.ok_or(Error::Changed { address: capture.address })?;
        crate::why::of(&plan, request, &answer, &seen, row).map_err(|error| Error::Plan(Box::new(error)))
    }

    /// The rows that a node of a captured request had; of one that failed, those of nodes before the one that did.
    pub async fn node(&self, capture: &Capture, node: &str) -> Result<NodeRows, Error> {
        let plan = self.plan_of(capture)?;
        let number = numbered(plan.compiled(), node)?;
        let outcome = &capture.outcome;
        if let Some(cause) = outcome.failure.as_ref().filter(|failure| failure.node.is_none()) {
            // Its progress is unknown.
            return Err(Error::CapturedFailure { address: capture.address, cause: cause.clone() });
        }
        let (seen, _) = self.watch(&plan, capture).await?;
        // The region that was added after a node for its fallback has the rows that replace its own.
        let nodes = &plan.compiled().nodes;
        let behind = || nodes.iter().position(|behind| behind.alone && behind.inputs[0] == number);
        let rows = seen.rows(number).or_else(|| seen.rows(behind()?));
        let rows = rows.ok_or_else(|| Error::NoRows { node: node.to_owned() })?;
        let name = |name: &Option<String>| RequestId::Given(name.clone().unwrap_or_default());
        let answer = Answer {
            request_id: name(&outcome.request_id),
            engine_request_id: name(&outcome.engine_request_id),
            outputs: vec![rows],
            output_names: Arc::new([nodes[number].id.clone()]),
            ledger: outcome.ledger.clone(),
            stats: Stats::default(),
        };
        let registries = Arc::clone(&plan.compiled().registries);
        Ok(NodeRows { node: nodes[number].id.clone(), answer, registries })
    }

    /// Replays the request and records the rows of its nodes. Also returns the answer, if the captured request had one.
    async fn watch(
        &self,
        plan: &Plan,
        capture: &Capture,
    ) -> Result<(Arc<NodeRecords>, Option<Answer>), Error> {
        let seen = NodeRecords::new(plan.compiled().nodes.len());
        let request = capture.request_to(plan)?;
        let kept = Some(Arc::clone(&seen));
        let answer = again(plan, request, &capture.outcome, capture.recorded(), kept).await;
        match written(plan, &answer) == capture.answer {
            true => Ok((seen, answer.ok())),
            false => Err(Error::Changed { address: capture.address }),
        }
    }
}

/// The number of the node that has this id, or stands for it.
fn numbered(plan: &Compiled, id: &str) -> Result<usize, Error> {
    let is = |node: &PlanNode| node.id == id || node.about.also.iter().any(|also| also == id);
    let known = || plan.nodes.iter().filter(|node| !node.alone).map(|node| node.id.clone()).collect();
    plan.nodes.iter().rposition(is).ok_or_else(|| Error::NoNode {
        plan: plan.name.clone(),
        node: id.to_owned(),
        known: known(),
    })
}
