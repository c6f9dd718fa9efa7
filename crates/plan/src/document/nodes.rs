//! The nodes of a plan.

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use super::names::Names;
use super::{DocumentNode, Fallback, Reader, args, capabilities, empty, guard};
use crate::fields::Fields;
use crate::json::show;
use crate::op::{Ops, Spec};
use crate::ops::REGION;

impl Reader<'_> {
    /// One a node of the file; `None` for those of which too little is known.
    pub(super) fn nodes(
        &self,
        list: &[Value],
        names: &mut Names<'_>,
        capabilities: &[String],
        problems: &mut Problems,
    ) -> Vec<Option<DocumentNode>> {
        let nodes = list.iter().enumerate().map(|(at, value)| match value.as_object() {
            Some(map) => self.node(at, map, names, capabilities, problems),
            None => {
                let place = format!("nodes[{at}]");
                problems.error(Problem::new(place, format!("must be an object, not {}", show(value))));
                None
            }
        });
        nodes.collect()
    }

    fn node(
        &self,
        at: usize,
        map: &Map<String, Value>,
        names: &mut Names<'_>,
        capabilities: &[String],
        problems: &mut Problems,
    ) -> Option<DocumentNode> {
        let place = place_of(at, map);
        let errors = problems.errors.len();
        let mut fields = Fields::new(map, &place, problems);
        let id: Option<&str> = fields.required("node_id");
        let pattern = &self.registries.limits.node_id;
        if let Some(id) = id.filter(|id| !pattern.is_match(id)) {
            fields.error("node_id", format!("{} does not match {pattern}", quote(id)));
        }
        let op: Option<&str> = fields.required("op");
        let spec = op.and_then(|op| self.spec(op, &mut fields));
        let listed: Option<&[Value]> = fields.required("inputs");
        // No parameters at all may be written as null.
        let params = match fields.raw("params") {
            None | Some(Value::Null) => empty(),
            Some(_) => fields.optional("params").unwrap_or(empty()),
        };
        let extensions: &Map<String, Value> = fields.optional("extensions").unwrap_or(empty());
        let guard = guard::take(&mut fields);
        fields.finish();
        let extension_place = format!("{place}, ");
        capabilities::check_extensions(&extension_place, extensions, capabilities, self.registries, problems);
        let keys = &self.registries.keys;
        let guard = guard::Reader { place: &place, names, keys, problems }.read(&guard);
        let mut node = DocumentNode {
            id: id.unwrap_or_default().to_owned(),
            op: op.unwrap_or_default().to_owned(),
            inputs: inputs(listed.unwrap_or_default(), spec, &place, names, problems),
            args: Vec::new(),
            trace: None,
            guard,
            extended: !extensions.is_empty(),
            sound: false,
        };
        if let Some(spec) = spec {
            let mut reader =
                args::ArgReader { spec, place: &place, names, registries: self.registries, problems };
            reader.read(params, &mut node);
            // The fallback node of a region is one of its inputs. For other nodes, the planner creates such a region.
            let stand_in = node.guard.fallbacks.iter().find_map(|fallback| match fallback {
                Fallback::Node(place) => Some(*place),
                _ => None,
            });
            node.inputs.extend(stand_in.filter(|_| node.op == REGION));
        }
        node.sound = problems.errors.len() == errors;
        id.is_some().then_some(node)
    }

    fn spec(&self, op: &str, fields: &mut Fields<'_, '_>) -> Option<&Spec> {
        let found = self.ops.get(op).map(|op| op.spec());
        if found.is_none() && Ops::builtin().get(op).is_some() {
            let what = format!("op `{op}` is for tests, and the project does not allow these");
            let help =
                "`test_ops = true` under [plan] of anabranch.toml, or the option --test-ops, allows them";
            fields.problems.error(Problem::new(fields.place("op"), what).help(help));
        } else if found.is_none() {
            let what = format!("there is no op {}", quote(op));
            let problem = Problem::new(fields.place("op"), what);
            let known = self.ops.iter().map(|op| op.spec().name);
            let help = fields.problems.did_you_mean(op, known);
            fields.problems.error(Problem { help, ..problem });
        }
        found
    }
}

/// The name of a node in messages.
fn place_of(at: usize, map: &Map<String, Value>) -> String {
    let text = |name: &str| map.get(name).and_then(Value::as_str);
    match (text("node_id"), text("op")) {
        (Some(id), Some(op)) => format!("node {} ({})", quote(id), quote(op).trim_matches('`')),
        (Some(id), None) => format!("node {}", quote(id)),
        (None, _) => format!("nodes[{at}]"),
    }
}

fn inputs(
    list: &[Value],
    spec: Option<&Spec>,
    place: &str,
    names: &Names<'_>,
    problems: &mut Problems,
) -> Vec<usize> {
    let place = format!("{place}, inputs");
    if let Some(spec) = spec
        && spec.inputs != list.len()
    {
        let nodes = if spec.inputs == 1 { "node" } else { "nodes" };
        let what = format!("{} takes {} {nodes}, not {}", spec.name, spec.inputs, list.len());
        problems.error(Problem::new(&place, what));
    }
    let mut places = Vec::with_capacity(list.len());
    for value in list {
        match value.as_str() {
            Some(id) => places.extend(names.node(id, &place, problems)),
            None => {
                let what = format!("must be ids of nodes, not {}", show(value));
                problems.error(Problem::new(&place, what));
            }
        }
    }
    places
}
