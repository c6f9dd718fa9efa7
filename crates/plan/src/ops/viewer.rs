//! `core::viewer`: the user of the request.

use std::sync::Arc;

use anabranch_rows::{Batch, Rows};

use super::fields::{FieldReader, Fields};
use crate::call::Call;
use crate::op::{
    Contract, Demand, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Sources, Spec,
    StartedWork, Wait,
};
use crate::registry::EndpointKind;
use crate::schema::Schema;
use crate::source::Pattern;

pub(super) struct Viewer;

static SPEC: Spec = Spec {
    name: "core::viewer",
    doc: "One row, the user of the request, with the `country` of the hash `user:{id}`.",
    inputs: 0,
    params: &[ParamSpec::required(
        "endpoint",
        ParamKind::Endpoint(Some(EndpointKind::Redis)),
        "where users are kept",
    )],
    writes: Effect::Named("country"),
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Viewer {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let endpoint = node.endpoint("endpoint")?.index;
        let fields = Fields::country(node)?;
        let schema = Schema::new(fields.columns());
        let build = move |demand: &Demand, sources: &mut Sources<'_>| {
            // The row's id is the user's, so this is the very read that rows of other users make.
            let fields = fields.bind(&Pattern::of_id("user:"), endpoint, demand, sources);
            Form::Wait(Arc::new(ViewerReader(fields)))
        };
        Some(NodePlan::new(schema, [], build).at(endpoint).bare(viewer))
    }
}

fn viewer(call: &Call) -> Rows {
    Rows::new(Batch::new(vec![call.user.row_id()]))
}

struct ViewerReader(Option<Arc<FieldReader>>);

impl Wait for ViewerReader {
    fn start(self: Arc<Self>, _: Inputs, call: &Arc<Call>) -> StartedWork {
        let rows = viewer(call);
        match &self.0 {
            Some(fields) => Arc::clone(fields).start(&rows, call),
            None => StartedWork::Ready(Ok(rows)),
        }
    }
}
