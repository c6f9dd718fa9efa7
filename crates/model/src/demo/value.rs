//! Values that satisfy a JSON schema.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use anabranch_value::{Map, Value};
use regex_syntax::hir::Hir;

use super::prose;
use super::random::Random;
use super::scalar::{number, text};
use crate::schema::{PATTERN_MOST, Schema, resolve_ref, same};

/// Tries for schemas in which parts depend on each other.
const TRIES: usize = 24;
/// Below this depth, only required properties are generated, so that recursive schemas end.
const SHALLOW: usize = 5;
const DEEPEST: usize = 24;
/// The most steps for one reply, so that the reply to any schema is made in bounded time and memory. A step is about one
/// value, one keyword that is joined, or [`TEXT_PER_STEP`] bytes of text.
const STEPS_MOST: usize = 200_000;
const TEXT_PER_STEP: usize = 16;
/// A class of a pattern takes long to parse.
const STEPS_PER_PATTERN_BYTE: usize = 8;

/// A value that satisfies the schema, or, for schemas that are hard to satisfy, comes near.
pub(super) fn generate(schema: &Value, random: &mut Random) -> Value {
    let compiled = Schema::new(schema).ok();
    let mut generator =
        Generator { root: schema, random, size: steps(schema), patterns: HashMap::new(), left: STEPS_MOST };
    let mut value = Value::Null;
    for _ in 0..TRIES {
        value = generator.value(schema, "value", 0);
        match compiled.as_ref().map(|compiled| compiled.fit(value.clone())) {
            Some(Err(_)) if generator.left > 0 => {}
            Some(Ok(fitted)) => return fitted,
            Some(Err(_)) | None => return value,
        }
    }
    value
}

/// The steps that a copy of a value takes.
fn steps(value: &Value) -> usize {
    let inside = match value {
        Value::Text(text) => text.len() / TEXT_PER_STEP,
        Value::List(list) => list.iter().map(steps).sum(),
        Value::Map(map) => map.iter().map(|(name, value)| name.len() / TEXT_PER_STEP + steps(value)).sum(),
        _ => 0,
    };
    1 + inside
}

/// The steps that it takes to look at the keywords of a schema, without the schemas in them.
fn keywords(schema: &Map) -> usize {
    let entries = |value: &Value| match value {
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => 0,
    };
    schema.len() + schema.values().map(entries).sum::<usize>() / TEXT_PER_STEP
}

struct Generator<'a> {
    root: &'a Value,
    random: &'a mut Random,
    /// The steps that it takes to look at the whole schema.
    size: usize,
    /// `None` for those that cannot be used.
    patterns: HashMap<String, Option<Rc<Hir>>>,
    /// The steps that are left.
    left: usize,
}

impl Generator<'_> {
    /// Takes steps. False if none are left.
    fn spend(&mut self, steps: usize) -> bool {
        self.left = self.left.saturating_sub(steps);
        self.left > 0
    }

    /// A value that the schema has.
    fn copy(&mut self, value: &Value) -> Value {
        if self.spend(steps(value)) { value.clone() } else { Value::Null }
    }

    /// A text for a schema.
    fn text(&mut self, schema: &Map, name: &str) -> String {
        let pattern = schema.get("pattern").and_then(Value::as_text);
        let pattern = pattern.and_then(|pattern| self.pattern(pattern));
        let text = text(schema, pattern.as_deref(), name, self.random);
        // Each character of a pattern is drawn by itself.
        self.spend(if pattern.is_some() { text.len() } else { text.len() / TEXT_PER_STEP });
        text
    }

    fn pattern(&mut self, pattern: &str) -> Option<Rc<Hir>> {
        if pattern.len() > PATTERN_MOST {
            return None;
        }
        if let Some(known) = self.patterns.get(pattern) {
            return known.clone();
        }
        let is_paid = self.spend(pattern.len() * STEPS_PER_PATTERN_BYTE);
        let parsed = is_paid.then(|| regex_syntax::parse(pattern).ok().map(Rc::new)).flatten();
        self.patterns.insert(pattern.to_owned(), parsed.clone());
        parsed
    }

    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > DEEPEST || !self.spend(1) {
            return Value::Null;
        }
        let Value::Map(map) = schema else { return Value::Text(prose::label(name, self.random).into()) };
        let merged = self.merged(map, depth, 0);
        if let Some(value) = merged.get("const") {
            return self.copy(value);
        }
        if let Some(options) =
            merged.get("enum").and_then(Value::as_list).filter(|options| !options.is_empty())
        {
            let chosen = self.random.choose(options);
            return self.copy(chosen);
        }
        match self.kind(&merged, depth) {
            "null" => Value::Null,
            "boolean" => Value::Bool(self.random.bits() & 1 == 1),
            kind @ ("integer" | "number") => number(&merged, kind == "integer", self.random),
            "array" => self.list(&merged, name, depth),
            "object" => self.map(&merged, depth),
            _ => self.text(&merged, name).into(),
        }
    }

    /// The schema with `$ref`, `allOf`, one choice of `anyOf` and `oneOf`, and one side of a condition joined into it.
    fn merged(&mut self, map: &Map, depth: usize, joins: usize) -> Map {
        if !self.spend(keywords(map)) {
            return Map::new();
        }
        let mut merged = map.clone();
        let mut parts: Vec<Value> = Vec::new();
        if joins < DEEPEST {
            let reference = merged.shift_remove("$ref");
            parts.extend(reference.as_ref().and_then(Value::as_text).and_then(|text| self.referenced(text)));
            let all = merged.shift_remove("allOf");
            parts.extend(all.as_ref().and_then(Value::as_list).unwrap_or_default().iter().cloned());
            for name in ["anyOf", "oneOf"] {
                let choices = merged.shift_remove(name);
                let choices = choices.as_ref().and_then(Value::as_list).unwrap_or_default();
                parts.extend(self.choice(choices, depth));
            }
            if let Some(test) = merged.shift_remove("if") {
                let (then, other) = (merged.shift_remove("then"), merged.shift_remove("else"));
                let holds = self.random.bits() & 1 == 1;
                parts.extend(if holds { [Some(test), then] } else { [other, None] }.into_iter().flatten());
            }
        }
        for part in parts {
            let Value::Map(part) = part else { continue };
            let part = self.merged(&part, depth, joins + 1);
            if !self.spend(keywords(&merged)) {
                break;
            }
            for (name, value) in part {
                join(&mut merged, name, value);
            }
        }
        merged
    }

    fn referenced(&mut self, reference: &str) -> Option<Value> {
        // An anchor is searched for in the whole schema.
        let is_path = reference == "#" || reference.starts_with("#/");
        let is_paid = self.spend(if is_path { reference.len() / TEXT_PER_STEP } else { self.size });
        is_paid.then(|| resolve_ref(self.root, reference).cloned()).flatten()
    }

    /// One of the choices; in the depths a simple one.
    fn choice(&mut self, choices: &[Value], depth: usize) -> Option<Value> {
        if choices.is_empty() {
            return None;
        }
        let simple = |choice: &&Value| {
            matches!(
                choice.get("type").and_then(Value::as_text),
                Some("null" | "string" | "integer" | "number" | "boolean")
            )
        };
        let is_null = |choice: &Value| choice.get("type").and_then(Value::as_text) == Some("null");
        if depth > SHALLOW
            && let Some(simple) = choices.iter().find(simple)
        {
            return Some(simple.clone());
        }
        let chosen = self.random.choose(choices);
        // Null is a dull answer: it comes half as often as the others.
        let chosen = if is_null(chosen) { self.random.choose(choices) } else { chosen };
        Some(chosen.clone())
    }

    fn kind(&mut self, schema: &Map, depth: usize) -> &'static str {
        const KINDS: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
        let known = |name: &str| KINDS.iter().find(|kind| **kind == name).copied();
        match schema.get("type") {
            Some(Value::Text(name)) => known(name).unwrap_or("string"),
            Some(Value::List(names)) => {
                let kinds: Vec<&'static str> =
                    names.iter().filter_map(|name| known(name.as_text()?)).collect();
                let dull = depth > SHALLOW && kinds.contains(&"null");
                if kinds.is_empty() || dull { "null" } else { kinds[self.random.below(kinds.len())] }
            }
            _ => {
                let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
                if has(&[
                    "properties",
                    "required",
                    "additionalProperties",
                    "patternProperties",
                    "minProperties",
                ]) {
                    "object"
                } else if has(&["items", "prefixItems", "minItems", "maxItems", "contains"]) {
                    "array"
                } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
                    "number"
                } else {
                    "string"
                }
            }
        }
    }

    fn list(&mut self, schema: &Map, name: &str, depth: usize) -> Value {
        let bound =
            |name: &str| schema.get(name).and_then(Value::as_number).map(|number| number.max(0.0) as usize);
        let min = bound("minItems").unwrap_or(0);
        let prefix = schema.get("prefixItems").and_then(Value::as_list).unwrap_or_default();
        let items = schema.get("items");
        let wanted = if depth > SHALLOW { min } else { min.max(1) + self.random.below(3) };
        let most = match items {
            Some(Value::Bool(false)) => prefix.len(),
            _ => bound("maxItems").unwrap_or(usize::MAX),
        };
        let wanted = wanted.max(prefix.len()).min(most).min(10_000);
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut list: Vec<Value> = Vec::new();
        for step in 0..wanted.saturating_mul(8) {
            // An item is compared with all others.
            let others = if unique { list.len() / TEXT_PER_STEP } else { 0 };
            if list.len() >= wanted || !self.spend(others) {
                break;
            }
            let any = Value::Bool(true);
            let contained = schema.get("contains").filter(|_| step == 0 && prefix.is_empty());
            let schema = prefix.get(list.len()).or(contained).or(items).unwrap_or(&any);
            let item = self.value(schema, name.trim_end_matches('s'), depth + 1);
            if !(unique && list.iter().any(|other| same(other, &item))) {
                list.push(item);
            }
        }
        list.into()
    }

    fn map(&mut self, schema: &Map, depth: usize) -> Value {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_list)
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_text)
            .collect();
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_map).unwrap_or(&empty);
        let is_required: HashSet<&str> = required.iter().copied().collect();
        let mut map = Map::new();
        for (name, property) in properties {
            let is_wanted = depth <= SHALLOW || is_required.contains(&**name);
            if is_wanted && self.spend(name.len() / TEXT_PER_STEP) {
                let value = self.value(property, name, depth + 1);
                map.insert(Arc::clone(name), value);
            }
        }
        let any = Value::Bool(true);
        let other = schema.get("additionalProperties").unwrap_or(&any);
        for name in required {
            if !map.contains_key(name) && self.spend(name.len() / TEXT_PER_STEP) {
                let value = self.value(other, name, depth + 1);
                map.insert(name.into(), value);
            }
        }
        let least =
            schema.get("minProperties").and_then(Value::as_number).unwrap_or(0.0).min(1000.0) as usize;
        let open = matches!(other, Value::Map(_)) && properties.is_empty() && depth <= SHALLOW;
        let least = if open { least.max(1 + self.random.below(2)) } else { least };
        let names = schema.get("propertyNames").and_then(Value::as_map);
        for step in 0..least.saturating_mul(8) {
            if map.len() >= least || self.left == 0 {
                break;
            }
            let name = match names {
                Some(names) => self.text(names, "name"),
                None => format!("demo_{step}"),
            };
            let value = self.value(other, &name, depth + 1);
            map.insert(name.into(), value);
        }
        map.into()
    }
}

/// Joins a keyword of another schema: properties and required names add up, bounds become narrower.
fn join(schema: &mut Map, name: Arc<str>, value: Value) {
    let joined = match (&*name, schema.get(&name), &value) {
        ("properties", Some(Value::Map(own)), Value::Map(other)) => {
            let mut own = (**own).clone();
            for (name, property) in &**other {
                match own.get_mut(name) {
                    Some(known) => {
                        let both = Value::list([known.clone(), property.clone()]);
                        *known = Value::map([("allOf", both)]);
                    }
                    None => {
                        own.insert(Arc::clone(name), property.clone());
                    }
                }
            }
            own.into()
        }
        ("required", Some(Value::List(own)), Value::List(other)) => {
            Value::list(own.iter().chain(other.iter()).cloned())
        }
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems", Some(own), other) => {
            if own.as_number() > other.as_number() { own.clone() } else { other.clone() }
        }
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems", Some(own), other) => {
            if own.as_number() < other.as_number() { own.clone() } else { other.clone() }
        }
        ("title" | "description" | "default" | "$defs", Some(own), _) => own.clone(),
        _ => value,
    };
    schema.insert(name, joined);
}
