//! Nodes that may be late or fail: their fallbacks, and whether these are possible.

use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use anabranch_text::{Problem, Problems};

use super::{Draft, order};
use crate::compiled::{MadeColumn, StandIn};
use crate::document::{Document, DocumentNode, Fallback, Guard, Range, StaleTerms};
use crate::op::Demand;
use crate::ops::{REGION, fitted};
use crate::registry::{Keys, Registries};
use crate::schema::Schema;
use crate::value::Scalar;

/// Gives each node that falls back to another node a region of its own: a node behind it that chooses. By place,
/// whether a node was added so.
pub(super) fn expand(document: &mut Document, problems: &mut Problems) -> Vec<bool> {
    let count = document.nodes.len();
    // By place: the region of a node that has one, or the node itself.
    let mut regions: Vec<usize> = (0..count).collect();
    let mut fallbacks = Vec::new();
    for (place, region) in regions.iter_mut().enumerate() {
        let node = &mut document.nodes[place];
        let at = node.guard.fallbacks.iter().position(|fallback| matches!(fallback, Fallback::Node(_)));
        let Some(at) = at.filter(|_| node.op != REGION) else { continue };
        let Fallback::Node(other) = node.guard.fallbacks[at] else { unreachable!("just found") };
        let guard = Guard {
            timeout: None,
            fallbacks: node.guard.fallbacks.split_off(at),
            ranges: node.guard.ranges.clone(),
        };
        let added = DocumentNode {
            id: format!("{}{ADDED}", node.id),
            op: REGION.to_owned(),
            inputs: Vec::new(),
            args: Vec::new(),
            trace: None,
            guard,
            extended: false,
            sound: node.sound,
        };
        *region = document.nodes.len();
        document.nodes.push(added);
        fallbacks.push((place, other));
    }
    let inputs = document.nodes.iter_mut().flat_map(|node| &mut node.inputs);
    inputs.chain(&mut document.outputs).for_each(|input| *input = regions[*input]);
    for (place, other) in &fallbacks {
        document.nodes[regions[*place]].inputs = vec![*place, regions[*other]];
    }
    // All at once: to look for each of them would take a walk through the plan per fallback.
    if order::inputs_first(document).len() < document.nodes.len() {
        for (place, other) in fallbacks {
            if needs(document, regions[other], regions[place]) {
                let what = format!("node `{}` needs this node itself", document.nodes[other].id);
                let place = format!("{}, fallback", place_of(&document.nodes[place]));
                problems.error(Problem::new(place, what));
            }
        }
    }
    (0..document.nodes.len()).map(|place| place >= count).collect()
}

/// True if `node` is `other` or depends on it, directly or not.
fn needs(document: &Document, node: usize, other: usize) -> bool {
    let mut seen = vec![false; document.nodes.len()];
    let mut open = vec![node];
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut seen[place], true) {
            open.extend(&document.nodes[place].inputs);
        }
    }
    seen[other]
}

/// The suffix that a region adds to the id of its node.
const ADDED: &str = ".fallback";

fn place_of(node: &DocumentNode) -> String {
    match node.id.strip_suffix(ADDED).filter(|_| node.op == REGION) {
        Some(id) => format!("node `{id}`"),
        None => format!("node `{}` ({})", node.id, node.op),
    }
}

/// Reports problems of a node's guard that do not depend on other nodes. The op has already accepted the node.
pub(super) fn check(
    document: &Document,
    place: usize,
    planned: &crate::op::NodePlan,
    registries: &Registries,
    problems: &mut Problems,
) {
    let node = &document.nodes[place];
    let Guard { timeout, fallbacks, ranges } = &node.guard;
    let mut error = |field: &str, what: String, help: &str| {
        let problem = Problem::new(format!("{}, {field}", place_of(node)), what);
        problems.error(if help.is_empty() { problem } else { problem.help(help) });
    };
    if node.op == REGION && timeout.is_none() && fallbacks.is_empty() {
        error("timeout_ms", "a region without a `timeout_ms` and a `fallback` does nothing".to_owned(), "");
    }
    let waits = planned.endpoint.is_some();
    for fallback in fallbacks {
        match fallback {
            Fallback::Stale(_) if !waits => {
                let what = "only nodes that read from a source have stale values".to_owned();
                error("fallback", what, "put `stale` on the nodes that read, before any other node");
            }
            Fallback::Default(values) => {
                for (key, _) in values {
                    if planned.schema.kind(*key).is_none() {
                        let what = format!("the node makes no column `{}`", name(&registries.keys, *key));
                        error("fallback", what, "");
                    }
                }
            }
            _ => {}
        }
    }
    for range in ranges {
        let name = name(&registries.keys, range.key);
        if planned.schema.kind(range.key).is_none() {
            error("range", format!("the node's rows have no column `{name}`"), "");
        }
        for fallback in fallbacks {
            match fallback {
                Fallback::Default(values) => {
                    let value = values.iter().find(|(key, _)| *key == range.key).map(|(_, value)| value);
                    if let Some(value) = value.filter(|value| !range.has(value)) {
                        let what = format!("the default {value} of `{name}` is not in its range, {range}");
                        error("fallback", what, "rows with it would not compare with the others");
                    }
                }
                Fallback::Node(other) => {
                    let theirs = document.nodes[*other].guard.ranges.iter();
                    let fits = |theirs: &&Range| {
                        theirs.key == range.key && theirs.least >= range.least && theirs.most <= range.most
                    };
                    if theirs.clone().find(fits).is_none() {
                        let id = &document.nodes[*other].id;
                        let what = format!("nothing says that `{name}` of node `{id}` is in {range}");
                        error("fallback", what, "declare a `range` there that lies within this one");
                    }
                }
                Fallback::Empty | Fallback::Pass | Fallback::Stale(_) => {}
            }
        }
    }
}

fn name(keys: &Keys, key: Key) -> String {
    keys.get(key).map_or_else(|| format!("key {key}"), |entry| entry.name.clone())
}

/// The columns of its output that a node adds itself, without those that it only passes on.
pub(super) fn made(draft: &Draft, first: Option<&Schema>) -> Vec<MadeColumn> {
    let takes = draft.planned.takes.first().filter(|takes| takes.passes);
    let column = |(key, kind): (Key, Kind)| {
        let had = takes.filter(|_| first.is_some_and(|schema| schema.kind(key).is_some()));
        let passed = had.is_some_and(|takes| !takes.makes.has(key) && !takes.withholds.has(key));
        let of_itself = had.is_some_and(|takes| takes.makes.has(key) && takes.reads.has(key));
        (!passed).then_some(MadeColumn { key, kind, of_itself })
    };
    draft.planned.schema.iter().filter_map(column).collect()
}

/// Creates the fallbacks of a node.
pub(super) struct StandIns<'a> {
    pub(super) node: &'a DocumentNode,
    pub(super) demand: &'a Demand,
    pub(super) schema: &'a Schema,
    /// The ids of the document's nodes.
    pub(super) ids: &'a [String],
    pub(super) registries: &'a Registries,
    pub(super) problems: &'a mut Problems,
}

impl StandIns<'_> {
    /// All fallbacks in order; impossible ones are reported. `made` are the columns that the given rows lack; `None` if
    /// the node was given no rows.
    pub(super) fn all(&mut self, made: Option<&[MadeColumn]>) -> Vec<StandIn> {
        let node = self.node;
        let stand_in = |fallback: &Fallback| match fallback {
            Fallback::Empty => Some(StandIn::Empty(empty(self.demand, self.schema))),
            Fallback::Pass => self.fill("pass", made, &[]),
            Fallback::Default(values) => self.fill("default", made, values),
            Fallback::Stale(terms) => Some(StandIn::Stale(*terms)),
            Fallback::Node(other) => Some(StandIn::Node(self.ids[*other].clone())),
        };
        node.guard.fallbacks.iter().filter_map(stand_in).collect()
    }

    fn fill(
        &mut self,
        word: &'static str,
        made: Option<&[MadeColumn]>,
        values: &[(Key, Scalar)],
    ) -> Option<StandIn> {
        let Some(made) = made else {
            let what = format!("`{word}` needs rows that were there before, and this node makes its own");
            let problem = Problem::new(format!("{}, fallback", place_of(self.node)), what);
            self.problems.error(problem.help("`empty`, `stale` or another node can stand in for it"));
            return None;
        };
        for (key, _) in values.iter().filter(|(key, _)| made.iter().all(|column| column.key != *key)) {
            let name = name(&self.registries.keys, *key);
            let what = format!("`{name}` is in the rows that it was given, so it needs no default");
            self.problems.error(Problem::new(format!("{}, fallback", place_of(self.node)), what));
        }
        let mut columns = Vec::new();
        for &MadeColumn { key, kind, of_itself } in made {
            let given = values.iter().find(|(other, _)| *other == key);
            let given = given.and_then(|(_, value)| fitted(value, kind));
            if of_itself && given.is_none() {
                // It stays as it was.
                continue;
            }
            match self.constant(key, kind, given) {
                Ok(value) if self.demand.keys.has(key) => columns.push((key, kind, value)),
                Ok(_) => {}
                Err(problem) => self.problems.error(problem),
            }
        }
        Some(StandIn::Fill { word, columns })
    }

    /// The value of a column that no node has computed.
    fn constant(&self, key: Key, kind: Kind, given: Option<Scalar>) -> Result<Option<Scalar>, Problem> {
        let entry = self.registries.keys.get(key);
        let default = entry.filter(|entry| !entry.nullable).and_then(|entry| entry.default.as_ref());
        let value = given.or_else(|| default.and_then(|value| fitted(value, kind)));
        let ranged = self.node.guard.ranges.iter().any(|range| range.key == key);
        let wrong = match (&value, entry) {
            (None, Some(entry)) if !entry.nullable => "and it may not be null",
            (None, _) if ranged => "and rows without it do not compare with the others",
            _ => return Ok(value),
        };
        let what = format!("`{}` would have no value, {wrong}", name(&self.registries.keys, key));
        let problem = Problem::new(format!("{}, fallback", place_of(self.node)), what);
        Err(problem.help("{\"default\": {key: value}} gives it one"))
    }
}

/// No rows, with the columns that are needed.
fn empty(demand: &Demand, schema: &Schema) -> Rows {
    let asked = schema.iter().filter(|(key, _)| demand.keys.has(*key));
    let columns = asked.map(|(key, kind)| (key, Column::all_null(kind, 0))).collect();
    Rows::new(Batch::with_columns(Vec::new(), columns))
}

/// The text of a guard in explanations.
pub(super) fn shown(node: &DocumentNode, ids: &[String], keys: &Keys) -> Vec<(String, String)> {
    let mut said = Vec::new();
    let Guard { timeout, fallbacks, ranges } = &node.guard;
    said.extend(timeout.map(|timeout| ("timeout".to_owned(), format!("{timeout:?}"))));
    let words: Vec<String> = fallbacks.iter().map(|fallback| words(fallback, ids, keys)).collect();
    if !words.is_empty() {
        said.push(("fallback".to_owned(), words.join(", else ")));
    }
    let ranges = ranges.iter().map(|range| format!("{} {range}", name(keys, range.key)));
    said.extend(ranges.map(|range| ("range".to_owned(), range)));
    said
}

fn words(fallback: &Fallback, ids: &[String], keys: &Keys) -> String {
    match fallback {
        Fallback::Empty => "empty".to_owned(),
        Fallback::Pass => "pass".to_owned(),
        Fallback::Default(values) => {
            let value = |(key, value): &(Key, Scalar)| format!("{} {value}", name(keys, *key));
            format!("default {}", values.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        Fallback::Stale(StaleTerms { max_age, min_known }) => {
            format!("stale up to {max_age:?} if {:.0}% of the keys are known", 100.0 * min_known)
        }
        Fallback::Node(other) => format!("node {}", ids[*other]),
    }
}
