//! A plan file: parsed, every name in it resolved, nothing known yet about columns.

mod names;
mod nodes;
mod args;
mod guard;
mod capabilities;
mod circle;
mod outputs;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use crate::expr::{Expr, Pred};
use crate::fields::Fields;
use crate::json::{self, show};
use crate::op::{Arg, Ops};
use crate::registry::Registries;

use names::Names;

pub use guard::{Fallback, Guard, Range, StaleTerms};

/// The longest plan file.
const LONGEST_TEXT: usize = 16 << 20;
/// The most nodes, and the most outputs, of a plan.
const MOST_NODES: usize = 10_000;
/// The version of plan files.
const VERSION: i64 = 1;

/// A plan as its file says it.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its nodes, in the order of the file.
    pub nodes: Vec<DocumentNode>,
    /// The nodes whose rows are the answer, in order; by place.
    pub outputs: Vec<usize>,
    /// The names of the outputs: as the file says, else the ids of the nodes.
    pub output_names: Vec<String>,
    /// Its expressions.
    pub exprs: BTreeMap<String, Expr>,
    /// Its predicates.
    pub preds: BTreeMap<String, Pred>,
    /// The capabilities it requires.
    pub capabilities: Vec<String>,
    /// The payloads of its extensions, by capability.
    pub extensions: Map<String, Value>,
    /// The time limit of a request without a deadline.
    pub deadline: Option<Duration>,
    /// The timeout of each of its nodes.
    pub node_timeout: Option<Duration>,
}

/// A node as the file says it.
#[derive(Clone, Debug)]
pub struct DocumentNode {
    /// Its id.
    pub id: String,
    /// The name of its op, which exists.
    pub op: String,
    /// Its inputs, by place: those of `inputs`, then those of node parameters.
    pub inputs: Vec<usize>,
    /// One a parameter of the op's spec, in its order; defaults are the op's own business.
    pub args: Vec<Option<Arg>>,
    /// The label for traces.
    pub trace: Option<String>,
    /// Its timeout, fallbacks and ranges.
    pub guard: Guard,
    /// True if it has extensions. Such a node is not equal to any other.
    pub extended: bool,
    /// True if the node itself has no problems.
    pub(crate) sound: bool,
}

impl Document {
    /// Reads and checks a plan file, as far as that is possible without columns. The nodes are returned in the order of
    /// the file. There is no cycle among them.
    ///
    /// A document is returned only if `problems` got no error.
    pub fn parse(
        text: &str,
        ops: &Ops,
        registries: &Registries,
        problems: &mut Problems,
    ) -> Option<Document> {
        let errors = problems.errors.len();
        let document = Document::read(text, ops, registries, problems);
        document.filter(|_| problems.errors.len() == errors)
    }

    /// The same, but also returns the valid part of a document with errors, so that more problems can be found.
    pub(crate) fn read(
        text: &str,
        ops: &Ops,
        registries: &Registries,
        problems: &mut Problems,
    ) -> Option<Document> {
        let value = parse_text(text, problems)?;
        let Some(map) = value.as_object() else {
            problems.error(Problem::new("plan", format!("must be an object, not {}", show(&value))));
            return None;
        };
        Reader { ops, registries }.document(map, problems)
    }
}

fn parse_text(text: &str, problems: &mut Problems) -> Option<Value> {
    if text.len() > LONGEST_TEXT {
        let what = format!("has {} bytes; a plan file may have {LONGEST_TEXT}", text.len());
        problems.error(Problem::new("plan", what));
        return None;
    }
    let parsed = json::parse(text.as_bytes());
    if let Err(error) = &parsed {
        let place = format!("line {}, column {}", error.line, error.column);
        problems.error(Problem::new(place, format!("not a JSON plan: {}", error.what)));
    }
    parsed.ok()
}

/// The registries and ops that a plan is checked against.
struct Reader<'a> {
    ops: &'a Ops,
    registries: &'a Registries,
}

impl Reader<'_> {
    fn document(&self, map: &Map<String, Value>, problems: &mut Problems) -> Option<Document> {
        let mut top = Fields::new(map, "", problems);
        if let Some(version) = top.required::<i64>("schema_version")
            && version != VERSION
        {
            let what = format!("version {version} is not known; this program reads version {VERSION}");
            top.error("schema_version", what);
        }
        let name: Option<&str> = top.required("plan_name");
        if let Some(name) = name
            && !self.registries.limits.plan_name.is_match(name)
        {
            let pattern = &self.registries.limits.plan_name;
            top.error("plan_name", format!("{} does not match {pattern}", quote(name)));
        }
        let nodes: Option<&[Value]> = top.required("nodes");
        let outputs: Option<&[Value]> = top.required("outputs");
        let [exprs, preds] = ["expr_table", "pred_table"].map(|name| top.optional(name).unwrap_or(empty()));
        let capabilities = capabilities::required(&mut top, self.registries);
        let extensions = top.optional("extensions").unwrap_or(empty());
        top.optional::<&Map<String, Value>>("built_by");
        let [deadline, node_timeout] =
            ["deadline_ms", "node_timeout_ms"].map(|name| guard::millis(&mut top, name));
        top.finish();
        capabilities::check_extensions("", extensions, &capabilities, self.registries, problems);

        let nodes = nodes.and_then(|nodes| bounded("nodes", nodes, problems));
        let outputs = outputs.and_then(|outputs| bounded("outputs", outputs, problems));
        let mut names = Names::new(nodes.unwrap_or_default(), exprs, preds, problems);
        let nodes = nodes.map(|nodes| self.nodes(nodes, &mut names, &capabilities, problems));
        // Without nodes there is nothing to say about references to them.
        if let Some(nodes) = &nodes {
            circle::find(nodes, problems);
        }
        let outputs = outputs.filter(|_| nodes.is_some()).map(|list| outputs::read(list, &names, problems));
        let exprs = names.exprs.parse("expr_table", problems, Expr::parse);
        let preds = names.preds.parse("pred_table", problems, Pred::parse);
        let (outputs, output_names) = outputs?;
        Some(Document {
            name: name?.to_owned(),
            nodes: nodes?.into_iter().collect::<Option<_>>()?,
            outputs,
            output_names,
            exprs,
            preds,
            capabilities,
            extensions: extensions.clone(),
            deadline,
            node_timeout,
        })
    }
}

/// The empty object that replaces one that is left out.
fn empty() -> &'static Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    &EMPTY
}

fn bounded<'a>(field: &str, list: &'a [Value], problems: &mut Problems) -> Option<&'a [Value]> {
    if list.len() > MOST_NODES {
        let what = format!("has {} entries; a plan may have {MOST_NODES}", list.len());
        problems.error(Problem::new(field, what));
        return None;
    }
    Some(list)
}
