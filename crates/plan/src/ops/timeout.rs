//! `core::timeout`: a region, all that runs only for its rows, which must be done in time or is stood in for.

use anabranch_rows::{Key, Kind};

use super::columns::completed;
use super::{agreed, input};
use crate::op::{
    Choice, Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, RowsNeeded, Sources, Spec, Takes, When,
};

pub(super) struct Timeout;

/// Its name, which the planner knows.
pub(crate) const REGION: &str = "core::timeout";

static SPEC: Spec = Spec {
    name: REGION,
    doc: "The rows of its input, or what its `fallback` says if the nodes that run for them alone are not done in time.",
    inputs: 1,
    params: &[],
    writes: Effect::Keys(&[]),
    contract: Contract::Any,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for Timeout {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let or = (node.input_count() > 1).then_some(1);
        let schema = agreed(node, "fallback", &(0..node.input_count()).collect::<Vec<_>>())?;
        let takes: Vec<Takes> =
            (0..node.input_count()).map(|_| Takes::passing([]).rows(RowsNeeded::AsAsked)).collect();
        let lacks = |at: usize| -> Vec<(Key, Kind)> {
            schema.iter().filter(|(key, _)| node.input(at).kind(*key).is_none()).collect()
        };
        let mut missing: Vec<Vec<(Key, Kind)>> = (0..node.input_count()).map(lacks).collect();
        let build = move |demand: &Demand, _: &mut Sources<'_>| {
            missing.iter_mut().for_each(|side| side.retain(|(key, _)| demand.keys.has(*key)));
            // The first that came: the run hands over one of them.
            Form::compute(0.0, move |inputs, _, _| {
                let came = missing.iter().enumerate().find(|(at, _)| inputs[*at].is_some());
                let (at, missing) = came.expect("a region hands over the rows of one of its inputs");
                Ok(completed(input(inputs, at), missing))
            })
        };
        Some(NodePlan::new(schema, takes, build).choosing(Choice { when: When::InTime, then: 0, or }))
    }
}
