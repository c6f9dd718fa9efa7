//! Compiles a schema to nodes.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_value::{Map, Value};
use regex::{Regex, RegexBuilder};

use super::{Additional, Condition, Contains, Node, NodeId, Schema, SchemaError, Types};

/// Schemas within a schema.
const MOST: usize = 20_000;
const DEEPEST: usize = 200;
/// Patterns within a schema. Each takes up to [`COMPILED_MOST`] bytes.
const PATTERNS_MOST: usize = 100;
/// The bytes of a pattern. Compiling cannot be interrupted, and a class such as `\pL` is long.
pub(crate) const PATTERN_MOST: usize = 1 << 10;
const COMPILED_MOST: usize = 1 << 20;

pub(super) fn compile(schema: &Value) -> Result<Schema, SchemaError> {
    let mut compiler = Compiler { root: schema, nodes: Vec::new(), by_pointer: HashMap::new(), patterns: 0 };
    let root = compiler.node(schema, "#", 0)?;
    Ok(Schema { nodes: compiler.nodes, root })
}

/// The schema that a local `$ref` names.
pub(crate) fn resolve_ref<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    let Some(path) = pointer.strip_prefix('/') else { return anchored(root, pointer, 0) };
    path.split('/').try_fold(root, |value, step| {
        let step = percent_decoded(step).replace("~1", "/").replace("~0", "~");
        match value {
            Value::List(values) => values.get(step.parse::<usize>().ok()?),
            value => value.get(&step),
        }
    })
}

fn anchored<'a>(schema: &'a Value, anchor: &str, depth: usize) -> Option<&'a Value> {
    if depth > DEEPEST {
        return None;
    }
    match schema {
        Value::Map(map) if map.get("$anchor").and_then(Value::as_text) == Some(anchor) => Some(schema),
        Value::Map(map) => map.values().find_map(|part| anchored(part, anchor, depth + 1)),
        Value::List(parts) => parts.iter().find_map(|part| anchored(part, anchor, depth + 1)),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or("").as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Compiler<'a> {
    root: &'a Value,
    nodes: Vec<Node>,
    /// Nodes of `$ref`s, so that a schema may contain itself.
    by_pointer: HashMap<String, NodeId>,
    patterns: usize,
}

/// The keywords of one schema, with its place for messages.
struct Keywords<'a> {
    map: &'a Map,
    path: &'a str,
}

impl Compiler<'_> {
    fn node(&mut self, schema: &Value, path: &str, depth: usize) -> Result<NodeId, SchemaError> {
        let id = self.reserve(path, depth)?;
        self.fill(id, schema, path, depth)?;
        Ok(id)
    }

    /// A place for a node that may read itself.
    fn reserve(&mut self, path: &str, depth: usize) -> Result<NodeId, SchemaError> {
        let id = NodeId(self.nodes.len());
        if id.0 >= MOST || depth > DEEPEST {
            return Err(wrong(path, "the schema is too large or too deep"));
        }
        self.nodes.push(Node::default());
        Ok(id)
    }

    fn fill(&mut self, id: NodeId, schema: &Value, path: &str, depth: usize) -> Result<(), SchemaError> {
        let node = match schema {
            Value::Bool(truth) => Node { never: !truth, ..Node::default() },
            Value::Map(map) => {
                let keywords = Keywords { map, path };
                keywords.refuse_unknown()?;
                let mut node = keywords.scalars()?;
                if let Some(pattern) = keywords.pattern()? {
                    node.pattern = Some(self.regex(pattern, &keywords.at("pattern"))?);
                }
                self.lists(&mut node, &keywords, depth)?;
                self.objects(&mut node, &keywords, depth)?;
                self.combined(&mut node, &keywords, depth)?;
                node
            }
            other => {
                return Err(wrong(path, &format!("a schema is a map, true or false, not {}", other.kind())));
            }
        };
        self.nodes[id.0] = node;
        Ok(())
    }

    fn sub(
        &mut self,
        keywords: &Keywords<'_>,
        name: &str,
        depth: usize,
    ) -> Result<Option<NodeId>, SchemaError> {
        let Some(schema) = keywords.map.get(name) else { return Ok(None) };
        self.node(schema, &keywords.at(name), depth + 1).map(Some)
    }

    fn subs(
        &mut self,
        keywords: &Keywords<'_>,
        name: &str,
        depth: usize,
    ) -> Result<Vec<NodeId>, SchemaError> {
        let Some(schemas) = keywords.list(name)? else { return Ok(Vec::new()) };
        let path = keywords.at(name);
        let numbered = schemas.iter().enumerate();
        numbered.map(|(at, schema)| self.node(schema, &format!("{path}/{at}"), depth + 1)).collect()
    }

    fn lists(&mut self, node: &mut Node, keywords: &Keywords<'_>, depth: usize) -> Result<(), SchemaError> {
        node.prefix = self.subs(keywords, "prefixItems", depth)?;
        if matches!(keywords.map.get("items"), Some(Value::List(_))) {
            // The form of older drafts.
            node.prefix = self.subs(keywords, "items", depth)?;
            node.items = self.sub(keywords, "additionalItems", depth)?;
        } else {
            node.items = self.sub(keywords, "items", depth)?;
        }
        if let Some(inner) = self.sub(keywords, "contains", depth)? {
            let min = keywords.count("minContains")?.unwrap_or(1);
            node.contains = Some(Contains { node: inner, min, max: keywords.count("maxContains")? });
        }
        Ok(())
    }

    fn regex(&mut self, pattern: &str, place: &str) -> Result<Regex, SchemaError> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MOST {
            return Err(wrong(place, &format!("a schema may have {PATTERNS_MOST} patterns, and has more")));
        }
        if pattern.len() > PATTERN_MOST {
            let bytes = pattern.len();
            return Err(wrong(place, &format!("the pattern has {bytes} bytes, and may have {PATTERN_MOST}")));
        }
        let built = RegexBuilder::new(pattern).size_limit(COMPILED_MOST).build();
        built.map_err(|error| {
            let last = error.to_string().lines().last().unwrap_or("").trim().to_owned();
            wrong(place, &format!("the pattern cannot be used: {last}"))
        })
    }

    fn objects(&mut self, node: &mut Node, keywords: &Keywords<'_>, depth: usize) -> Result<(), SchemaError> {
        for (name, schema) in keywords.named("properties")? {
            let path = format!("{}/{name}", keywords.at("properties"));
            node.properties.push((Arc::clone(name), self.node(schema, &path, depth + 1)?));
        }
        for (pattern, schema) in keywords.named("patternProperties")? {
            let path = format!("{}/{pattern}", keywords.at("patternProperties"));
            node.pattern_properties.push((self.regex(pattern, &path)?, self.node(schema, &path, depth + 1)?));
        }
        node.additional = match keywords.map.get("additionalProperties") {
            None => Additional::Unsaid,
            Some(Value::Bool(false)) => Additional::Removed,
            Some(schema) => {
                Additional::Kept(self.node(schema, &keywords.at("additionalProperties"), depth + 1)?)
            }
        };
        node.property_names = self.sub(keywords, "propertyNames", depth)?;
        node.required = keywords.names("required")?;
        for (name, names) in keywords.named("dependentRequired")? {
            let path = keywords.at("dependentRequired");
            let inner = Map::from_iter([(Arc::clone(name), names.clone())]);
            let names = Keywords { map: &inner, path: &path }.names(name)?;
            node.dependent_required.push((Arc::clone(name), names));
        }
        Ok(())
    }

    fn combined(
        &mut self,
        node: &mut Node,
        keywords: &Keywords<'_>,
        depth: usize,
    ) -> Result<(), SchemaError> {
        node.all_of = self.subs(keywords, "allOf", depth)?;
        node.any_of = self.subs(keywords, "anyOf", depth)?;
        node.one_of = self.subs(keywords, "oneOf", depth)?;
        node.not = self.sub(keywords, "not", depth)?;
        if let Some(test) = self.sub(keywords, "if", depth)? {
            let then = self.sub(keywords, "then", depth)?;
            node.condition = Some(Condition { test, then, otherwise: self.sub(keywords, "else", depth)? });
        }
        if let Some(reference) = keywords.map.get("$ref") {
            let place = keywords.at("$ref");
            let pointer = reference.as_text().ok_or_else(|| wrong(&place, "should be text"))?;
            let known = self.by_pointer.get(pointer).copied();
            let target = match known {
                Some(target) => target,
                None => self.referenced(pointer, &place, depth)?,
            };
            node.all_of.push(target);
        }
        Ok(())
    }

    fn referenced(&mut self, pointer: &str, place: &str, depth: usize) -> Result<NodeId, SchemaError> {
        let schema = resolve_ref(self.root, pointer).ok_or_else(|| {
            let how = "only places in the same schema can be named, such as `#/$defs/Name`";
            wrong(place, &format!("`{pointer}` is not found; {how}"))
        })?;
        let target = self.reserve(place, depth)?;
        self.by_pointer.insert(pointer.to_owned(), target);
        self.fill(target, schema, pointer, depth + 1)?;
        Ok(target)
    }
}

impl<'a> Keywords<'a> {
    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Keywords that change the meaning and are not taken. Others that are not known only annotate.
    fn refuse_unknown(&self) -> Result<(), SchemaError> {
        const NOT_TAKEN: [&str; 6] = [
            "$dynamicRef",
            "$recursiveRef",
            "unevaluatedProperties",
            "unevaluatedItems",
            "dependencies",
            "dependentSchemas",
        ];
        match NOT_TAKEN.iter().find(|name| self.map.contains_key(**name)) {
            Some(name) => Err(wrong(&self.at(name), "this keyword is not supported")),
            None => Ok(()),
        }
    }

    fn scalars(&self) -> Result<Node, SchemaError> {
        let mut node = Node {
            types: self.types()?,
            minimum: self.number("minimum")?,
            maximum: self.number("maximum")?,
            above: self.number("exclusiveMinimum")?,
            below: self.number("exclusiveMaximum")?,
            multiple_of: self.number("multipleOf")?,
            min_length: self.count("minLength")?,
            max_length: self.count("maxLength")?,
            min_items: self.count("minItems")?,
            max_items: self.count("maxItems")?,
            min_properties: self.count("minProperties")?,
            max_properties: self.count("maxProperties")?,
            unique: self.map.get("uniqueItems") == Some(&Value::Bool(true)),
            ..Node::default()
        };
        node.allowed = self.list("enum")?.map(<[Value]>::to_vec);
        if let Some(value) = self.map.get("const") {
            node.allowed = Some(vec![value.clone()]);
        }
        Ok(node)
    }

    fn pattern(&self) -> Result<Option<&'a str>, SchemaError> {
        let Some(pattern) = self.map.get("pattern") else { return Ok(None) };
        pattern.as_text().map(Some).ok_or_else(|| wrong(&self.at("pattern"), "should be text"))
    }

    fn types(&self) -> Result<Option<Types>, SchemaError> {
        let Some(value) = self.map.get("type") else { return Ok(None) };
        let names = match value {
            Value::List(names) => names,
            name => std::slice::from_ref(name),
        };
        let mut types = Types::default();
        for name in names {
            let named = name.as_text().and_then(Types::named);
            let expected = Types::NAMES.join(", ");
            types = types
                .with(named.ok_or_else(|| wrong(&self.at("type"), &format!("should be one of {expected}")))?);
        }
        Ok(Some(types))
    }

    fn number(&self, name: &str) -> Result<Option<f64>, SchemaError> {
        let Some(value) = self.map.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        value.as_number().map(Some).ok_or_else(|| wrong(&self.at(name), "should be a number"))
    }

    fn count(&self, name: &str) -> Result<Option<u64>, SchemaError> {
        let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
        let Some(number) = self.number(name)? else { return Ok(None) };
        whole(number).map(Some).ok_or_else(|| wrong(&self.at(name), "should be a whole number from 0"))
    }

    fn list(&self, name: &str) -> Result<Option<&'a [Value]>, SchemaError> {
        let Some(value) = self.map.get(name) else { return Ok(None) };
        value.as_list().map(Some).ok_or_else(|| wrong(&self.at(name), "should be a list"))
    }

    fn names(&self, name: &str) -> Result<Vec<Arc<str>>, SchemaError> {
        let texts = self.list(name)?.unwrap_or_default().iter();
        let text = |value: &Value| value.as_text().map(Into::into);
        texts
            .map(|value| text(value).ok_or_else(|| wrong(&self.at(name), "should be a list of texts")))
            .collect()
    }

    fn named(&self, name: &str) -> Result<Vec<(&'a Arc<str>, &'a Value)>, SchemaError> {
        let Some(value) = self.map.get(name) else { return Ok(Vec::new()) };
        let map = value.as_map().ok_or_else(|| wrong(&self.at(name), "should be a map"))?;
        Ok(map.iter().collect())
    }
}

fn wrong(path: &str, what: &str) -> SchemaError {
    SchemaError { path: path.to_owned(), what: what.to_owned() }
}
