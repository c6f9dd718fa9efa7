//! Makes a value fit a schema.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use anabranch_value::{Map, Value};

use super::numbers::{from_text, is_multiple, same, whole};
use super::{Additional, FitProblem, Node, NodeId, Schema, Types};
use crate::error::shorten;

/// Problems that are reported.
const MOST_PROBLEMS: usize = 20;
/// Schemas that are applied to one value and its parts, so that schemas with many choices end.
const MOST_STEPS: u32 = 1_000_000;
const DEEPEST: usize = 128;

pub(super) fn fit(schema: &Schema, value: Value) -> Result<Value, Vec<FitProblem>> {
    let fitter = Fitter { nodes: &schema.nodes, steps: Cell::new(0) };
    let mut outcome = fitter.fit(schema.root, value, &Place { path: "$", names: &[], depth: 0 });
    if outcome.problems.is_empty() {
        return Ok(outcome.value);
    }
    outcome.problems.truncate(MOST_PROBLEMS);
    Err(outcome.problems)
}

struct Fitter<'a> {
    nodes: &'a [Node],
    steps: Cell<u32>,
}

/// The place at which a schema is applied.
struct Place<'a> {
    path: &'a str,
    /// Properties that schemas around this one allow at the same place.
    names: &'a [Arc<str>],
    depth: usize,
}

/// A value after the changes that a schema requires.
struct Outcome {
    value: Value,
    changes: u32,
    problems: Vec<FitProblem>,
}

impl Outcome {
    fn problem(&mut self, path: &str, what: String) {
        if self.problems.len() <= MOST_PROBLEMS {
            self.problems.push(FitProblem { path: path.to_owned(), what });
        }
    }

    /// Adds the findings about a part.
    fn add(&mut self, part: Outcome) -> Value {
        self.changes += part.changes;
        self.problems.extend(part.problems);
        part.value
    }

    fn fits(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Fitter<'_> {
    fn fit(&self, id: NodeId, value: Value, place: &Place<'_>) -> Outcome {
        let mut out = Outcome { value, changes: 0, problems: Vec::new() };
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS || place.depth > DEEPEST {
            out.problem(place.path, "the value is too deep for its schema".to_owned());
            return out;
        }
        let node = &self.nodes[id.0];
        if node.never {
            out.problem(place.path, "no value is allowed here".to_owned());
            return out;
        }
        if let Some(types) = node.types {
            out.of_type(types, place.path);
            if !out.fits() {
                return out;
            }
        }
        if let Some(allowed) = &node.allowed {
            out.one_of(allowed, place.path);
        }
        out.check_number(node, place.path);
        out.check_text(node, place.path);
        if matches!(out.value, Value::List(_)) {
            self.list(node, &mut out, place);
        }
        if matches!(out.value, Value::Map(_)) {
            self.map(node, &mut out, place);
        }
        self.combined(id, &mut out, place);
        out
    }

    fn list(&self, node: &Node, out: &mut Outcome, place: &Place<'_>) {
        let Value::List(values) = std::mem::take(&mut out.value) else { return };
        let count = values.len() as u64;
        let mut fitted = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            let schema = node.prefix.get(at).copied().or(node.items);
            let path = format!("{}[{at}]", place.path);
            fitted.push(match schema {
                Some(schema) => out.add(self.fit(schema, value.clone(), &place.inside(&path))),
                None => value.clone(),
            });
        }
        if node.min_items.is_some_and(|min| count < min) || node.max_items.is_some_and(|max| count > max) {
            out.problem(
                place.path,
                format!("{} items, expected {}", count, range(node.min_items, node.max_items)),
            );
        }
        if node.unique
            && let Some(at) = repeated(&fitted)
        {
            out.problem(place.path, format!("item {at} is there twice"));
        }
        if let Some(contains) = &node.contains {
            let fits =
                |value: &&Value| self.fit(contains.node, (*value).clone(), &place.inside(place.path)).fits();
            let found = fitted.iter().filter(fits).count() as u64;
            if found < contains.min || contains.max.is_some_and(|max| found > max) {
                let expected = range(Some(contains.min), contains.max);
                out.problem(place.path, format!("{found} items fit `contains`, expected {expected}"));
            }
        }
        out.value = fitted.into();
    }

    fn map(&self, node: &Node, out: &mut Outcome, place: &Place<'_>) {
        let Value::Map(map) = std::mem::take(&mut out.value) else { return };
        let mut fitted = Map::with_capacity(map.len());
        for (name, value) in &*map {
            let path = path_of(place.path, name);
            let mut value = value.clone();
            let mut named = false;
            let own = node.properties.iter().filter(|(own, _)| own == name).map(|(_, schema)| schema);
            let by_pattern = node
                .pattern_properties
                .iter()
                .filter(|(pattern, _)| pattern.is_match(name))
                .map(|(_, schema)| schema);
            for schema in own.chain(by_pattern) {
                named = true;
                value = out.add(self.fit(*schema, value, &place.inside(&path)));
            }
            if let (false, Additional::Kept(schema)) = (named, node.additional) {
                value = out.add(self.fit(schema, value, &place.inside(&path)));
            }
            if let Some(schema) = node.property_names {
                let text = Value::Text(Arc::clone(name));
                let fit = self.fit(schema, text, &place.inside(&path));
                out.problems.extend(fit.problems);
            }
            fitted.insert(Arc::clone(name), value);
        }
        for name in node.required.iter().filter(|name| !fitted.contains_key(*name)) {
            out.problem(place.path, format!("the required property `{name}` is missing"));
        }
        for (name, needed) in node.dependent_required.iter().filter(|(name, _)| fitted.contains_key(name)) {
            for missing in needed.iter().filter(|missing| !fitted.contains_key(*missing)) {
                out.problem(
                    place.path,
                    format!("`{name}` requires the property `{missing}`, which is missing"),
                );
            }
        }
        let count = fitted.len() as u64;
        if node.min_properties.is_some_and(|min| count < min)
            || node.max_properties.is_some_and(|max| count > max)
        {
            let expected = range(node.min_properties, node.max_properties);
            out.problem(place.path, format!("{count} properties, expected {expected}"));
        }
        out.value = fitted.into();
    }

    /// The schemas that apply to the same value, then the removal of properties that none of them allows.
    fn combined(&self, id: NodeId, out: &mut Outcome, place: &Place<'_>) {
        let node = &self.nodes[id.0];
        let names = match &out.value {
            Value::Map(map) => self.allowed_names(id, map, place.names),
            _ => Some(Vec::new()),
        };
        // `None`: all names are allowed, so parts must not remove any.
        let all: Vec<Arc<str>> = match (&names, &out.value) {
            (None, Value::Map(map)) => map.keys().cloned().collect(),
            (names, _) => names.clone().unwrap_or_default(),
        };
        let same_place = Place { names: &all, depth: place.depth + 1, path: place.path };
        for part in &node.all_of {
            let value = std::mem::take(&mut out.value);
            out.value = out.add(self.fit(*part, value, &same_place));
        }
        if let Some(condition) = &node.condition {
            let holds = self.fit(condition.test, out.value.clone(), &same_place);
            let part = if holds.fits() && holds.changes == 0 { condition.then } else { condition.otherwise };
            if let Some(part) = part {
                let value = std::mem::take(&mut out.value);
                out.value = out.add(self.fit(part, value, &same_place));
            }
        }
        if let Some(not) = node.not
            && self.fit(not, out.value.clone(), &same_place).fits()
        {
            out.problem(place.path, "the value fits a schema that it must not fit".to_owned());
        }
        self.choose(&node.any_of, false, out, &same_place);
        self.choose(&node.one_of, true, out, &same_place);
        let has_choice = !node.any_of.is_empty() || !node.one_of.is_empty();
        if let (false, Some(names), Value::Map(map)) = (has_choice, names, &out.value)
            && (!names.is_empty() || node.additional == Additional::Removed)
            && map.keys().any(|name| !names.contains(name))
        {
            let kept: Map = map
                .iter()
                .filter(|(name, _)| names.contains(*name))
                .map(|(k, v)| (Arc::clone(k), v.clone()))
                .collect();
            out.changes += (map.len() - kept.len()) as u32;
            out.value = kept.into();
        }
    }

    /// The property names that a node, the nodes joined to it, and `around` allow; `None` if any name is allowed.
    fn allowed_names(&self, id: NodeId, map: &Map, around: &[Arc<str>]) -> Option<Vec<Arc<str>>> {
        let mut names = around.to_vec();
        let mut waiting = vec![id];
        let mut seen = Vec::new();
        while let Some(id) = waiting.pop() {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let node = &self.nodes[id.0];
            if matches!(node.additional, Additional::Kept(_)) {
                return None;
            }
            names.extend(node.properties.iter().map(|(name, _)| Arc::clone(name)));
            let by_pattern = |name: &&Arc<str>| node.pattern_properties.iter().any(|(p, _)| p.is_match(name));
            names.extend(map.keys().filter(by_pattern).cloned());
            waiting.extend(&node.all_of);
            if let Some(condition) = &node.condition {
                waiting.extend([condition.then, condition.otherwise].into_iter().flatten());
            }
        }
        Some(names)
    }

    /// The choice that fits with the fewest changes. With `only` a value must not fit two of them as it stands.
    fn choose(&self, choices: &[NodeId], only: bool, out: &mut Outcome, place: &Place<'_>) {
        if choices.is_empty() {
            return;
        }
        let mut best: Option<Outcome> = None;
        let mut unchanged = 0;
        for choice in choices {
            let outcome = self.fit(*choice, out.value.clone(), place);
            unchanged += u32::from(outcome.fits() && outcome.changes == 0);
            let rank = |outcome: &Outcome| (outcome.problems.len(), outcome.changes);
            if best.as_ref().is_none_or(|best| rank(&outcome) < rank(best)) {
                best = Some(outcome);
            }
        }
        if only && unchanged > 1 {
            out.problem(place.path, "the value fits more than one schema of `oneOf`".to_owned());
        }
        if let Some(best) = best {
            out.value = out.add(best);
        }
    }
}

impl Place<'_> {
    fn inside<'b>(&self, path: &'b str) -> Place<'b> {
        Place { path, names: &[], depth: self.depth + 1 }
    }
}

impl Outcome {
    fn of_type(&mut self, types: Types, path: &str) {
        if let Value::Float(float) = self.value
            && types.has("integer")
            && !types.has("number")
            && let Some(int) = whole(float)
        {
            self.value = Value::Int(int);
        }
        if types.include(&self.value) {
            return;
        }
        let number = self.value.as_text().and_then(from_text).map(|number| match number {
            Value::Float(float) if !types.has("number") => whole(float).map_or(number, Value::Int),
            number => number,
        });
        match number.filter(|number| types.include(number)) {
            Some(number) => {
                self.value = number;
                self.changes += 1;
            }
            None => self.problem(path, format!("expected {types}, found {}", shown(&self.value))),
        }
    }

    fn one_of(&mut self, allowed: &[Value], path: &str) {
        match allowed.iter().find(|allowed| same(allowed, &self.value)) {
            Some(allowed) => self.value = allowed.clone(),
            None => {
                let expected: Vec<String> = allowed.iter().take(12).map(Value::to_json).collect();
                let dots = if allowed.len() > 12 { ", …" } else { "" };
                let expected = expected.join(", ");
                self.problem(path, format!("expected one of {expected}{dots}, found {}", shown(&self.value)));
            }
        }
    }

    fn check_number(&mut self, node: &Node, path: &str) {
        let Some(number) = self.value.as_number() else { return };
        let bounds = [
            (node.minimum, number >= node.minimum.unwrap_or(number), "at least"),
            (node.maximum, number <= node.maximum.unwrap_or(number), "at most"),
            (node.above, node.above.is_none_or(|above| number > above), "more than"),
            (node.below, node.below.is_none_or(|below| number < below), "less than"),
            (node.multiple_of, node.multiple_of.is_none_or(|of| is_multiple(number, of)), "a multiple of"),
        ];
        for (bound, holds, words) in bounds {
            if let (Some(bound), false) = (bound, holds) {
                self.problem(path, format!("expected {words} {bound}, found {number}"));
            }
        }
    }

    fn check_text(&mut self, node: &Node, path: &str) {
        let Value::Text(text) = &self.value else { return };
        let text = Arc::clone(text);
        if node.min_length.is_some() || node.max_length.is_some() {
            let count = text.chars().count() as u64;
            if node.min_length.is_some_and(|min| count < min)
                || node.max_length.is_some_and(|max| count > max)
            {
                let expected = range(node.min_length, node.max_length);
                self.problem(path, format!("{count} characters, expected {expected}"));
            }
        }
        if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(&text)) {
            self.problem(path, format!("does not match the pattern `{pattern}`: {}", shown(&self.value)));
        }
    }
}

/// The first item that an earlier one is the same as.
fn repeated(items: &[Value]) -> Option<usize> {
    const FEW: usize = 64;
    if items.len() <= FEW {
        return (0..items.len()).find(|at| items[..*at].iter().any(|other| same(other, &items[*at])));
    }
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().position(|item| !seen.insert(item.to_json()))
}

fn range(min: Option<u64>, max: Option<u64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => format!("{min}"),
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any number".to_owned(),
    }
}

/// A value for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::List(_) | Value::Map(_) => value.kind().to_owned(),
        scalar => shorten(&scalar.to_json()),
    }
}

fn path_of(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut path = path.to_owned();
    // Writing to a string does not fail.
    let _ = if plain { write!(path, ".{name}") } else { write!(path, "[{}]", Value::from(name).to_json()) };
    path
}
