//! `core::boost`: a score raised or lowered where a predicate holds.

use anabranch_rows::{Column, Key, Kind, Rows};
use arrow_array::{Array, Float64Array};

use super::input;
use crate::error::OpError;
use crate::expr;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec, Takes,
};

pub(super) struct Boost;

static SPEC: Spec = Spec {
    name: "core::boost",
    doc: "Multiplies a column by `factor` and adds `add` to it, in the active rows for which a predicate holds; \
          nulls stay null.",
    inputs: 1,
    params: &[
        ParamSpec::required("out_key", ParamKind::Key, "the float column to change"),
        ParamSpec::required("pred_id", ParamKind::Pred, "the predicate"),
        ParamSpec::optional("factor", ParamKind::Float, "what to multiply by; 1 if not given"),
        ParamSpec::optional("add", ParamKind::Float, "what to add then; 0 if not given"),
    ],
    writes: Effect::FromParam("out_key"),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Boost {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let schema = node.input(0);
        let filter = node.pred("pred_id", schema);
        let (factor, add) = (node.float("factor"), node.float("add"));
        if factor.is_none() && add.is_none() {
            node.problem("factor", "neither `factor` nor `add` is given, so nothing would change");
        }
        let entry = node.key("out_key")?;
        let kind = node.writable("out_key", entry)?;
        if kind != Kind::Float {
            node.problem("out_key", format!("key `{}` is {kind}, not float", entry.name));
            return None;
        }
        if schema.kind(entry.key).is_none() {
            let what = format!("the rows have no column `{}` here", entry.name);
            node.problem_with_help("out_key", what, "a node before this one has to make it");
            return None;
        }
        let (filter, key) = (filter?, entry.key);
        let (factor, add) = (factor.unwrap_or(1.0), add.unwrap_or(0.0));
        let takes = [Takes::passing(filter.keys().iter().copied().chain([key])).making([key])];
        Some(NodePlan::new(schema.clone(), takes, move |demand: &Demand, _| {
            if !demand.keys.has(key) {
                return Form::compute(0.0, |inputs, _, _| Ok(input(inputs, 0).clone()));
            }
            Form::extend(filter.cost() + 2.0, 1, move |rows, call, check| {
                let chosen = filter.select(rows, &call.params, check)?;
                boosted(rows, key, &chosen, |value| value * factor + add)
            })
        }))
    }
}

fn boosted(rows: &Rows, key: Key, chosen: &[u32], change: impl Fn(f64) -> f64) -> Result<Rows, OpError> {
    let column = rows.batch().column(key).and_then(Column::as_float);
    let column = column.expect("a node before made the column, as checked at load");
    let mut values = column.values().to_vec();
    for row in chosen.iter().map(|row| *row as usize).filter(|row| column.is_valid(*row)) {
        values[row] = change(values[row]);
        if !values[row].is_finite() {
            return Err(expr::Error::NotFinite { row, id: rows.batch().ids()[row] }.into());
        }
    }
    Ok(rows.with_column(key, Column::Float(Float64Array::new(values.into(), column.nulls().cloned()))))
}
