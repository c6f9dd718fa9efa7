//! `core::concat`: rows of two nodes, one after the other.

use anabranch_rows::Rows;

use super::columns::only;
use super::{agreed, input};
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Repeats, RowsNeeded,
    Rule, Spec, Takes,
};

pub(super) struct Concat;

static SPEC: Spec = Spec {
    name: "core::concat",
    doc: "The rows of its input and then those of `rhs`, with the columns of both.",
    inputs: 1,
    params: &[ParamSpec::required("rhs", ParamKind::Node, "the node whose rows come last")],
    writes: Effect::Keys(&[]),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

/// About how long a row's id, and each of its columns, takes.
const NANOS: f64 = 2.0;

impl Op for Concat {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let rhs = *node.nodes("rhs").first()?;
        let schema = agreed(node, "rhs", &[0, rhs])?;
        let takes = [0, 1].map(|_| Takes::passing([]).rows(RowsNeeded::AsAsked));
        let width = schema.iter().len() + 1;
        let planned = NodePlan::new(schema, takes, move |demand: &Demand, _| {
            let keys = demand.keys.clone();
            Form::compute(NANOS * width as f64, move |inputs, call, _| {
                let (first, second) = (only(input(inputs, 0), &keys), only(input(inputs, rhs), &keys));
                let columns = first.batch().columns().len().max(second.batch().columns().len());
                call.budget.take_rows((first.len() + second.len()) as u64, columns as u64)?;
                Ok(Rows::concat(&[&first, &second]))
            })
        });
        Some(planned.by(Rule::Parts(vec![0, rhs], Repeats::Stay)))
    }
}
