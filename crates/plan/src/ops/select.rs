//! `core::select`: the columns that stay.

use super::columns::only;
use super::fields::listed_keys;
use super::{input, readable_column};
use crate::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded, Spec, Takes,
};
use crate::schema::Schema;

pub(super) struct Select;

static SPEC: Spec = Spec {
    name: "core::select",
    doc: "Keeps these columns and leaves out all others; ids always stay. Before an output it decides which columns \
          the answer has.",
    inputs: 1,
    params: &[ParamSpec::required("columns", ParamKind::Json, "the keys of the columns that stay")],
    writes: Effect::Keys(&[]),
    contract: Contract::SameRows,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for Select {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let given = node.input(0);
        let mut schema = Schema::default();
        for (place, entry) in listed_keys(node, "columns") {
            let (key, kind) = readable_column(node, &place, entry.key, given)?;
            if key == anabranch_rows::Key::ID {
                node.warn(&place, "ids always stay; they need not be listed");
                continue;
            }
            schema.add(key, kind);
        }
        let takes = [Takes::passing([]).rows(RowsNeeded::AsAsked)];
        Some(NodePlan::new(schema, takes, move |demand: &Demand, _| {
            let keys = demand.keys.clone();
            Form::compute(0.0, move |inputs, _, _| Ok(only(input(inputs, 0), &keys)))
        }))
    }
}
