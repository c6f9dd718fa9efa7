//! `core::vm`: a column from an expression.

use std::sync::Arc;

use anabranch_rows::{Column, Kind, Rows};

use super::input;
use crate::error::OpError;
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec, Takes,
};

pub(super) struct Vm;

static SPEC: Spec = Spec {
    name: "core::vm",
    doc: "Writes the value of an expression, for each active row, to a column.",
    inputs: 1,
    params: &[
        ParamSpec::required("out_key", ParamKind::Key, "the column to write"),
        ParamSpec::required("expr_id", ParamKind::Expr, "the expression"),
    ],
    writes: Effect::FromParam("out_key"),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Vm {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let input_schema = node.input(0);
        let program = node.expr("expr_id", input_schema);
        let entry = node.key("out_key")?;
        let kind = node.writable("out_key", entry)?;
        let mut schema = input_schema.clone();
        schema.add(entry.key, kind);
        let program = program?;
        match program.kind() {
            Some(found) if found != kind && (found, kind) != (Kind::Int, Kind::Float) => {
                let what = format!("the expression is of kind {found}, but key `{}` is {kind}", entry.name);
                node.problem("out_key", what);
                return None;
            }
            Some(Kind::Int) if kind == Kind::Float && program.may_round() => {
                let name = &entry.name;
                let what = format!(
                    "integers beyond 2^53 are rounded in the float key `{name}`; an int key keeps them"
                );
                node.warn("expr_id", what);
            }
            None if !entry.nullable => {
                node.warn("expr_id", format!("always null, but key `{}` is not nullable", entry.name));
            }
            _ => {}
        }
        let key = entry.key;
        let not_null = (!entry.nullable).then(|| entry.name.clone());
        let takes = [Takes::passing(program.keys().iter().copied()).making([key])];
        Some(NodePlan::new(schema, takes, move |demand: &Demand, _| {
            if !demand.keys.has(key) {
                return Form::compute(0.0, |inputs, _, _| Ok(input(inputs, 0).clone()));
            }
            let program = Arc::new(program);
            let setup = program.has_setup().then(|| Arc::clone(&program));
            let form = Form::extend(program.cost(), 1, move |rows, call, check| {
                let column = program.column(rows, &call.params, kind, check)?;
                if let Some(name) = &not_null {
                    no_null(&column, rows, name)?;
                }
                Ok(rows.with_column(key, column))
            });
            match setup {
                Some(program) => form.after(move |call| program.setup(&call.params)),
                None => form,
            }
        }))
    }
}

/// Active rows must have a value.
fn no_null(column: &Column, rows: &Rows, name: &str) -> Result<(), OpError> {
    let inactive = rows.batch().len() - rows.len();
    if column.nulls().is_none_or(|nulls| nulls.null_count() <= inactive) {
        // All rows that are not active are null, so that no other is.
        return Ok(());
    }
    let row = rows.iter().find(|row| column.is_null(*row));
    match row {
        None => Ok(()),
        Some(row) => Err(OpError::Value(format!(
            "null for key `{name}`, which is not nullable, at row {row} (id {}); a `coalesce` would give it a value",
            rows.batch().ids()[row]
        ))),
    }
}
