//! `core::group_limit`: not too many rows of a kind.

use anabranch_engine::Check;
use anabranch_rows::{Interner, Key, Numbers, Rows};
use hashbrown::HashMap;

use super::{STRIDE, column, input};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Rule, Spec, Takes,
};

pub(super) struct GroupLimit;

static SPEC: Spec = Spec {
    name: "core::group_limit",
    doc: "Keeps the first rows of each value of a column, in order; rows without a value are all kept.",
    inputs: 1,
    params: &[
        ParamSpec::required("by", ParamKind::Key, "the column"),
        ParamSpec::required("count", ParamKind::Int(1, i64::MAX), "the most rows of a value"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Subsequence,
    mark: Mark::Auto,
    distinct: false,
};

/// About how long a row takes; for the choice of where to run.
const NANOS: f64 = 15.0;

impl Op for GroupLimit {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let schema = node.input(0);
        let (key, _) = column(node, "by", schema)?;
        // No group has more rows than this.
        let count = u32::try_from(node.int("count")?).unwrap_or(u32::MAX);
        let planned = NodePlan::new(schema.clone(), [Takes::passing([key])], move |demand: &Demand, _| {
            let most = demand.rows.map_or(usize::MAX, |rows| rows as usize);
            Form::compute(NANOS, move |inputs, _, check| {
                let rows = input(inputs, 0);
                Ok(rows.with_active(limited(rows, key, count, most, check)?))
            })
        });
        Some(planned.by(Rule::PerValue(key, count)))
    }
}

/// The first `most` of the rows that fewer than `count` rows of the same value come before.
pub(super) fn limited(
    rows: &Rows,
    key: Key,
    count: u32,
    most: usize,
    check: &Check<'_>,
) -> Result<Vec<u32>, OpError> {
    let numbers = Numbers::matching(rows, key, &mut Interner::default());
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut kept: Vec<u32> = Vec::with_capacity(rows.len().min(most));
    for position in 0..rows.len() {
        if kept.len() == most {
            break;
        }
        if position % STRIDE == 0 && check.should_stop() {
            return Err(OpError::Stopped);
        }
        let fits = numbers.get(rows.row(position)).is_none_or(|number| {
            let seen = seen.entry(number).or_default();
            *seen = seen.saturating_add(1);
            *seen <= count
        });
        if fits {
            kept.push(rows.row(position) as u32);
        }
    }
    Ok(kept)
}
