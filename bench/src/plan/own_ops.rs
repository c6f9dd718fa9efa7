//! Ops of the bench's own: rows that are at hand, and rows that come a turn later.

use std::sync::LazyLock;

use anabranch_plan::op::{Contract, Effect, Form, Mark, Node, NodePlan, Op, RowsNeeded, Spec, Takes};
use anabranch_plan::schema::Schema;
use anabranch_rows::{Batch, Column, Key, Rows};

use super::plans::{COUNTRY, SCORE};

/// Rows that [`GivenOp`] gives.
pub(super) const COUNT: i64 = 10_000;

/// The score of the row with this id.
pub(super) fn score(id: i64) -> f64 {
    (id * 7919 % 10_007) as f64
}

/// The country of the row with this id, one of a hundred.
pub(super) fn country(id: i64) -> String {
    format!("C{}", id * 31 % 100)
}

static ROWS: LazyLock<Rows> = LazyLock::new(|| {
    let ids = || 1..=COUNT;
    let scores = Column::floats(ids().map(|id| Some(score(id))));
    let countries = Column::texts(ids().map(|id| Some(country(id))));
    Rows::new(Batch::with_columns(
        ids().collect::<Vec<_>>(),
        vec![(Key(SCORE), scores), (Key(COUNTRY), countries)],
    ))
});

/// Rows with a score and a country.
pub(super) struct GivenOp;

static GIVEN: Spec = Spec {
    name: "bench::given",
    doc: "Rows with a score and a country.",
    inputs: 0,
    params: &[],
    writes: Effect::Keys(&[SCORE, COUNTRY]),
    contract: Contract::Dense,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for GivenOp {
    fn spec(&self) -> &Spec {
        &GIVEN
    }

    fn plan(&self, _: &mut Node<'_>) -> Option<NodePlan> {
        let columns = ROWS.batch().columns().iter().map(|(key, column)| (*key, column.kind()));
        let schema = Schema::new(columns);
        Some(NodePlan::new(schema, [], |_, _| Form::compute(0.0, |_, _, _| Ok(ROWS.clone()))))
    }
}

/// Its input, after the executor has had a turn.
pub(super) struct Later;

static LATER: Spec = Spec {
    name: "bench::later",
    doc: "Its input, after the executor has had a turn.",
    inputs: 1,
    params: &[],
    writes: Effect::Keys(&[]),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: true,
};

impl Op for Later {
    fn spec(&self) -> &Spec {
        &LATER
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let takes = [Takes::passing([]).rows(RowsNeeded::AsAsked)];
        Some(NodePlan::new(node.input(0).clone(), takes, |_, _| {
            Form::wait(|mut inputs, _| async move {
                tokio::task::yield_now().await;
                Ok(inputs.pop().flatten().expect("a node runs after the inputs that it takes"))
            })
        }))
    }
}
