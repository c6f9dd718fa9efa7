//! `core::sort`: rows by one or several columns.

use anabranch_rows::Order;

use super::input;
use super::order::{keys_of, sort_cost, sort_keys};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Rule, Spec, Takes,
};

pub(super) struct Sort;

static SPEC: Spec = Spec {
    name: "core::sort",
    doc: "Sorts by one column, or by several: rows that are equal in the first are sorted by the next. Rows that are \
          equal in all keep their order; nulls are last either way.",
    inputs: 1,
    params: &[
        ParamSpec::required(
            "by",
            ParamKind::SortKeys,
            "the column to sort by, or several, each with its order",
        ),
        ParamSpec::optional(
            "order",
            ParamKind::Choice(&["asc", "desc"]),
            "which way, for columns that do not say; `asc` if not given",
        ),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Permutation,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Sort {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let by = sort_keys(node, Order::Ascending)?;
        let (rule, takes) = (Rule::Sorted(by.clone()), [Takes::passing(keys_of(&by))]);
        let planned = NodePlan::new(node.input(0).clone(), takes, move |demand: &Demand, _| {
            let first = demand.rows.map(|rows| rows as usize);
            Form::compute(sort_cost(&by, first), move |inputs, _, check| {
                let sorted = input(inputs, 0).sorted(&by, first, &mut || check.should_stop());
                sorted.ok_or(OpError::Stopped)
            })
        });
        Some(planned.by(rule))
    }
}
