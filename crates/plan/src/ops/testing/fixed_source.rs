//! `test::fixed_source`: rows from nowhere.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_rows::{Batch, Rows};

use crate::call::Call;
use crate::error::OpError;
use crate::op::{
    Compute, Contract, Demand, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec,
};
use crate::schema::Schema;

pub(in crate::ops) struct FixedSource;

static SPEC: Spec = Spec {
    name: "test::fixed_source",
    doc: "Rows with the ids 1, 2, 3 and so on.",
    inputs: 0,
    params: &[ParamSpec::optional("row_count", ParamKind::Int(0, 10_000_000), "how many; 1 if not given")],
    writes: Effect::Keys(&[]),
    contract: Contract::Dense,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for FixedSource {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let count = node.int("row_count").unwrap_or(1);
        let most = node.registries().limits.bounds.rows;
        if count.unsigned_abs() > most {
            let what = format!("{count} rows are more than the {most} of a request");
            node.problem_with_help(
                "row_count",
                what,
                "`max_rows` under [limits] of validation.toml allows more",
            );
            return None;
        }
        Some(NodePlan::new(Schema::default(), [], move |demand: &Demand, _| {
            let count = demand.rows.map_or(count, |rows| count.min(rows.into()));
            Form::Compute(Arc::new(FixedRows { count, rows: OnceLock::new() }))
        }))
    }
}

struct FixedRows {
    count: i64,
    /// Made by the first request and shared by all: a plan that is only looked at has none.
    rows: OnceLock<Rows>,
}

impl Compute for FixedRows {
    fn cost(&self, _rows: usize) -> Duration {
        Duration::ZERO
    }

    fn makes(&self, _rows: usize) -> usize {
        self.count as usize
    }

    fn run(&self, _: &Inputs, call: &Call, _: &Check<'_>) -> Result<Rows, OpError> {
        call.budget.take_rows(self.count.unsigned_abs(), 0)?;
        let rows = || Rows::new(Batch::new((1..=self.count).collect::<Vec<_>>()));
        Ok(self.rows.get_or_init(rows).clone())
    }
}
