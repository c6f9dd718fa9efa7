//! Checks the parameters of a node against those of its op.

use anabranch_rows::{Key, Order};
use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use super::DocumentNode;
use super::names::Names;
use crate::json::{show, whole};
use crate::op::{Arg, ParamKind, ParamSpec, Spec};
use crate::registry::{EndpointKind, Registries};
use crate::value::Scalar;

/// The parameter that every op takes.
const TRACE: &str = "trace";

/// The most nodes that one parameter may name.
const MOST_NODES: usize = 1_000;

/// The most keys that one parameter may list.
const MOST_KEYS: usize = 1_000;

/// Reads the parameters of one node.
pub(super) struct ArgReader<'a, 'n, 'p> {
    pub(super) spec: &'a Spec,
    /// The node.
    pub(super) place: &'a str,
    pub(super) names: &'a mut Names<'n>,
    pub(super) registries: &'a Registries,
    pub(super) problems: &'p mut Problems,
}

impl ArgReader<'_, '_, '_> {
    /// Fills in `args` and `trace`, and adds the nodes that parameters name to `inputs`.
    pub(super) fn read(&mut self, params: &Map<String, Value>, node: &mut DocumentNode) {
        let specs = self.spec.params;
        for name in params.keys() {
            if name != TRACE && specs.iter().all(|spec| spec.name != name) {
                let what = format!("{} has no such parameter", self.spec.name);
                let known = specs.iter().map(|spec| spec.name).chain([TRACE]);
                let help = self.problems.did_you_mean(name, known);
                let problem = Problem::new(self.field(quote(name).trim_matches('`')), what);
                self.problems.error(Problem { help, ..problem });
            }
        }
        match params.get(TRACE) {
            None | Some(Value::Null) => {}
            Some(Value::String(label)) => node.trace = Some(label.clone()),
            Some(other) => self.error(TRACE, format!("must be a string or null, not {}", show(other))),
        }
        for spec in specs {
            let given = params.get(spec.name).filter(|value| !value.is_null());
            let arg = match given {
                Some(value) => self.arg(spec, value, &mut node.inputs),
                None => {
                    if spec.required {
                        let what = format!("is missing; it must be {}", describe(spec.kind));
                        self.error(spec.name, what);
                    }
                    None
                }
            };
            node.args.push(arg);
        }
    }

    fn arg(&mut self, spec: &ParamSpec, value: &Value, inputs: &mut Vec<usize>) -> Option<Arg> {
        let read = match spec.kind {
            ParamKind::Int(least, most) => {
                let whole = whole(value).filter(|value| (least..=most).contains(value));
                whole.map(|value| Arg::Value(Scalar::Int(value)))
            }
            ParamKind::Float => value.as_f64().map(|value| Arg::Value(Scalar::Float(value))),
            ParamKind::Bool => value.as_bool().map(|value| Arg::Value(Scalar::Bool(value))),
            ParamKind::Text => value.as_str().map(|text| Arg::Value(Scalar::Text(text.into()))),
            ParamKind::Choice(words) => {
                let word = value.as_str().filter(|word| words.contains(word));
                word.map(|word| Arg::Value(Scalar::Text(word.into())))
            }
            ParamKind::Json => Some(Arg::Json(value.clone())),
            ParamKind::Key => return self.key(spec, value).map(Arg::Key),
            ParamKind::SortKeys => return self.sort_keys(spec, value),
            ParamKind::Node => return self.nodes(spec, std::slice::from_ref(value), inputs),
            ParamKind::Nodes => match value.as_array() {
                Some(list) => return self.nodes(spec, list, inputs),
                None => None,
            },
            ParamKind::Endpoint(kind) => return self.endpoint(spec, kind, value),
            ParamKind::Expr | ParamKind::Pred => return self.table(spec, value),
        };
        if read.is_none() {
            self.wrong(spec, value);
        }
        read
    }

    /// A key, or a list of keys and of objects with a `key` and an `order`.
    fn sort_keys(&mut self, spec: &ParamSpec, value: &Value) -> Option<Arg> {
        let Some(list) = value.as_array() else {
            return self.key(spec, value).map(|key| Arg::SortKeys(vec![(key, None)]));
        };
        if list.len() > MOST_KEYS {
            self.error(spec.name, format!("lists {} keys; at most {MOST_KEYS} are possible", list.len()));
            return None;
        }
        let keys = list.iter().map(|item| self.sort_key(spec, item)).collect::<Vec<_>>();
        keys.into_iter().collect::<Option<_>>().map(Arg::SortKeys)
    }

    fn sort_key(&mut self, spec: &ParamSpec, item: &Value) -> Option<(Key, Option<Order>)> {
        let Some(members) = item.as_object() else { return Some((self.key(spec, item)?, None)) };
        if let Some(name) = members.keys().find(|name| !["key", "order"].contains(&name.as_str())) {
            let what = format!("an entry has `key` and `order`, not {}", quote(name));
            self.error(spec.name, what);
            return None;
        }
        let Some(key) = members.get("key") else {
            self.error(spec.name, "an entry has no `key`".to_owned());
            return None;
        };
        let key = self.key(spec, key)?;
        let order = match members.get("order") {
            None | Some(Value::Null) => None,
            Some(Value::String(word)) if word == "asc" => Some(Order::Ascending),
            Some(Value::String(word)) if word == "desc" => Some(Order::Descending),
            Some(other) => {
                let what = format!("the `order` of an entry must be `asc` or `desc`, not {}", show(other));
                self.error(spec.name, what);
                return None;
            }
        };
        Some((key, order))
    }

    /// A key by its name or its number.
    fn key(&mut self, spec: &ParamSpec, value: &Value) -> Option<Key> {
        if let Some(name) = value.as_str() {
            let found = self.registries.keys.named(name).map(|entry| entry.key);
            if found.is_none() {
                let known = self.registries.keys.iter().map(|entry| entry.name.as_str());
                let help = self.problems.did_you_mean(name, known);
                let problem = Problem::new(self.field(spec.name), format!("there is no key {}", quote(name)));
                self.problems.error(Problem { help, ..problem });
            }
            return found;
        }
        let Some(number) = whole(value) else {
            self.wrong(spec, value);
            return None;
        };
        let key = u32::try_from(number).ok().map(Key).filter(|key| self.registries.keys.get(*key).is_some());
        if key.is_none() {
            self.error(spec.name, format!("there is no key {number}"));
        }
        key
    }

    fn nodes(&mut self, spec: &ParamSpec, list: &[Value], inputs: &mut Vec<usize>) -> Option<Arg> {
        if list.len() > MOST_NODES {
            self.error(spec.name, format!("names {} nodes; at most {MOST_NODES} may be", list.len()));
            return None;
        }
        let mut places = Vec::with_capacity(list.len());
        for value in list {
            let Some(id) = value.as_str() else {
                self.wrong(spec, value);
                continue;
            };
            let place = self.field(spec.name);
            if let Some(node) = self.names.node(id, &place, self.problems) {
                places.push(inputs.len());
                inputs.push(node);
            }
        }
        Some(Arg::Nodes(places))
    }

    fn endpoint(&mut self, spec: &ParamSpec, kind: Option<EndpointKind>, value: &Value) -> Option<Arg> {
        let Some(id) = value.as_str() else {
            self.wrong(spec, value);
            return None;
        };
        let endpoints = &self.registries.endpoints;
        let Some(endpoint) = endpoints.get(id).or_else(|| endpoints.named(id)) else {
            let known = endpoints.iter().flat_map(|endpoint| [endpoint.id.as_str(), endpoint.name.as_str()]);
            let help = match endpoints.iter().len() {
                0 => Some("the registry has no endpoints".to_owned()),
                _ => self.problems.did_you_mean(id, known),
            };
            let problem = Problem::new(self.field(spec.name), format!("there is no endpoint {}", quote(id)));
            self.problems.error(Problem { help, ..problem });
            return None;
        };
        if let Some(kind) = kind.filter(|kind| *kind != endpoint.kind) {
            let what =
                format!("endpoint `{id}` is of kind {}; {} needs {kind}", endpoint.kind, self.spec.name);
            self.error(spec.name, what);
            return None;
        }
        Some(Arg::Endpoint(endpoint.index))
    }

    fn table(&mut self, spec: &ParamSpec, value: &Value) -> Option<Arg> {
        let Some(id) = value.as_str() else {
            self.wrong(spec, value);
            return None;
        };
        let (name, table) = match spec.kind {
            ParamKind::Expr => ("expr_table", &mut self.names.exprs),
            _ => ("pred_table", &mut self.names.preds),
        };
        if !table.mark(id) {
            let help = self.problems.did_you_mean(id, table.ids());
            let problem = Problem::new(self.field(spec.name), format!("there is no {} in {name}", quote(id)));
            self.problems.error(Problem { help, ..problem });
            return None;
        }
        Some(Arg::Table(id.to_owned()))
    }

    fn field(&self, name: &str) -> String {
        format!("{}, {name}", self.place)
    }

    fn error(&mut self, name: &str, what: String) {
        let problem = Problem::new(self.field(name), what);
        self.problems.error(problem);
    }

    fn wrong(&mut self, spec: &ParamSpec, value: &Value) {
        // The widths of fan-outs, whose limit the registry sets.
        let kind = match spec.kind {
            ParamKind::Int(least, most) if most == i64::from(u32::MAX) => {
                ParamKind::Int(least, self.registries.limits.max_fanout.into())
            }
            kind => kind,
        };
        self.error(spec.name, format!("must be {}, not {}", describe(kind), show(value)));
    }
}

fn describe(kind: ParamKind) -> String {
    match kind {
        ParamKind::Int(i64::MIN, i64::MAX) => "a whole number".to_owned(),
        ParamKind::Int(least, i64::MAX) => format!("a whole number from {least}"),
        ParamKind::Int(least, most) => format!("a whole number from {least} to {most}"),
        ParamKind::Float => "a number".to_owned(),
        ParamKind::Bool => "true or false".to_owned(),
        ParamKind::Text => "a string".to_owned(),
        ParamKind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("one of {}", words.join(", "))
        }
        ParamKind::Key => "the name or number of a key".to_owned(),
        ParamKind::SortKeys => "the name or number of a key, or a list of keys".to_owned(),
        ParamKind::Node => "the id of a node".to_owned(),
        ParamKind::Nodes => "a list of ids of nodes".to_owned(),
        ParamKind::Endpoint(Some(kind)) => format!("the id or name of a {kind} endpoint"),
        ParamKind::Endpoint(None) => "the id or name of an endpoint".to_owned(),
        ParamKind::Expr => "the id of an entry of expr_table".to_owned(),
        ParamKind::Pred => "the id of an entry of pred_table".to_owned(),
        ParamKind::Json => "a value".to_owned(),
    }
}
