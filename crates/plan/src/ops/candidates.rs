//! `core::candidates`: the rows that the request brings.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_rows::{Batch, Column, Key, Kind, Rows};

use super::columns::{constant, fitted};
use super::fields::listed_keys;
use crate::call::Call;
use crate::error::OpError;
use crate::op::{
    Compute, Contract, Demand, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec,
};
use crate::schema::Schema;
use crate::value::Scalar;

pub(super) struct Candidates;

static SPEC: Spec = Spec {
    name: "core::candidates",
    doc: "The `candidates` of the request, with those of their columns that are listed here. A listed column that the \
          request does not bring is null, or has its key's default.",
    inputs: 0,
    params: &[ParamSpec::optional(
        "columns",
        ParamKind::Json,
        "the keys of the columns; only the ids if not given",
    )],
    writes: Effect::Unknown,
    contract: Contract::Any,
    mark: Mark::Inline,
    distinct: false,
};

/// A column of the candidates.
struct CandidateColumn {
    key: Key,
    kind: Kind,
    /// The value if the request does not bring the column.
    default: Option<Scalar>,
}

impl Op for Candidates {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let mut brought = Vec::new();
        for (place, entry) in listed_keys(node, "columns") {
            let kind = node.writable(&place, entry)?;
            let default = if entry.nullable { None } else { entry.default.as_ref() };
            brought.push(CandidateColumn {
                key: entry.key,
                kind,
                default: default.and_then(|it| fitted(it, kind)),
            });
        }
        let schema = Schema::new(brought.iter().map(|column| (column.key, column.kind)));
        Some(NodePlan::new(schema, [], move |demand: &Demand, _| {
            brought.retain(|column| demand.keys.has(column.key));
            Form::Compute(Arc::new(Bring { columns: brought, first: demand.rows }))
        }))
    }
}

struct Bring {
    columns: Vec<CandidateColumn>,
    /// The number of wanted rows, if not all.
    first: Option<u32>,
}

impl Compute for Bring {
    fn cost(&self, _rows: usize) -> Duration {
        Duration::ZERO
    }

    fn run(&self, _: &Inputs, call: &Call, _: &Check<'_>) -> Result<Rows, OpError> {
        let Some(rows) = &call.candidates else {
            let what = "the request has no `candidates`: it needs a list of ids, which may be empty";
            return Err(OpError::Value(what.to_owned()));
        };
        call.budget.take_rows(rows.len() as u64, self.columns.len() as u64)?;
        let batch = rows.batch();
        let column = |column: &CandidateColumn| -> (Key, Column) {
            let own = batch.column(column.key).cloned();
            let missing = || constant(column.kind, column.default.as_ref(), batch.len());
            (column.key, own.unwrap_or_else(missing))
        };
        let columns = self.columns.iter().map(column).collect();
        let rows = rows.with_batch(Batch::with_columns(batch.ids().clone(), columns));
        Ok(self.first.map_or(rows.clone(), |first| rows.first(first as usize)))
    }
}
