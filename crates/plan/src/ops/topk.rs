//! `core::topk`: the best rows by one or several columns.

use anabranch_rows::Order;

use super::input;
use super::order::{keys_of, sort_cost, sort_keys, window};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Rule, Spec, Takes,
};

pub(super) struct TopK;

static SPEC: Spec = Spec {
    name: "core::topk",
    doc: "The first rows of those sorted by one or several columns, after those that it skips. Rows that are equal \
          in all columns keep their order; nulls are last either way.",
    inputs: 1,
    params: &[
        ParamSpec::required(
            "by",
            ParamKind::SortKeys,
            "the column to sort by, or several, each with its order",
        ),
        ParamSpec::required("count", ParamKind::Int(1, i64::MAX), "how many rows to keep"),
        ParamSpec::optional("offset", ParamKind::Int(0, i64::MAX), "how many rows to skip; 0 if not given"),
        ParamSpec::optional(
            "order",
            ParamKind::Choice(&["asc", "desc"]),
            "which way, for columns that do not say; `desc` if not given",
        ),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Permutation,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for TopK {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let by = sort_keys(node, Order::Descending);
        let window = window(node)?;
        let by = by?;
        let (rule, takes) = (Rule::Top(by.clone(), window), [Takes::passing(keys_of(&by))]);
        let planned = NodePlan::new(node.input(0).clone(), takes, move |demand: &Demand, _| {
            let window = window.at_most(demand.rows);
            let first = Some(window.end() as usize);
            Form::compute(sort_cost(&by, first), move |inputs, _, check| {
                let sorted = input(inputs, 0).sorted(&by, first, &mut || check.should_stop());
                let sorted = sorted.ok_or(OpError::Stopped)?;
                Ok(if window.offset == 0 { sorted } else { window.of(&sorted) })
            })
        });
        Some(planned.by(rule))
    }
}
