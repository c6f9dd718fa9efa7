//! `core::follow`: whom each row follows.

use super::fetch;
use crate::op::{Contract, Effect, Mark, Node, NodePlan, Op, Spec};

pub(super) struct Follow;

static SPEC: Spec = Spec {
    name: "core::follow",
    doc: "The ids on the list `follow:{id}` of each row, with the `country` of the hash `user:{id}`.",
    inputs: 1,
    params: fetch::USERS,
    writes: Effect::Named("country"),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Follow {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        fetch::users(node, "follow:")
    }
}
