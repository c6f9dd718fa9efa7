//! Ops of somebody else, with every kind of parameter.

use anabranch_plan::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, Ops, ParamKind, ParamSpec, Spec, Takes,
};
use anabranch_plan::source::Sources;

/// Gives back its rows.
struct DescribedOp(Spec);

impl Op for DescribedOp {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let same = |_: &Demand, _: &mut Sources<'_>| {
            Form::compute(0.0, |inputs, _, _| Ok(inputs[0].clone().expect("it needs its input")))
        };
        Some(NodePlan::new(node.input(0).clone(), [Takes::passing([])], same))
    }
}

fn described(name: &'static str, inputs: usize, params: &'static [ParamSpec]) -> DescribedOp {
    DescribedOp(Spec {
        name,
        doc: "Does something.",
        inputs,
        params,
        writes: Effect::Unknown,
        contract: Contract::SameRows,
        mark: Mark::Auto,
        distinct: false,
    })
}

const EVERY_KIND: &[ParamSpec] = &[
    ParamSpec::required("count", ParamKind::Int(1, 9), "how many"),
    ParamSpec::optional("least", ParamKind::Int(0, i64::MAX), "from where"),
    ParamSpec::optional("any_int", ParamKind::Int(i64::MIN, i64::MAX), "which"),
    ParamSpec::optional("share", ParamKind::Float, "how much"),
    ParamSpec::optional("loud", ParamKind::Bool, "whether it says so"),
    ParamSpec::optional("label", ParamKind::Text, "what it says"),
    ParamSpec::optional("way", ParamKind::Choice(&["up", "\"down\""]), "which way"),
    ParamSpec::optional("out_key", ParamKind::Key, "where to"),
    ParamSpec::optional("other", ParamKind::Node, "whose"),
    ParamSpec::optional("others", ParamKind::Nodes, "whose"),
    ParamSpec::optional("endpoint", ParamKind::Endpoint(None), "where from"),
    ParamSpec::optional("expr_id", ParamKind::Expr, "what"),
    ParamSpec::optional("pred_id", ParamKind::Pred, "when"),
    ParamSpec::optional("extra", ParamKind::Json, ""),
];
const BY: &[ParamSpec] = &[
    ParamSpec::required("by", ParamKind::Key, "the column"),
    ParamSpec::optional("count", ParamKind::Int(1, 9), "how many"),
];
const BY_OR_NOT: &[ParamSpec] = &[ParamSpec::optional("by", ParamKind::Key, "the column")];
const FANOUT: &[ParamSpec] = &[ParamSpec::required("fanout", ParamKind::Int(1, 9), "the most")];

/// These ops and a few more, in the root, in a namespace of their own, and with names that are no identifiers.
pub(super) fn beside(mut ops: Ops) -> Ops {
    ops.add(described("core::all_rows", 0, FANOUT));
    ops.add(described("core::every_kind", 1, EVERY_KIND));
    ops.add(described("core::by_column", 1, BY));
    ops.add(described("core::by_or_not", 1, BY_OR_NOT));
    ops.add(described("mine::every_kind", 1, &[]));
    ops.add(described("my-own::2nd", 1, &[]));
    ops
}
