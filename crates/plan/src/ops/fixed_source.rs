//! `test::fixed_source`: rows from nowhere.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_rows::{Batch, Rows};

use crate::call::Call;
use crate::error::OpError;
use crate::op::{
    Compute, Contract, Demand, Effect, Form, Inputs, Mark, Node, Op, ParamKind, ParamSpec, Planned, Spec,
};
use crate::schema::Schema;

pub(super) struct FixedSource;

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

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        let count = node.int("row_count").unwrap_or(1);
        Some(Planned::new(Schema::default(), [], move |demand: &Demand, _| {
            let count = demand.rows.map_or(count, |rows| count.min(rows.into()));
            // Made once: all requests share them.
            Form::Compute(Arc::new(Fixed(Rows::new(Batch::new((1..=count).collect::<Vec<_>>())))))
        }))
    }
}

struct Fixed(Rows);

impl Compute for Fixed {
    fn cost(&self, _rows: usize) -> Duration {
        Duration::ZERO
    }

    fn makes(&self, _rows: usize) -> usize {
        self.0.len()
    }

    fn run(&self, _: &Inputs, _: &Call, _: &Check<'_>) -> Result<Rows, OpError> {
        Ok(self.0.clone())
    }
}
