//! From the calls that a plan's code made to plan JSON. Names and tokens of TypeScript are checked here; the rest is
//! checked where all plan JSON is.

mod kinds;
mod places;
mod table;
mod values;
mod words;

use std::collections::{BTreeSet, HashMap, HashSet};

use anabranch_plan::Registries;
use anabranch_plan::op::{Ops, ParamKind, ParamSpec, Spec};
use anabranch_text::closest;
use serde_json::{Map, Value, json};

use crate::job::{At, Fault, JobOutput, NodeRecord, PlanRecord};
use crate::surface;
use table::Table;
use values::Argument;

pub(crate) use kinds::wrong_kinds;
pub(crate) use places::Places;
pub(crate) use words::in_typescript;

/// A plan as JSON, with information about its parts.
pub(crate) struct AssembledPlan {
    pub(crate) json: Map<String, Value>,
    /// The numbers of the nodes, by id.
    by_id: HashMap<String, usize>,
    /// The first node that has an entry of a table, by the entry's id.
    by_entry: HashMap<String, usize>,
    /// The parameters with a reported problem: the number of the node and the name in plan JSON.
    told: HashSet<(usize, &'static str)>,
}

/// The field of a node's id in plan JSON.
const NODE_ID: &str = "node_id";

/// Options of a plan: their names here, and in plan JSON.
const OF_PLAN: [(&str, &str); 3] =
    [("name", "plan_name"), ("deadlineMs", "deadline_ms"), ("nodeTimeoutMs", "node_timeout_ms")];

/// Converts a plan to plan JSON, as far as possible. Problems are added to `faults`.
pub(crate) fn assemble(
    made: &JobOutput,
    plan: &PlanRecord,
    (ops, registries): (&Ops, &Registries),
    faults: &mut Vec<Fault>,
) -> AssembledPlan {
    let ids =
        plan.nodes.iter().enumerate().map(|(number, node)| id_of(number, node, (ops, registries))).collect();
    let (exprs, preds) = (Table::new("e"), Table::new("p"));
    let (by_entry, told) = (HashMap::new(), HashSet::new());
    let mut assembler = Assembler { made, registries, exprs, preds, ids, by_entry, told, faults };
    let mut nodes = Vec::with_capacity(plan.nodes.len());
    for (number, node) in plan.nodes.iter().enumerate() {
        // The code can only name ops that it was given.
        nodes.extend(ops.get(&node.op).map(|op| assembler.node(number, node, op.spec())));
    }
    assembler.same_ids(plan, ops);
    let mut json = assembler.plan_options(plan);
    let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
    put("schema_version", json!(1));
    put("nodes", Value::Array(nodes));
    let output = |(number, name): &(u32, Option<String>)| match name {
        Some(name) => json!({"node": assembler.id(*number), "name": name}),
        None => json!(assembler.id(*number)),
    };
    put("outputs", plan.outputs.iter().map(output).collect());
    let required: BTreeSet<&str> = plan.capabilities.iter().map(|(id, ..)| id.as_str()).collect();
    let extensions = assembler.extensions(plan);
    for (name, value) in [
        ("expr_table", Value::Object(assembler.exprs.entries)),
        ("pred_table", Value::Object(assembler.preds.entries)),
        ("capabilities_required", json!(required)),
        ("extensions", Value::Object(extensions)),
    ] {
        let empty =
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        if !empty {
            put(name, value);
        }
    }
    let mut by_id = HashMap::new();
    for (number, id) in assembler.ids.into_iter().enumerate() {
        by_id.entry(id).or_insert(number);
    }
    AssembledPlan { json, by_id, by_entry: assembler.by_entry, told: assembler.told }
}

struct Assembler<'a> {
    made: &'a JobOutput,
    registries: &'a Registries,
    exprs: Table,
    preds: Table,
    ids: Vec<String>,
    by_entry: HashMap<String, usize>,
    told: HashSet<(usize, &'static str)>,
    faults: &'a mut Vec<Fault>,
}

/// One node on its way to JSON.
struct Draft<'a> {
    number: usize,
    node: &'a NodeRecord,
    spec: &'a Spec,
    params: Map<String, Value>,
    /// The options that are not parameters.
    fields: Map<String, Value>,
}

impl Assembler<'_> {
    /// The settings of the capabilities that a plan requires.
    fn extensions(&mut self, plan: &PlanRecord) -> Map<String, Value> {
        let mut extensions = Map::new();
        for (id, payload, site) in plan.capabilities.iter().filter(|(_, payload, _)| !payload.is_null()) {
            let what = match self.json(payload, 0) {
                Ok(payload) if extensions.get(id).is_none_or(|other| *other == payload) => {
                    extensions.insert(id.clone(), payload);
                    continue;
                }
                Ok(_) => format!("`{id}` was given something else before"),
                Err(None) => continue,
                Err(Some(what)) => format!("`requireCapability`: {what}"),
            };
            self.faults.push(Fault::maybe(call_at(self.made, *site), what));
        }
        extensions
    }

    fn plan_options(&mut self, plan: &PlanRecord) -> Map<String, Value> {
        let mut json = Map::new();
        if is_bad(&plan.options) {
            return json;
        }
        for (name, value) in plan.options.as_object().into_iter().flatten() {
            match OF_PLAN.iter().find(|(known, _)| known == name) {
                _ if is_bad(value) => {}
                Some((_, field)) => {
                    json.insert((*field).to_owned(), value.clone());
                }
                None => {
                    let known = OF_PLAN.iter().map(|(known, _)| *known).chain(["build"]);
                    let what = format!("a plan has no option `{name}`");
                    let at = name_at(self.made, plan.site, name);
                    self.faults.push(Fault { help: near(name, known), ..Fault::maybe(at, what) });
                }
            }
        }
        if plan.options.get("name").is_none_or(Value::is_null) {
            let help = "write definePlan({ name: \"...\", build: (ctx) => ... })".to_owned();
            let at = call_at(self.made, plan.site);
            self.faults.push(Fault { help: Some(help), ..Fault::maybe(at, "the plan has no name") });
        }
        json
    }

    fn node(&mut self, number: usize, node: &NodeRecord, spec: &Spec) -> Value {
        let mut draft = Draft { number, node, spec, params: Map::new(), fields: Map::new() };
        match &node.options {
            Value::Object(options) if !options.contains_key("$") => {
                options.iter().for_each(|(name, value)| self.option(&mut draft, name, value));
            }
            Value::Null => {}
            // Options that are not an object were reported at the call.
            _ => self.told.extend(spec.params.iter().map(|param| (number, param.name))),
        }
        for param in spec.params {
            self.left_out(&mut draft, param);
        }
        let Draft { params, fields, .. } = draft;
        let mut json = fields;
        let inputs: Vec<&str> = node.inputs.iter().map(|input| self.id(*input)).collect();
        json.insert("inputs".to_owned(), json!(inputs));
        json.insert(NODE_ID.to_owned(), json!(self.ids[number]));
        json.insert("op".to_owned(), json!(spec.name));
        json.insert("params".to_owned(), Value::Object(params));
        Value::Object(json)
    }

    /// Tells about ids that are given to two nodes, where one is given.
    fn same_ids(&mut self, plan: &PlanRecord, ops: &Ops) {
        let mut firsts = HashMap::new();
        for (number, id) in self.ids.iter().enumerate() {
            let first = *firsts.entry(id).or_insert(number);
            if first == number {
                continue;
            }
            let of = |number: usize| {
                plan.nodes.get(number).filter(|node| given_id(node, (ops, self.registries)).is_some())
            };
            let Some(node) = of(number).or_else(|| of(first)) else { continue };
            let at = value_at(self.made, node.site, "id");
            let fault = Fault::maybe(at, format!("two nodes are called `{id}`"));
            let counted = of(number).is_none() || of(first).is_none();
            let help = "nodes without an `id` are called n0, n1, ... as they are called: choose another name";
            self.faults.push(if counted { fault.help(help) } else { fault });
            self.told.insert((first, NODE_ID));
        }
    }

    fn option(&mut self, draft: &mut Draft<'_>, name: &str, value: &Value) {
        let spec = draft.spec;
        let matches =
            |param: &&ParamSpec| surface::option(param) == name || surface::alias(spec, param) == Some(name);
        if let Some(param) = spec.params.iter().find(matches) {
            if draft.params.contains_key(param.name) {
                let what = format!("`{name}` and `{}` are the same option", other_name(spec, param, name));
                self.faults.push(Fault::maybe(name_at(self.made, draft.node.site, name), what));
                return;
            }
            match self.value(param.kind, name, value, draft.node.site) {
                Ok(value) => {
                    if let (ParamKind::Expr | ParamKind::Pred, Some(entry)) = (param.kind, value.as_str()) {
                        self.by_entry.entry(entry.to_owned()).or_insert(draft.number);
                    }
                    draft.params.insert(param.name.to_owned(), value);
                }
                Err(fault) => {
                    self.faults.extend(fault);
                    self.told.insert((draft.number, param.name));
                }
            }
            return;
        }
        match surface::UNIVERSAL.iter().find(|(known, _)| *known == name) {
            Some((_, NODE_ID)) => match Argument::of(value) {
                Argument::Bad => {}
                Argument::Plain(Value::String(id)) => {
                    let pattern = &self.registries.limits.node_id;
                    if !pattern.is_match(id) {
                        let what = format!("`id` must match {pattern}");
                        self.faults.push(Fault::maybe(value_at(self.made, draft.node.site, name), what));
                    }
                }
                given => {
                    let what = format!("`id` must be a string, not {}", given.shown());
                    self.faults.push(Fault::maybe(value_at(self.made, draft.node.site, name), what));
                }
            },
            Some((_, "trace")) => {
                draft.params.insert("trace".to_owned(), value.clone());
            }
            Some((_, field)) => match self.universal(field, name, value, draft.node.site) {
                Ok(value) => {
                    draft.fields.insert((*field).to_owned(), value);
                }
                Err(fault) => self.faults.extend(fault),
            },
            None => {
                let own = spec.params.iter().map(surface::option);
                let known: Vec<String> =
                    own.chain(surface::UNIVERSAL.iter().map(|(known, _)| (*known).to_owned())).collect();
                let what = format!("`{}` has no option `{name}`", method(spec));
                let at = name_at(self.made, draft.node.site, name);
                let help = near(name, known.iter().map(String::as_str))
                    .unwrap_or_else(|| format!("there are {}", known.join(", ")));
                self.faults.push(Fault { help: Some(help), ..Fault::maybe(at, what) });
            }
        }
    }

    /// The value of a parameter that the call does not give.
    fn left_out(&mut self, draft: &mut Draft<'_>, param: &ParamSpec) {
        let given = draft.params.get(param.name).is_some_and(|value| !value.is_null());
        if given || self.told.contains(&(draft.number, param.name)) {
            return;
        }
        if let Some(count) = surface::default(draft.spec, param) {
            let count = count.min(self.registries.limits.max_fanout.into());
            draft.params.insert(param.name.to_owned(), json!(count));
        } else if param.required {
            let name = match surface::alias(draft.spec, param) {
                Some(alias) => format!("`{alias}` (or `{}`)", surface::option(param)),
                None => format!("`{}`", surface::option(param)),
            };
            let what = format!("`{}` needs {name}: {}", method(draft.spec), values::described(param.kind));
            self.faults.push(Fault::maybe(call_at(self.made, draft.node.site), what));
            self.told.insert((draft.number, param.name));
        }
    }

    /// The id of a node that the code named by its number.
    fn id(&self, number: u32) -> &str {
        self.ids.get(number as usize).map_or("", String::as_str)
    }
}

/// The id of a node: from its call, or its number.
fn id_of(number: usize, node: &NodeRecord, known: (&Ops, &Registries)) -> String {
    given_id(node, known).map_or_else(|| format!("n{number}"), str::to_owned)
}

/// The value that a call gives, unless it is reported as an error or means something else.
fn given_id<'n>(node: &'n NodeRecord, (ops, registries): (&Ops, &Registries)) -> Option<&'n str> {
    let pattern = &registries.limits.node_id;
    node.options.get("id")?.as_str().filter(|id| pattern.is_match(id) && !has_own_id(node, ops))
}

/// Whether `id` is an option of the op itself, for ops of users. An op's own options take precedence.
fn has_own_id(node: &NodeRecord, ops: &Ops) -> bool {
    ops.get(&node.op).is_some_and(|op| op.spec().params.iter().any(|param| surface::option(param) == "id"))
}

fn method(spec: &Spec) -> String {
    let method = surface::method(spec);
    if method.namespace == surface::ROOT {
        method.name
    } else {
        format!("{}.{}", method.namespace, method.name)
    }
}

fn other_name(spec: &Spec, param: &ParamSpec, name: &str) -> String {
    match surface::alias(spec, param) {
        Some(alias) if alias != name => alias.to_owned(),
        _ => surface::option(param),
    }
}

fn near<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    closest(name, known).map(|near| format!("did you mean `{near}`?"))
}

fn is_bad(value: &Value) -> bool {
    value.get("$").and_then(Value::as_str) == Some("bad")
}

/// The location of a call.
fn call_at(made: &JobOutput, site: Option<u32>) -> Option<At> {
    made.sites.get(site? as usize).map(|site| site.at)
}

/// The location of an option's name, or else of the call.
fn name_at(made: &JobOutput, site: Option<u32>, name: &str) -> Option<At> {
    let found = made.sites.get(site? as usize)?;
    found.options.iter().find(|(option, ..)| option == name).map_or(Some(found.at), |(_, at, _)| Some(*at))
}

/// The location of an option's value, or else of the call.
fn value_at(made: &JobOutput, site: Option<u32>, name: &str) -> Option<At> {
    let found = made.sites.get(site? as usize)?;
    found.options.iter().find(|(option, ..)| option == name).map_or(Some(found.at), |(_, _, at)| Some(*at))
}
