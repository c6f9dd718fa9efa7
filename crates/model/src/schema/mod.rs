//! JSON schemas (the common part of Draft 2020-12), and values made to fit them.

mod compile;
mod fit;
mod numbers;
mod strict;

use std::fmt;
use std::sync::Arc;

use anabranch_value::Value;
use regex::Regex;

pub(crate) use compile::{PATTERN_MOST, resolve_ref};
pub(crate) use numbers::{same, whole};
pub(crate) use strict::is_strict;

/// A compiled JSON schema.
///
/// An object with `properties` and without `additionalProperties` counts as closed: other properties are removed.
///
/// ```
/// use anabranch_model::Schema;
/// use anabranch_value::Value;
///
/// let schema = Value::from_json(r#"{"type": "object", "properties": {"n": {"type": "integer"}}}"#)?;
/// let fitted = Schema::new(&schema)?.fit(Value::from_json(r#"{"n": "4", "extra": 1}"#)?);
/// assert_eq!(fitted.unwrap().to_json(), r#"{"n":4}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    nodes: Vec<Node>,
    root: NodeId,
}

/// A part of a value that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitProblem {
    /// The location as a JSON path: `$.people[0].name`.
    pub path: String,
    pub what: String,
}

impl fmt::Display for FitProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schema at `{path}`: {what}")]
pub struct SchemaError {
    /// The location as a JSON pointer: `#/properties/age`.
    pub path: String,
    pub what: String,
}

impl Schema {
    /// Compiles a schema.
    pub fn new(schema: &Value) -> Result<Schema, SchemaError> {
        compile::compile(schema)
    }

    /// Converts a value to the form of the schema: properties that it does not allow are removed, `4.0` and `"4"`
    /// become `4` where an integer belongs. The remaining problems are returned, at most 20.
    pub fn fit(&self, value: Value) -> Result<Value, Vec<FitProblem>> {
        fit::fit(self, value)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeId(usize);

/// One schema within the schema.
#[derive(Debug, Default)]
struct Node {
    /// The schema `false`.
    never: bool,
    types: Option<Types>,
    allowed: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<Regex>,
    prefix: Vec<NodeId>,
    items: Option<NodeId>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    unique: bool,
    contains: Option<Contains>,
    properties: Vec<(Arc<str>, NodeId)>,
    pattern_properties: Vec<(Regex, NodeId)>,
    additional: Additional,
    property_names: Option<NodeId>,
    required: Vec<Arc<str>>,
    dependent_required: Vec<(Arc<str>, Vec<Arc<str>>)>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    /// `allOf` and `$ref`.
    all_of: Vec<NodeId>,
    any_of: Vec<NodeId>,
    one_of: Vec<NodeId>,
    not: Option<NodeId>,
    condition: Option<Condition>,
}

#[derive(Debug)]
struct Contains {
    node: NodeId,
    min: u64,
    max: Option<u64>,
}

#[derive(Debug)]
struct Condition {
    test: NodeId,
    then: Option<NodeId>,
    otherwise: Option<NodeId>,
}

/// The treatment of properties that are not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Additional {
    /// Not specified: removed if any are named.
    #[default]
    Unsaid,
    Removed,
    Kept(NodeId),
}

/// A set of types, in the order of [`Types::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

    fn named(name: &str) -> Option<Types> {
        Types::NAMES.iter().position(|known| *known == name).map(|at| Types(1 << at))
    }

    fn with(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    fn has(self, name: &str) -> bool {
        Types::named(name).is_some_and(|types| self.0 & types.0 != 0)
    }

    /// Whether a value is of one of the types. A float without a fraction is an integer.
    fn include(self, value: &Value) -> bool {
        match value {
            Value::Null => self.has("null"),
            Value::Bool(_) => self.has("boolean"),
            Value::Int(_) => self.has("integer") || self.has("number"),
            Value::Float(float) => self.has("number") || (self.has("integer") && whole(*float).is_some()),
            Value::Text(_) => self.has("string"),
            Value::List(_) => self.has("array"),
            Value::Map(_) => self.has("object"),
        }
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Types::NAMES
            .iter()
            .enumerate()
            .filter(|(at, _)| self.0 & (1 << at) != 0)
            .map(|(_, name)| *name)
            .collect();
        f.write_str(&names.join(" or "))
    }
}
