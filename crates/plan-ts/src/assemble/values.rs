//! Converts the values of options: tokens become plan JSON.

use anabranch_plan::Registries;
use anabranch_plan::op::ParamKind;
use anabranch_plan::registry::EndpointKind;
use serde_json::{Map, Value, json};

use super::{Assembler, is_bad, table, value_at};
use crate::job::Fault;

/// The maximum nesting depth of a value. The loader's own limit for expressions is higher.
const DEEPEST: usize = 64;

/// A problem of a value, unless it was already reported.
type Wrong = Option<Fault>;

/// The value that the code passed as an argument.
pub(super) enum Argument<'v> {
    Expr(&'v Value),
    Pred(&'v Value),
    Endpoint(&'v str),
    Node(u32),
    Plain(&'v Value),
    Bad,
}

impl<'v> Argument<'v> {
    pub(super) fn of(value: &'v Value) -> Argument<'v> {
        let ir = || value.get("ir").unwrap_or(&Value::Null);
        match value.get("$").and_then(Value::as_str) {
            None => Argument::Plain(value),
            Some("expr") if holds_bad(ir()) => Argument::Bad,
            Some("pred") if holds_bad(ir()) => Argument::Bad,
            Some("expr") => Argument::Expr(ir()),
            Some("pred") => Argument::Pred(ir()),
            Some("endpoint") => {
                Argument::Endpoint(value.get("id").and_then(Value::as_str).unwrap_or_default())
            }
            Some("node") => {
                let number =
                    value.get("node").and_then(Value::as_u64).and_then(|node| u32::try_from(node).ok());
                number.map_or(Argument::Bad, Argument::Node)
            }
            Some(_) => Argument::Bad,
        }
    }

    /// In words, for those who expected something else.
    pub(super) fn shown(&self) -> String {
        let name = |ir: &Value, field: &str| ir.get(field).and_then(Value::as_str).map(str::to_owned);
        match self {
            Argument::Expr(ir) => match (name(ir, "key"), name(ir, "param")) {
                (Some(key), _) => format!("the key `{key}`"),
                (_, Some(param)) => format!("the parameter `{param}`"),
                _ => "an expression".to_owned(),
            },
            Argument::Pred(_) => "a predicate".to_owned(),
            Argument::Endpoint(_) => "an endpoint".to_owned(),
            Argument::Node(_) => "rows".to_owned(),
            Argument::Plain(Value::Object(_)) => "an object".to_owned(),
            Argument::Plain(Value::Array(_)) => "an array".to_owned(),
            Argument::Plain(value) => {
                let text = value.to_string();
                match text.char_indices().nth(40) {
                    Some((at, _)) => format!("{}...", &text[..at]),
                    None => text,
                }
            }
            Argument::Bad => "nothing".to_owned(),
        }
    }
}

impl Assembler<'_> {
    /// A parameter's value.
    pub(super) fn value(
        &mut self,
        kind: ParamKind,
        name: &str,
        value: &Value,
        site: Option<u32>,
    ) -> Result<Value, Wrong> {
        let given = Argument::of(value);
        if let Argument::Bad = given {
            return Err(None);
        }
        let fail = |made| {
            let what = format!("`{name}` must be {}, not {}", described(kind), given.shown());
            let fault = Fault::maybe(value_at(made, site, name), what);
            Some(match (&given, kind) {
                (
                    Argument::Expr(_) | Argument::Pred(_),
                    ParamKind::Int(..) | ParamKind::Float | ParamKind::Bool,
                ) => fault.help("what a request or a row brings is not known when the plan is built"),
                _ => fault,
            })
        };
        let registries = self.registries;
        Ok(match (kind, &given) {
            (ParamKind::Expr, given) => {
                let entry = expression(given, registries).ok_or_else(|| fail(self.made))?;
                self.exprs.add(entry).into()
            }
            (_, Argument::Plain(Value::Null)) => Value::Null,
            (ParamKind::Pred, given) => {
                let entry = predicate(given, registries).ok_or_else(|| fail(self.made))?;
                self.preds.add(entry).into()
            }
            (ParamKind::Key, Argument::Expr(ir)) => {
                key_number(ir, registries).ok_or_else(|| fail(self.made))?
            }
            (ParamKind::SortKeys, given) => sort_keys(given, registries).ok_or_else(|| fail(self.made))?,
            (ParamKind::Endpoint(_), Argument::Endpoint(id)) => json!(id),
            (ParamKind::Node, Argument::Node(node)) => json!(self.id(*node)),
            (ParamKind::Nodes, Argument::Plain(Value::Array(items))) => {
                let node = |item| match Argument::of(item) {
                    Argument::Node(node) => Ok(json!(self.id(node))),
                    Argument::Bad => Err(None),
                    _ => Err(fail(self.made)),
                };
                Value::Array(items.iter().map(node).collect::<Result<_, _>>()?)
            }
            (ParamKind::Json, _) => self.json(value, 0).map_err(|wrong| {
                let fault = wrong.map(|what| format!("`{name}`: {what}"));
                fault.map(|what| Fault::maybe(value_at(self.made, site, name), what))
            })?,
            // The loader checks the kind of a plain value.
            (
                ParamKind::Int(..)
                | ParamKind::Float
                | ParamKind::Bool
                | ParamKind::Text
                | ParamKind::Choice(_),
                Argument::Plain(plain),
            ) => (*plain).clone(),
            _ => return Err(fail(self.made)),
        })
    }

    /// The options that are not parameters: `fallback` and others.
    pub(super) fn universal(
        &self,
        field: &str,
        name: &str,
        value: &Value,
        site: Option<u32>,
    ) -> Result<Value, Wrong> {
        if is_bad(value) {
            return Err(None);
        }
        let told = |what: Option<String>| {
            what.map(|what| Fault::maybe(value_at(self.made, site, name), format!("`{name}`: {what}")))
        };
        match field {
            "fallback" => self.fallback(value).map_err(told),
            _ => self.json(value, 0).map_err(told),
        }
    }

    fn fallback(&self, value: &Value) -> Result<Value, Option<String>> {
        match Argument::of(value) {
            Argument::Node(node) => Ok(json!({"node": self.id(node)})),
            Argument::Plain(Value::Array(items)) => items.iter().map(|item| self.fallback(item)).collect(),
            Argument::Plain(Value::Object(fields)) => {
                let mut out = Map::new();
                for (name, value) in fields {
                    let value = match (name.as_str(), value) {
                        ("node", value) => match Argument::of(value) {
                            Argument::Node(node) => json!(self.id(node)),
                            other => return Err(Some(format!("`node` must be rows, not {}", other.shown()))),
                        },
                        ("stale", Value::Object(terms)) => {
                            let snake = |name: &str| match name {
                                "maxAgeMs" => "max_age_ms".to_owned(),
                                "minKnown" => "min_known".to_owned(),
                                other => other.to_owned(),
                            };
                            terms.iter().map(|(name, value)| (snake(name), value.clone())).collect()
                        }
                        ("default", Value::Object(columns)) => {
                            let mut plain = Map::new();
                            for (name, value) in columns {
                                plain.insert(name.clone(), self.json(value, 0)?);
                            }
                            Value::Object(plain)
                        }
                        (_, value) => self.json(value, 0)?,
                    };
                    out.insert(name.clone(), value);
                }
                Ok(Value::Object(out))
            }
            _ => self.json(value, 0),
        }
    }

    /// A value of any shape. Keys in it are replaced by their names. A key that is the value itself is not valid,
    /// because it would mean the value of its column.
    pub(super) fn json(&self, value: &Value, depth: usize) -> Result<Value, Option<String>> {
        if depth > DEEPEST {
            return Err(Some(format!("is nested deeper than {DEEPEST}")));
        }
        match Argument::of(value) {
            Argument::Plain(Value::Array(items)) => {
                items.iter().map(|item| self.json(item, depth + 1)).collect()
            }
            Argument::Plain(Value::Object(fields)) => {
                let field =
                    |(name, value): (&String, &Value)| Ok((name.clone(), self.json(value, depth + 1)?));
                fields.iter().map(field).collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            Argument::Plain(value) => Ok(value.clone()),
            Argument::Expr(ir) => match ir.get("key") {
                Some(key) if depth > 0 && ir.get("op").and_then(Value::as_str) == Some("key_ref") => {
                    Ok(key.clone())
                }
                Some(_) if depth == 0 => {
                    Err(Some(format!("takes a plain value, not {}", Argument::Expr(ir).shown())))
                }
                _ => Err(Some(format!("takes plain values and keys, not {}", Argument::Expr(ir).shown()))),
            },
            Argument::Bad => Err(None),
            other => Err(Some(format!("takes plain values and keys, not {}", other.shown()))),
        }
    }
}

/// The number of a key, if an expression is only a key.
fn key_number(ir: &Value, registries: &Registries) -> Option<Value> {
    let key = ir.get("key").and_then(Value::as_str).and_then(|key| registries.keys.named(key));
    key.map(|entry| json!(entry.key.0))
}

/// A key, or a list of keys and of objects with a `key` and an `order`.
fn sort_keys(given: &Argument<'_>, registries: &Registries) -> Option<Value> {
    let item = |item: &Value| match Argument::of(item) {
        Argument::Expr(ir) => key_number(ir, registries),
        Argument::Plain(Value::Object(members)) => {
            let Argument::Expr(ir) = Argument::of(members.get("key")?) else { return None };
            let mut entry = members.clone();
            entry.insert("key".to_owned(), key_number(ir, registries)?);
            Some(Value::Object(entry))
        }
        _ => None,
    };
    match given {
        Argument::Expr(ir) => key_number(ir, registries),
        Argument::Plain(Value::Array(items)) => items.iter().map(item).collect(),
        _ => None,
    }
}

/// Whether it contains a part with a reported problem.
fn holds_bad(ir: &Value) -> bool {
    match ir {
        Value::Object(fields) => is_bad(ir) || fields.values().any(holds_bad),
        Value::Array(items) => items.iter().any(holds_bad),
        _ => false,
    }
}

/// An expression in plan JSON. A predicate becomes one that is true or false.
fn expression(given: &Argument<'_>, registries: &Registries) -> Option<Value> {
    let constant = |op: &str, value: &Value| json!({"op": op, "value": value});
    Some(match given {
        Argument::Expr(ir) => table::clean(ir, registries),
        Argument::Pred(ir) => {
            let [yes, no] = [true, false].map(|value| constant("const_bool", &value.into()));
            json!({"op": "if", "cond": table::clean(ir, registries), "then": yes, "else": no})
        }
        Argument::Plain(Value::Null) => json!({"op": "const_null"}),
        Argument::Plain(value @ Value::Number(_)) => constant("const_number", value),
        Argument::Plain(value @ Value::String(_)) => constant("const_string", value),
        Argument::Plain(value @ Value::Bool(_)) => constant("const_bool", value),
        _ => return None,
    })
}

/// A predicate in plan JSON. An expression becomes a test that it is true.
fn predicate(given: &Argument<'_>, registries: &Registries) -> Option<Value> {
    let constant = |value: bool| json!({"op": "const_bool", "value": value});
    Some(match given {
        Argument::Pred(ir) => table::clean(ir, registries),
        Argument::Expr(ir) => {
            json!({"op": "cmp", "cmp": "==", "a": table::clean(ir, registries), "b": constant(true)})
        }
        Argument::Plain(Value::Bool(value)) => constant(*value),
        _ => return None,
    })
}

/// The accepted values of an option, in words.
pub(super) fn described(kind: ParamKind) -> String {
    match kind {
        ParamKind::Int(..) => "a whole number".to_owned(),
        ParamKind::Float => "a number".to_owned(),
        ParamKind::Bool => "true or false".to_owned(),
        ParamKind::Text => "a string".to_owned(),
        ParamKind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            words.join(" or ")
        }
        ParamKind::Key => "a key, as in Key.id".to_owned(),
        ParamKind::SortKeys => {
            "a key, as in Key.id, or a list of keys, as in [{ key: Key.id, order: \"desc\" }]".to_owned()
        }
        ParamKind::Node => "rows".to_owned(),
        ParamKind::Nodes => "an array of rows".to_owned(),
        ParamKind::Endpoint(kind) => {
            let kind = kind.unwrap_or(EndpointKind::Redis);
            format!("an endpoint, as in EP.{kind}.NAME")
        }
        ParamKind::Expr => "an expression, as in Key.id * 2".to_owned(),
        ParamKind::Pred => "a predicate, as in Key.id > 5".to_owned(),
        ParamKind::Json => "a value".to_owned(),
    }
}
