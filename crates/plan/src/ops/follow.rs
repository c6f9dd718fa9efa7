//! `core::follow`: whom each row follows.

use super::fetch::{self, FanOut};
use super::fields::Fields;
use crate::op::{Contract, Effect, Mark, Node, Op, ParamKind, ParamSpec, Planned, Spec};
use crate::registry::EndpointKind;
use crate::schema::Schema;

pub(super) struct Follow;

static SPEC: Spec = Spec {
    name: "core::follow",
    doc: "The ids on the list `follow:{id}` of each row, with the `country` of the hash `user:{id}`.",
    inputs: 1,
    params: &[
        ParamSpec::required(
            "endpoint",
            ParamKind::Endpoint(Some(EndpointKind::Redis)),
            "where lists and users are kept",
        ),
        ParamSpec::required("fanout", ParamKind::Int(1, u32::MAX as i64), "the most ids of a list"),
    ],
    writes: Effect::Named("country"),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Follow {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<Planned> {
        let fanout = fetch::width(node, "fanout");
        let fields = Fields::country(node)?;
        let schema = Schema::new(fields.columns());
        let endpoint = node.endpoint("endpoint")?.index;
        Some(FanOut { fields, ..FanOut::of_ids(endpoint, "follow:", fanout?) }.planned(schema))
    }
}
