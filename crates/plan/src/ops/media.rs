//! `core::media`: the media of each row.

use super::fetch::{self, FanOut};
use crate::op::{Contract, Effect, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec};
use crate::registry::EndpointKind;
use crate::schema::Schema;

pub(super) struct Media;

static SPEC: Spec = Spec {
    name: "core::media",
    doc: "The ids on the list `media:{id}` of each row.",
    inputs: 1,
    params: &[
        ParamSpec::required(
            "endpoint",
            ParamKind::Endpoint(Some(EndpointKind::Redis)),
            "where lists are kept",
        ),
        ParamSpec::required("fanout", ParamKind::Int(1, 10_000), "the most ids of a list"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Media {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let fanout = fetch::width(node, "fanout")?;
        let endpoint = node.endpoint("endpoint")?.index;
        Some(FanOut::of_ids(endpoint, "media:", fanout).planned(Schema::default()))
    }
}
