//! A predicate and its parts, for one row.

use anabranch_engine::Check;
use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use anabranch_text::Problems;
use serde_json::Value;

use super::Leaf;
use super::table::Table;
use super::values::{cell, json};
use anabranch_plan::Registries;
use anabranch_plan::expr::{Expr, Filter, Name, Pattern, Pred, Program, Scope};
use anabranch_plan::schema::Schema;
use anabranch_plan::{Scalar, Values};

/// Evaluates parts of expressions for one row, by compiling them as the plan's own are.
pub(super) struct Judge<'t> {
    registries: &'t Registries,
    params: &'t Values,
    schema: Schema,
    row: Rows,
}

impl<'t> Judge<'t> {
    /// For the active row at `position`.
    pub(super) fn new(table: &'t Table<'_>, rows: &Rows, position: usize) -> Judge<'t> {
        let row = rows.row(position) as u32;
        let batch = rows.batch();
        let columns = batch.columns().iter().map(|(key, column)| (*key, column.gather(&[row]))).collect();
        let one = Rows::new(Batch::with_columns(vec![batch.ids()[row as usize]], columns));
        Judge::of(&table.plan.registries, &table.call.params, one)
    }

    fn of(registries: &'t Registries, params: &'t Values, row: Rows) -> Judge<'t> {
        let schema = Schema::new(row.batch().columns().iter().map(|(key, column)| (*key, column.kind())));
        Judge { registries, params, schema, row }
    }

    /// A judge for the same row with another value in a column.
    pub(super) fn with(&self, key: Key, value: Option<&Scalar>) -> Judge<'t> {
        let kind = self.schema.kind(key).or_else(|| value.map(Scalar::kind)).unwrap_or(Kind::Int);
        let column = match (value, kind) {
            (None, kind) => Column::all_null(kind, 1),
            (Some(Scalar::Int(value)), Kind::Float) => Column::floats([Some(*value as f64)]),
            (Some(Scalar::Int(value)), _) => Column::ints([Some(*value)]),
            (Some(Scalar::Float(value)), _) => Column::floats([Some(*value)]),
            (Some(Scalar::Bool(value)), _) => Column::bools([Some(*value)]),
            (Some(Scalar::Text(value)), _) => Column::texts([Some(value)]),
        };
        Judge::of(self.registries, self.params, self.row.with_column(key, column))
    }

    /// True if a predicate holds; `None` if it has no value.
    pub(super) fn holds(&self, pred: &Pred) -> Option<bool> {
        let filter = Filter::compile(pred, self.scope(), "why", &mut Problems::default())?;
        Some(!filter.select(&self.row, self.params, &Check::never()).ok()?.is_empty())
    }

    /// The value of an expression, or null; `None` if the value is not a number.
    pub(super) fn value(&self, expr: &Expr) -> Option<Option<Scalar>> {
        let program = Program::compile(expr, self.scope(), "why", &mut Problems::default())?;
        let Some(kind) = program.kind() else { return Some(None) };
        let column = program.column(&self.row, self.params, kind, &Check::never()).ok()?;
        Some(column.get(0).map(Scalar::from))
    }

    fn scope(&self) -> Scope<'_> {
        Scope { keys: &self.registries.keys, params: &self.registries.params, schema: &self.schema }
    }

    /// The key of an expression that is a column which may be otherwise, and its kind.
    pub(super) fn column(&self, expr: &Expr) -> Option<(Key, Kind)> {
        let Expr::Key(name) = expr else { return None };
        let key = match name {
            Name::Id(id) => Key(*id),
            Name::Name(name) => self.registries.keys.named(name)?.key,
        };
        if key == Key::ID { None } else { Some((key, self.schema.kind(key)?)) }
    }

    /// The value of a column.
    pub(super) fn cell(&self, key: Key) -> Option<Scalar> {
        cell(&self.row, key, 0)
    }

    /// An expression as people read it.
    pub(super) fn shown(&self, expr: &Expr) -> String {
        expr.display(&self.registries.keys, &self.registries.params).to_string()
    }

    /// A predicate as people read it.
    pub(super) fn shown_leaf(&self, pred: &Pred) -> String {
        pred.display(&self.registries.keys, &self.registries.params).to_string()
    }

    /// The values of columns and parameters, by their names.
    pub(super) fn named(&self, reads: &[Expr]) -> Vec<(String, Value)> {
        let mut named: Vec<(String, Value)> = Vec::new();
        for read in reads {
            let name = self.shown(read);
            if named.iter().all(|(other, _)| *other != name) {
                named.push((name, json(self.value(read).flatten().as_ref())));
            }
        }
        named
    }

    /// The parts of a predicate that does not hold, in order.
    pub(super) fn leaves(&self, pred: &Pred) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.visit(pred, true, true, &mut leaves);
        leaves
    }

    /// `wanted` is the value that would keep the row. `decides` is whether the value of this predicate matters.
    fn visit(&self, pred: &Pred, wanted: bool, decides: bool, leaves: &mut Vec<Leaf>) {
        let holds = self.holds(pred);
        let decides = decides && holds != Some(wanted);
        match pred {
            Pred::And(a, b) | Pred::Or(a, b) => {
                self.visit(a, wanted, decides, leaves);
                self.visit(b, wanted, decides, leaves);
            }
            Pred::Not(x) => self.visit(x, !wanted, decides, leaves),
            leaf => {
                let off_by = if decides { self.off_by(leaf) } else { None };
                leaves.push(Leaf {
                    says: self.shown_leaf(leaf),
                    holds: holds == Some(true),
                    wanted,
                    decides,
                    with: self.named(&reads_of_pred(leaf)),
                    off_by,
                });
            }
        }
    }

    /// The distance between the sides of a comparison of numbers.
    fn off_by(&self, leaf: &Pred) -> Option<f64> {
        let Pred::Compare(_, a, b) = leaf else { return None };
        let number = |expr: &Expr| match self.value(expr)?? {
            Scalar::Int(value) => Some(value as f64),
            Scalar::Float(value) => Some(value),
            Scalar::Bool(_) | Scalar::Text(_) => None,
        };
        Some((number(a)? - number(b)?).abs())
    }
}

/// The columns and parameters that an expression reads.
pub(super) fn reads_of_expr(expr: &Expr) -> Vec<Expr> {
    let mut reads = Vec::new();
    expr_reads(expr, &mut reads);
    reads
}

/// The columns and parameters that a predicate reads.
pub(super) fn reads_of_pred(pred: &Pred) -> Vec<Expr> {
    let mut reads = Vec::new();
    pred_reads(pred, &mut reads);
    reads
}

fn expr_reads(expr: &Expr, reads: &mut Vec<Expr>) {
    match expr {
        Expr::Const(_) | Expr::Null | Expr::Now => {}
        Expr::Key(_) | Expr::Param(_) => reads.push(expr.clone()),
        Expr::Unary(_, x) | Expr::Hash(_, x) => expr_reads(x, reads),
        Expr::Binary(_, a, b) => [a, b].into_iter().for_each(|part| expr_reads(part, reads)),
        Expr::Clamp(parts) => parts.iter().for_each(|part| expr_reads(part, reads)),
        Expr::If(cond, then, other) => {
            pred_reads(cond, reads);
            [then, other].into_iter().for_each(|part| expr_reads(part, reads));
        }
    }
}

fn pred_reads(pred: &Pred, reads: &mut Vec<Expr>) {
    match pred {
        Pred::Const(_) => {}
        Pred::And(a, b) | Pred::Or(a, b) => [a, b].into_iter().for_each(|part| pred_reads(part, reads)),
        Pred::Not(x) => pred_reads(x, reads),
        Pred::Compare(_, a, b) => [a, b].into_iter().for_each(|part| expr_reads(part, reads)),
        Pred::In(x, _) | Pred::InParam(x, _) | Pred::IsNull(x) | Pred::NotNull(x) => expr_reads(x, reads),
        Pred::Regex { text, pattern, .. } => {
            expr_reads(text, reads);
            if let Pattern::Param(name) = pattern {
                reads.push(Expr::Param(name.clone()));
            }
        }
    }
}
