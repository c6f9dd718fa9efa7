//! A node at load, as its op sees it.

use anabranch_rows::{Key, Kind};
use anabranch_text::{Problem, Problems};

use std::path::Path;
use std::sync::Arc;

use crate::document::Document;
use crate::expr::{Filter, Program, Scope};
use crate::registry::{Endpoint, KeyEntry, KeyKind, Registries, Status};
use crate::schema::Schema;
use crate::value::Scalar;

use super::{Arg, Files, Spec};

/// One node of a plan, its parameters checked against the op's [`Spec`].
pub struct Node<'a> {
    pub(crate) id: &'a str,
    pub(crate) spec: &'a Spec,
    /// One a parameter of the spec, in its order; `None` when not given.
    pub(crate) args: &'a [Option<Arg>],
    /// The columns of the inputs: those of `inputs`, then those of node parameters.
    pub(crate) inputs: Vec<&'a Schema>,
    pub(crate) document: &'a Document,
    pub(crate) registries: &'a Registries,
    /// The files that the plan names.
    pub(crate) files: &'a Files<'a>,
    pub(crate) problems: &'a mut Problems,
}

impl<'a> Node<'a> {
    /// Its id in the plan.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// The columns of input `at`.
    pub fn input(&self, at: usize) -> &'a Schema {
        self.inputs[at]
    }

    /// The number of inputs it has, node parameters included.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The folder that relative paths in the plan start from.
    pub fn base(&self) -> &'a Path {
        self.files.base()
    }

    /// The bytes of a file that the plan names, at most `most`. A capture keeps the files that are read this way.
    pub fn read_file(&self, name: &str, most: u64) -> Result<Arc<[u8]>, String> {
        self.files.read(name, most)
    }

    /// The registries.
    pub fn registries(&self) -> &'a Registries {
        self.registries
    }

    /// The value of a parameter, if it is given. The name must be declared in the spec.
    pub fn arg(&self, name: &str) -> Option<&'a Arg> {
        let at = self.spec.params.iter().position(|param| param.name == name);
        self.args[at.expect("an op asks for parameters that it declares")].as_ref()
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.arg(name)? {
            Arg::Value(Scalar::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// A number.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.arg(name)? {
            Arg::Value(Scalar::Float(value)) => Some(*value),
            Arg::Value(Scalar::Int(value)) => Some(*value as f64),
            _ => None,
        }
    }

    /// True or false.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.arg(name)? {
            Arg::Value(Scalar::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// A string.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.arg(name)? {
            Arg::Value(Scalar::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// JSON that the op reads itself.
    pub fn json(&self, name: &str) -> Option<&'a serde_json::Value> {
        match self.arg(name)? {
            Arg::Json(value) => Some(value),
            _ => None,
        }
    }

    /// A registered key.
    pub fn key(&self, name: &str) -> Option<&'a KeyEntry> {
        match self.arg(name)? {
            Arg::Key(key) => self.registries.keys.get(*key),
            _ => None,
        }
    }

    /// An endpoint.
    pub fn endpoint(&self, name: &str) -> Option<&'a Endpoint> {
        match self.arg(name)? {
            Arg::Endpoint(index) => self.registries.endpoints.iter().nth(*index),
            _ => None,
        }
    }

    /// The places, among the inputs, of the nodes that a parameter names.
    pub fn nodes(&self, name: &str) -> &'a [usize] {
        match self.arg(name) {
            Some(Arg::Nodes(places)) => places,
            _ => &[],
        }
    }

    /// The expression that a parameter names, compiled for rows with these columns.
    pub fn expr(&mut self, name: &str, schema: &Schema) -> Option<Program> {
        let Some(Arg::Table(id)) = self.arg(name) else { return None };
        let expr = self.document.exprs.get(id)?;
        let scope = Scope { keys: &self.registries.keys, params: &self.registries.params, schema };
        Program::compile(expr, scope, &self.place(&format!("{name} `{id}`")), self.problems)
    }

    /// The predicate that a parameter names, compiled for rows with these columns.
    pub fn pred(&mut self, name: &str, schema: &Schema) -> Option<Filter> {
        let Some(Arg::Table(id)) = self.arg(name) else { return None };
        let pred = self.document.preds.get(id)?;
        let scope = Scope { keys: &self.registries.keys, params: &self.registries.params, schema };
        Filter::compile(pred, scope, &self.place(&format!("{name} `{id}`")), self.problems)
    }

    /// The kind of a key's values, if plans may read it and compute with it. Otherwise a problem is noted.
    pub fn readable(&mut self, field: &str, entry: &KeyEntry) -> Option<Kind> {
        if !entry.allow_read {
            self.problem(field, format!("key `{}` is not readable", entry.name));
            return None;
        }
        self.usable(field, entry)
    }

    /// The kind of a key's values, if plans may write it. Otherwise a problem is noted.
    pub fn writable(&mut self, field: &str, entry: &KeyEntry) -> Option<Kind> {
        if entry.key == Key::ID {
            self.problem(field, "ids cannot be written");
            return None;
        }
        if !entry.allow_write {
            self.problem(field, format!("key `{}` is not writable", entry.name));
            return None;
        }
        self.usable(field, entry)
    }

    fn usable(&mut self, field: &str, entry: &KeyEntry) -> Option<Kind> {
        let instead = entry.replaced_by.and_then(|key| self.registries.keys.get(key));
        let help = instead.map_or(String::new(), |entry| format!("; use `{}`", entry.name));
        match (entry.kind, entry.status) {
            (_, Status::Blocked) => self.problem(field, format!("key `{}` is blocked{help}", entry.name)),
            (KeyKind::FeatureBundle, _) => {
                self.problem(field, format!("key `{}` is a feature bundle, not a column", entry.name));
            }
            (KeyKind::Column(kind), status) => {
                if status == Status::Deprecated {
                    self.warn(field, format!("key `{}` is deprecated{help}", entry.name));
                }
                return Some(kind);
            }
        }
        None
    }

    /// Notes something wrong with a field.
    pub fn problem(&mut self, field: &str, what: impl Into<String>) {
        let problem = Problem::new(self.place(field), what);
        self.problems.error(problem);
    }

    /// Reports a problem of a field, with advice.
    pub fn problem_with_help(&mut self, field: &str, what: impl Into<String>, help: impl Into<String>) {
        let problem = Problem::new(self.place(field), what).help(help);
        self.problems.error(problem);
    }

    /// Notes that a field names something unknown, with the known name that was probably meant.
    pub(crate) fn unknown<'n>(
        &mut self,
        field: &str,
        what: impl Into<String>,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let mut problem = Problem::new(self.place(field), what);
        problem.help = self.problems.did_you_mean(name, known);
        self.problems.error(problem);
    }

    /// Notes something odd about a field.
    pub fn warn(&mut self, field: &str, what: impl Into<String>) {
        let problem = Problem::new(self.place(field), what);
        self.problems.warn(problem);
    }

    fn place(&self, field: &str) -> String {
        format!("node `{}` ({}), {field}", self.id, self.spec.name)
    }
}
