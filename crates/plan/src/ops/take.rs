//! `core::take`: the first rows, or the rows of a page.

use super::input;
use super::order::window;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded, Rule, Spec,
    Takes,
};

pub(super) struct Take;

static SPEC: Spec = Spec {
    name: "core::take",
    doc: "Keeps the first rows, after those that it skips.",
    inputs: 1,
    params: &[
        ParamSpec::required("count", ParamKind::Int(1, i64::MAX), "how many rows to keep"),
        ParamSpec::optional("offset", ParamKind::Int(0, i64::MAX), "how many rows to skip; 0 if not given"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Subsequence,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for Take {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let window = window(node)?;
        let takes = [Takes::passing([]).rows(RowsNeeded::Window(window))];
        let planned = NodePlan::new(node.input(0).clone(), takes, move |demand: &Demand, _| {
            let window = window.at_most(demand.rows);
            Form::compute(0.0, move |inputs, _, _| Ok(window.of(input(inputs, 0))))
        });
        Some(planned.by(Rule::Slice(window)))
    }
}
