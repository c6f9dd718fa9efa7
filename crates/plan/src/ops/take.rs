//! `core::take`: the first rows.

use super::input;
use crate::op::{
    Contract, Effect, Form, Mark, Node, Op, ParamKind, ParamSpec, Planned, RowsNeeded, Rule, Spec, Takes,
};

pub(super) struct Take;

static SPEC: Spec = Spec {
    name: "core::take",
    doc: "Keeps the first rows.",
    inputs: 1,
    params: &[ParamSpec::required("count", ParamKind::Int(1, i64::MAX), "how many")],
    writes: Effect::Keys(&[]),
    contract: Contract::Prefix,
    mark: Mark::Inline,
    distinct: false,
};

impl Op for Take {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        // No batch has more rows than this.
        let count = u32::try_from(node.int("count")?).unwrap_or(u32::MAX);
        let takes = [Takes::passing([]).rows(RowsNeeded::First(count))];
        let planned = Planned::new(node.input(0).clone(), takes, move |_, _| {
            Form::compute(0.0, move |inputs, _, _| Ok(input(inputs, 0).first(count as usize)))
        });
        Some(planned.by(Rule::First(count)))
    }
}
