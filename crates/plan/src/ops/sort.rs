//! `core::sort`: rows by a column.

use anabranch_rows::{Order, SortKey};

use super::{column, input};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, Op, ParamKind, ParamSpec, Planned, Rule, Spec, Takes,
};

pub(super) struct Sort;

static SPEC: Spec = Spec {
    name: "core::sort",
    doc: "Sorts by a column; equal rows keep their order, nulls are last either way.",
    inputs: 1,
    params: &[
        ParamSpec::required("by", ParamKind::Key, "the column to sort by"),
        ParamSpec::optional("order", ParamKind::Choice(&["asc", "desc"]), "which way; `asc` if not given"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Permutation,
    mark: Mark::Auto,
    distinct: false,
};

/// About how long a row takes; for the choice of where to sort.
const NANOS: f64 = 20.0;

impl Op for Sort {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        let schema = node.input(0);
        let (key, _) = column(node, "by", schema)?;
        let order = if node.text("order") == Some("desc") { Order::Descending } else { Order::Ascending };
        let by = [SortKey { key, order }];
        let planned = Planned::new(schema.clone(), [Takes::passing([key])], move |demand: &Demand, _| {
            let first = demand.rows.map(|rows| rows as usize);
            Form::compute(NANOS, move |inputs, _, check| {
                let sorted = input(inputs, 0).sorted(&by, first, &mut || check.should_stop());
                sorted.ok_or(OpError::Stopped)
            })
        });
        Some(planned.by(Rule::Sorted(SortKey { key, order })))
    }
}
