//! `test::fixed_source`: rows from nowhere.

use anabranch_rows::{Batch, Rows};

use crate::op::{Contract, Demand, Effect, Form, Mark, Node, Op, ParamKind, ParamSpec, Planned, Spec};
use crate::schema::Schema;

pub(super) struct FixedSource;

static SPEC: Spec = Spec {
    name: "test::fixed_source",
    doc: "Rows with the ids 1, 2, 3 and so on.",
    inputs: 0,
    params: &[ParamSpec::optional("row_count", ParamKind::Int(1, 10_000_000), "how many; 1 if not given")],
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
            let rows = Rows::new(Batch::new((1..=count).collect::<Vec<_>>()));
            Form::compute(0.0, move |_, _, _| Ok(rows.clone()))
        }))
    }
}
