//! `core::recommendation`: the recommendations for each row.

use super::fetch;
use crate::op::{Contract, Effect, Mark, Node, NodePlan, Op, Spec};

pub(super) struct Recommendation;

static SPEC: Spec = Spec {
    name: "core::recommendation",
    doc: "The ids on the list `recommendation:{id}` of each row, with the `country` of the hash `user:{id}`.",
    inputs: 1,
    params: fetch::USERS,
    writes: Effect::Named("country"),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Recommendation {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        fetch::users(node, "recommendation:")
    }
}
