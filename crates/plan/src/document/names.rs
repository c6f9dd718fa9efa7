//! The names that a plan may refer to: its nodes, expressions and predicates.

use std::collections::{BTreeMap, HashMap, HashSet};

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

/// The names in a plan.
pub(super) struct Names<'a> {
    nodes: HashMap<&'a str, usize>,
    pub(super) exprs: Table<'a>,
    pub(super) preds: Table<'a>,
}

/// `expr_table` or `pred_table`.
pub(super) struct Table<'a> {
    map: &'a Map<String, Value>,
    used: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    /// Collects the names. Duplicate node ids are reported.
    pub(super) fn new(
        nodes: &'a [Value],
        exprs: &'a Map<String, Value>,
        preds: &'a Map<String, Value>,
        problems: &mut Problems,
    ) -> Names<'a> {
        let mut places = HashMap::new();
        for (place, node) in nodes.iter().enumerate() {
            let Some(id) = node.get("node_id").and_then(Value::as_str) else { continue };
            if let Some(first) = places.get(id) {
                let what = format!("nodes[{first}] and nodes[{place}] have the same id");
                problems.error(Problem::new(format!("node {}, node_id", quote(id)), what));
            } else {
                places.insert(id, place);
            }
        }
        let [exprs, preds] = [exprs, preds].map(|map| Table { map, used: HashSet::new() });
        Names { nodes: places, exprs, preds }
    }

    /// The place of a node that `place` refers to.
    pub(super) fn node(&self, id: &str, place: &str, problems: &mut Problems) -> Option<usize> {
        let found = self.nodes.get(id).copied();
        if found.is_none() {
            let mut problem = Problem::new(place, format!("there is no node {}", quote(id)));
            problem.help = problems.did_you_mean(id, self.nodes.keys().copied());
            problems.error(problem);
        }
        found
    }
}

impl<'a> Table<'a> {
    /// Marks an entry as used. Returns whether it exists.
    pub(super) fn mark(&mut self, id: &str) -> bool {
        let found = self.map.get_key_value(id);
        self.used.extend(found.map(|(id, _)| id.as_str()));
        found.is_some()
    }

    /// The names of all entries.
    pub(super) fn ids(&self) -> impl Iterator<Item = &'a str> {
        self.map.keys().map(String::as_str)
    }

    /// Parses all entries, and warns about unused ones. In a plan with errors, the unused ones are unknown.
    pub(super) fn parse<T>(
        &self,
        table: &str,
        problems: &mut Problems,
        parse: impl Fn(&Value, &str, &mut Problems) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let mut entries = BTreeMap::new();
        for (id, json) in self.map {
            let place = format!("{table}.{}", quote(id).trim_matches('`'));
            if !self.used.contains(id.as_str()) && problems.is_fine() {
                problems.warn(Problem::new(&place, "no node uses it"));
            }
            entries.extend(parse(json, &place, problems).map(|parsed| (id.clone(), parsed)));
        }
        entries
    }
}
