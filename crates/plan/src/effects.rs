//! The columns that the nodes of a plan write, determined without running it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::document::{Document, DocumentNode};
use crate::json::digest;
use crate::op::{Arg, Effect, Ops, Spec};
use crate::registry::Registries;
use crate::value::Scalar;

/// The known part of the keys that a node writes, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WritesEval {
    /// These and no others.
    Exact(BTreeSet<u32>),
    /// Some of these and no others.
    May(BTreeSet<u32>),
    /// Nothing is known.
    Unknown,
}

/// The parameters that an effect may depend on.
pub trait Gamma {
    /// The key that a parameter names.
    fn key(&self, param: &str) -> Option<u32>;

    /// The word that a parameter is set to.
    fn word(&self, param: &str) -> Option<&str>;

    /// The number of the key called `name`.
    fn named(&self, name: &str) -> Option<u32>;
}

impl Effect {
    /// Evaluates it with the known parameters.
    pub fn eval(&self, gamma: &impl Gamma) -> WritesEval {
        match self {
            Effect::Keys(keys) => WritesEval::Exact(keys.iter().copied().collect()),
            Effect::Named(name) => exactly(gamma.named(name)),
            Effect::FromParam(param) => exactly(gamma.key(param)),
            Effect::Switch(param, cases) => match gamma.word(param) {
                Some(word) => match cases.iter().find(|(case, _)| *case == word) {
                    Some((_, effect)) => effect.eval(gamma),
                    None => WritesEval::Unknown,
                },
                None if cases.is_empty() => WritesEval::Exact(BTreeSet::new()),
                None => match union(cases.iter().map(|(_, effect)| effect.eval(gamma))) {
                    WritesEval::Exact(keys) => WritesEval::May(keys),
                    other => other,
                },
            },
            Effect::Union(effects) => union(effects.iter().map(|effect| effect.eval(gamma))),
            Effect::Unknown => WritesEval::Unknown,
        }
    }

    /// Its canonical form.
    pub fn to_json(&self) -> Value {
        match self {
            Effect::Keys(keys) => {
                let keys: BTreeSet<u32> = keys.iter().copied().collect();
                json!({"kind": "Keys", "key_ids": keys})
            }
            Effect::Named(name) => json!({"kind": "Named", "name": name}),
            Effect::FromParam(param) => json!({"kind": "FromParam", "param": param}),
            Effect::Switch(param, cases) => {
                let cases: Map<String, Value> =
                    cases.iter().map(|(case, effect)| ((*case).to_owned(), effect.to_json())).collect();
                json!({"kind": "SwitchEnum", "param": param, "cases": cases})
            }
            Effect::Union(effects) => {
                let items: Vec<Value> = effects.iter().map(Effect::to_json).collect();
                json!({"kind": "Union", "items": items})
            }
            Effect::Unknown => json!({"kind": "Unknown"}),
        }
    }
}

fn exactly(key: Option<u32>) -> WritesEval {
    key.map_or(WritesEval::Unknown, |key| WritesEval::Exact([key].into()))
}

fn union(evals: impl Iterator<Item = WritesEval>) -> WritesEval {
    let mut all = BTreeSet::new();
    let mut exact = true;
    for eval in evals {
        match eval {
            WritesEval::Exact(keys) => all.extend(keys),
            WritesEval::May(keys) => {
                exact = false;
                all.extend(keys);
            }
            WritesEval::Unknown => return WritesEval::Unknown,
        }
    }
    if exact { WritesEval::Exact(all) } else { WritesEval::May(all) }
}

impl WritesEval {
    /// `{"kind":"Exact","keys":[..]}`.
    pub fn to_json(&self) -> Value {
        match self {
            WritesEval::Exact(keys) => json!({"kind": "Exact", "keys": keys}),
            WritesEval::May(keys) => json!({"kind": "May", "keys": keys}),
            WritesEval::Unknown => json!({"kind": "Unknown", "keys": []}),
        }
    }
}

struct NodeGamma<'a> {
    spec: &'a Spec,
    node: &'a DocumentNode,
    registries: &'a Registries,
}

impl NodeGamma<'_> {
    fn arg(&self, param: &str) -> Option<&Arg> {
        let at = self.spec.params.iter().position(|spec| spec.name == param)?;
        self.node.args.get(at)?.as_ref()
    }
}

impl Gamma for NodeGamma<'_> {
    fn key(&self, param: &str) -> Option<u32> {
        match self.arg(param)? {
            Arg::Key(key) => Some(key.0),
            Arg::Value(Scalar::Int(number)) => u32::try_from(*number).ok().filter(|number| *number > 0),
            _ => None,
        }
    }

    fn word(&self, param: &str) -> Option<&str> {
        match self.arg(param)? {
            Arg::Value(Scalar::Text(word)) => Some(word),
            _ => None,
        }
    }

    fn named(&self, name: &str) -> Option<u32> {
        self.registries.keys.named(name).map(|entry| entry.key.0)
    }
}

/// The known part of the keys that a node writes.
pub fn writes_of(node: &DocumentNode, ops: &Ops, registries: &Registries) -> WritesEval {
    let Some(op) = ops.get(&node.op) else { return WritesEval::Unknown };
    let spec = op.spec();
    spec.writes.eval(&NodeGamma { spec, node, registries })
}

/// Facts about a plan that is not run: its capabilities, and the keys that its nodes write.
pub fn plan_info(document: &Document, ops: &Ops, registries: &Registries) -> Value {
    let nodes: Vec<Value> = document
        .nodes
        .iter()
        .map(|node| {
            let writes = writes_of(node, ops, registries).to_json();
            json!({"node_id": node.id, "op": node.op, "writes_eval": writes})
        })
        .collect();
    json!({
        "plan_name": document.name,
        "capabilities_required": document.capabilities,
        "extensions": document.extensions,
        "capabilities_digest": capabilities_digest(document),
        "nodes": nodes,
    })
}

/// The digest of a plan's requirements; empty if it has none.
fn capabilities_digest(document: &Document) -> String {
    if document.capabilities.is_empty() && document.extensions.is_empty() {
        return String::new();
    }
    let what = json!({"capabilities_required": document.capabilities, "extensions": document.extensions});
    format!("sha256:{}", digest(&what))
}
