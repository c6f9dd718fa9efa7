//! `core::dedupe`: each value of a column once.

use anabranch_engine::Check;
use anabranch_rows::{Interner, Key, Numbers, Rows};
use hashbrown::HashSet;

use super::group_limit::limited;
use super::{STRIDE, column, input};
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Keep, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Rule, Spec, Takes,
};

pub(super) struct Dedupe;

static SPEC: Spec = Spec {
    name: "core::dedupe",
    doc: "Keeps one row for each value of a column, in order; rows without a value are all kept.",
    inputs: 1,
    params: &[
        ParamSpec::optional("by", ParamKind::Key, "the column; the ids if not given"),
        ParamSpec::optional(
            "keep",
            ParamKind::Choice(&["first", "last"]),
            "which of equal rows stays, where it stands; `first` if not given",
        ),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Subsequence,
    mark: Mark::Auto,
    distinct: false,
};

/// About how long a row takes; for the choice of where to run.
const NANOS: f64 = 15.0;

impl Op for Dedupe {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let schema = node.input(0);
        let key = match node.arg("by") {
            Some(_) => column(node, "by", schema)?.0,
            None => Key::ID,
        };
        let last = node.text("keep") == Some("last");
        let planned = NodePlan::new(schema.clone(), [Takes::passing([key])], move |demand: &Demand, _| {
            let most = demand.rows.map_or(usize::MAX, |rows| rows as usize);
            Form::compute(NANOS, move |inputs, _, check| {
                let rows = input(inputs, 0);
                let kept =
                    if last { keep_last(rows, key, check)? } else { limited(rows, key, 1, most, check)? };
                Ok(rows.with_active(kept))
            })
        });
        Some(planned.by(Rule::Once(key, if last { Keep::Last } else { Keep::First })))
    }
}

fn keep_last(rows: &Rows, key: Key, check: &Check<'_>) -> Result<Vec<u32>, OpError> {
    let numbers = Numbers::matching(rows, key, &mut Interner::default());
    let mut seen = HashSet::with_capacity(rows.len());
    let mut kept: Vec<u32> = Vec::with_capacity(rows.len());
    for position in (0..rows.len()).rev() {
        if position % STRIDE == 0 && check.should_stop() {
            return Err(OpError::Stopped);
        }
        if numbers.get(rows.row(position)).is_none_or(|number| seen.insert(number)) {
            kept.push(rows.row(position) as u32);
        }
    }
    kept.reverse();
    Ok(kept)
}
