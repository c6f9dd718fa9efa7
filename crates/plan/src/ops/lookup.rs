//! `core::lookup`: fields of each row, from any store and key.

use std::sync::Arc;

use super::fields::{FieldReader, Fields};
use super::{input, pattern};
use crate::call::Call;
use crate::op::{
    Contract, Demand, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded,
    Sources, Spec, StartedWork, Takes, Wait,
};

pub(super) struct Lookup;

static SPEC: Spec = Spec {
    name: "core::lookup",
    doc: "Adds columns to the rows: fields of the hash whose key a pattern makes of each row.",
    inputs: 1,
    params: &[
        ParamSpec::required("endpoint", ParamKind::Endpoint(None), "where the hashes are kept"),
        ParamSpec::required("key", ParamKind::Text, "the key of a row's hash, as in `user:{id}`"),
        ParamSpec::required(
            "fields",
            ParamKind::Json,
            "what to read: names of fields that are names of keys, or {\"name\": field, \"key\": key}",
        ),
        ParamSpec::optional("overwrite", ParamKind::Bool, "whether it may replace columns; no if not given"),
    ],
    writes: Effect::Unknown,
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Lookup {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let input_schema = node.input(0);
        let fields = Fields::parse(node, "fields");
        let pattern = pattern(node, "key", input_schema);
        let mut schema = input_schema.clone();
        for (key, kind) in fields.columns() {
            if input_schema.kind(key).is_some() && node.bool("overwrite") != Some(true) {
                let name = node.registries().keys.get(key).map_or(String::new(), |entry| entry.name.clone());
                let what = format!("the rows have a column `{name}` already");
                node.problem_with_help("fields", what, "`overwrite: true` replaces it");
            }
            schema.add(key, kind);
        }
        let (pattern, endpoint) = (pattern?, node.endpoint("endpoint")?.index);
        let takes = Takes::passing(pattern.keys()).making(fields.keys()).rows(RowsNeeded::AsAsked);
        let build = move |demand: &Demand, sources: &mut Sources<'_>| match fields
            .bind(&pattern, endpoint, demand, sources)
        {
            Some(fields) => Form::Wait(Arc::new(LookupReader(fields))),
            None => Form::compute(0.0, |inputs, _, _| Ok(input(inputs, 0).clone())),
        };
        Some(NodePlan::new(schema, [takes], build).at(endpoint))
    }
}

struct LookupReader(Arc<FieldReader>);

impl Wait for LookupReader {
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> StartedWork {
        Arc::clone(&self.0).start(input(&inputs, 0), call)
    }
}
