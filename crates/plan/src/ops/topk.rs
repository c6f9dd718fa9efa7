//! `core::topk`: the best rows by a column.

use anabranch_rows::{Order, SortKey};

use super::{column, input};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, Op, ParamKind, ParamSpec, Planned, Rule, Spec, Takes,
};

pub(super) struct TopK;

static SPEC: Spec = Spec {
    name: "core::topk",
    doc: "The first rows of those sorted by a column; equal rows keep their order, nulls are last either way.",
    inputs: 1,
    params: &[
        ParamSpec::required("by", ParamKind::Key, "the column to sort by"),
        ParamSpec::required("count", ParamKind::Int(1, i64::MAX), "how many"),
        ParamSpec::optional("order", ParamKind::Choice(&["asc", "desc"]), "which way; `desc` if not given"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Permutation,
    mark: Mark::Auto,
    distinct: false,
};

/// About how long a row takes; for the choice of where to run.
const NANOS: f64 = 4.0;

impl Op for TopK {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        let schema = node.input(0);
        let (key, _) = column(node, "by", schema)?;
        // No batch has more rows than this.
        let count = u32::try_from(node.int("count")?).unwrap_or(u32::MAX);
        let order = if node.text("order") == Some("asc") { Order::Ascending } else { Order::Descending };
        let by = [SortKey { key, order }];
        let planned = Planned::new(schema.clone(), [Takes::passing([key])], move |demand: &Demand, _| {
            let first = demand.rows.map_or(count, |asked| asked.min(count)) as usize;
            Form::compute(NANOS, move |inputs, _, check| {
                let sorted = input(inputs, 0).sorted(&by, Some(first), &mut || check.should_stop());
                sorted.ok_or(OpError::Stopped)
            })
        });
        Some(planned.by(Rule::Top(SortKey { key, order }, count)))
    }
}
