//! `core::filter`: the rows for which a predicate holds.

use std::sync::Arc;

use super::input;
use crate::op::{Contract, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Rule, Spec, Takes};

pub(super) struct Filter;

static SPEC: Spec = Spec {
    name: "core::filter",
    doc: "Keeps the rows for which a predicate holds.",
    inputs: 1,
    params: &[ParamSpec::required("pred_id", ParamKind::Pred, "the predicate")],
    writes: Effect::Keys(&[]),
    contract: Contract::Subsequence,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Filter {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let schema = node.input(0);
        let filter = node.pred("pred_id", schema)?;
        let takes = [Takes::passing(filter.keys().iter().copied())];
        let planned = NodePlan::new(schema.clone(), takes, move |_, _| {
            let filter = Arc::new(filter);
            let setup = filter.has_setup().then(|| Arc::clone(&filter));
            let form = Form::compute(filter.cost(), move |inputs, call, check| {
                let rows = input(inputs, 0);
                Ok(rows.with_active(filter.select(rows, &call.params, check)?))
            });
            match setup {
                Some(filter) => form.after(move |call| filter.setup(&call.params)),
                None => form,
            }
        });
        Some(planned.by(Rule::Where("pred_id")))
    }
}
