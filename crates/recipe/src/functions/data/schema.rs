//! Validates JSON against a JSON Schema. Nothing is read from files or the network: a `$ref` may only point into the
//! same schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value as Json};

use super::json::keyed;
use super::parsed;
use super::schema_rules::{self as rules, NAME_STEPS, Rule};
use crate::budget::CallBudget;
use crate::function::{Call, Fault};
use crate::functions::kernels::signature;
use crate::functions::text::{Caches, Pattern, PatternCompiler, shown};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::whole::{Body, whole};

/// The maximum number of patterns in a schema.
const PATTERNS_MOST: usize = 64;

/// The maximum nesting of schemas while a value is validated. `$ref` counts, because a schema may refer to itself.
const DEPTH_MOST: usize = 512;

/// The maximum number of violations in an error message.
const LISTED_MOST: usize = 20;

/// Keywords that would change the result and are not supported.
const UNSUPPORTED: [&str; 5] =
    ["unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef", "$anchor"];

pub(super) fn add(functions: &mut Functions) {
    let about = "Returns the input unchanged; fails if it is not JSON that matches the schema. `$ref` must \
        point into the same schema. `format` is not checked. Patterns are regular expressions in Rust's \
        syntax. Schemas with `unevaluatedItems`, `unevaluatedProperties`, `$dynamicRef`, `$recursiveRef` \
        or `$anchor` are refused.";
    functions.add(whole(
        keyed(signature("schema_validate/1.0.0", about))
            .needs("schema", ParamKind::Text, "a JSON Schema (2020-12, or draft 7) of at most 1 MiB")
            .compiles()
            .nanos_per_kib(30_000)
            .unlike_deriva(
                "A `$ref` to a file or a web page is an error; Deriva reads it. The keywords that are \
                 refused are errors, too. At most 20 violations are listed.",
            ),
        begin,
    ));
}

/// The maximum size of a schema in bytes.
const SCHEMA_MOST: usize = 1 << 20;

fn begin(call: &Call<'_>) -> Result<Body, Fault> {
    let text = call.text("schema")?;
    let wrong = |problem: String| Fault::param("schema", problem);
    if text.len() > SCHEMA_MOST {
        return Err(wrong(format!("has {} bytes; it may have {SCHEMA_MOST}", text.len())));
    }
    let schema = parsed(0, text.as_bytes(), call.budget).map_err(|fault| match fault {
        Fault::Input { problem, .. } => wrong(problem),
        other => other,
    })?;
    let mut compiling =
        CompilingPatterns { compiler: PatternCompiler::new(call, "schema"), patterns: Patterns::new() };
    check(&schema, &schema, "", call.budget, &mut compiling)?;
    let patterns = compiling.patterns;
    Ok(Box::new(move |mut inputs, budget| {
        let input = inputs.remove(0);
        let value = parsed(0, &input, budget)?;
        let mut validator = Validator { root: &schema, patterns, budget, found: Vec::new(), count: 0 };
        validator.validate(&schema, &value, &Place::Root, 0)?;
        validator.answer(input)
    }))
}

type Patterns = BTreeMap<String, (Pattern, Caches)>;

/// The patterns of a schema that is being checked.
struct CompilingPatterns<'a> {
    compiler: PatternCompiler<'a>,
    patterns: Patterns,
}

/// Checks a schema, and compiles its patterns.
fn check(
    schema: &Json,
    root: &Json,
    at: &str,
    budget: &CallBudget,
    compiling: &mut CompilingPatterns<'_>,
) -> Result<(), Fault> {
    budget.check()?;
    let wrong = |problem: String| Fault::param("schema", format!("at {at:?}: {problem}"));
    let keywords = match schema {
        Json::Bool(_) => return Ok(()),
        Json::Object(keywords) => keywords,
        other => {
            return Err(wrong(format!(
                "{} is not a schema: an object, true or false",
                shown(&other.to_string())
            )));
        }
    };
    if let Some(keyword) = UNSUPPORTED.iter().find(|keyword| keywords.contains_key(**keyword)) {
        return Err(wrong(format!("`{keyword}` is not supported")));
    }
    let mut texts: Vec<&str> = Vec::new();
    for (keyword, value) in keywords {
        match &**keyword {
            "$ref" => {
                let target = value.as_str().ok_or_else(|| wrong("`$ref` is not a text".to_owned()))?;
                referred(root, target).ok_or_else(|| {
                    wrong(format!(
                        "`$ref` {} is not a place in this schema, as `#/$defs/name`",
                        shown(target)
                    ))
                })?;
            }
            "pattern" => {
                texts.push(value.as_str().ok_or_else(|| wrong("`pattern` is not a text".to_owned()))?);
            }
            "patternProperties" => {
                texts.extend(value.as_object().into_iter().flat_map(Map::keys).map(String::as_str));
            }
            _ => {}
        }
        rules::check(keyword, value).map_err(wrong)?;
    }
    let CompilingPatterns { compiler, patterns } = compiling;
    for text in texts {
        if !patterns.contains_key(text) {
            let pattern = compiler.compile(text)?;
            patterns.insert(text.to_owned(), (pattern, Caches::default()));
        }
        if patterns.len() > PATTERNS_MOST {
            return Err(wrong(format!("there are more than {PATTERNS_MOST} patterns")));
        }
    }
    for (name, inside) in rules::schemas(keywords) {
        check(inside, root, &format!("{at}/{name}"), budget, compiling)?;
    }
    Ok(())
}

/// The schema that a `$ref` points to.
fn referred<'a>(root: &'a Json, target: &str) -> Option<&'a Json> {
    root.pointer(target.strip_prefix('#')?)
}

/// The position of a value in the input.
pub(super) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn pointer(&self) -> String {
        match self {
            Place::Root => String::new(),
            Place::Key(outer, key) => {
                format!("{}/{}", outer.pointer(), key.replace('~', "~0").replace('/', "~1"))
            }
            Place::Index(outer, index) => format!("{}/{index}", outer.pointer()),
        }
    }
}

/// A keyword of a schema, and the keywords beside it.
#[derive(Clone, Copy)]
struct Keyword<'a> {
    name: &'a str,
    rule: &'a Json,
    beside: &'a Map<String, Json>,
}

struct Validator<'a> {
    root: &'a Json,
    patterns: Patterns,
    budget: &'a Arc<CallBudget>,
    /// The first violations, at most [`LISTED_MOST`].
    found: Vec<String>,
    count: u64,
}

impl Validator<'_> {
    fn answer(self, input: Bytes) -> Result<Bytes, Fault> {
        if self.count == 0 {
            return Ok(input);
        }
        let mut listed = self.found.join("; ");
        match self.count - self.found.len() as u64 {
            0 => {}
            more => listed.push_str(&format!("; and {more} more")),
        }
        Err(Fault::input(0, format!("is not as the schema says: {listed}")))
    }

    fn note(&mut self, place: &Place<'_>, problem: &str) {
        self.count += 1;
        if self.found.len() < LISTED_MOST {
            self.found.push(format!("at {:?}: {problem}", place.pointer()));
        }
    }

    /// Whether a schema allows a value. Violations are not recorded.
    fn allows(
        &mut self,
        schema: &Json,
        value: &Json,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<bool, Fault> {
        let (found, count) = (self.found.len(), self.count);
        self.validate(schema, value, place, depth + 1)?;
        let allowed = self.count == count;
        self.found.truncate(found);
        self.count = count;
        Ok(allowed)
    }

    fn validate(
        &mut self,
        schema: &Json,
        value: &Json,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), Fault> {
        self.budget.check()?;
        if depth > DEPTH_MOST {
            let problem = format!(
                "more than {DEPTH_MOST} schemas are inside of each other; a `$ref` may go in circles"
            );
            return Err(Fault::param("schema", problem));
        }
        let keywords = match schema {
            Json::Object(keywords) => keywords,
            Json::Bool(false) => {
                self.note(place, "nothing is allowed here");
                return Ok(());
            }
            _ => return Ok(()),
        };
        for (keyword, rule) in keywords {
            match rules::judge(keyword, rule, value, self.budget)? {
                Rule::Kept => {}
                Rule::Broken(problem) => self.note(place, &problem),
                Rule::Inside => {
                    let keyword = Keyword { name: keyword, rule, beside: keywords };
                    self.inside(keyword, value, place, depth)?;
                }
            }
        }
        Ok(())
    }

    /// Validates a value against a keyword that contains schemas or patterns.
    fn inside(
        &mut self,
        keyword: Keyword<'_>,
        value: &Json,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), Fault> {
        let deeper = depth + 1;
        let Keyword { rule, .. } = keyword;
        match (keyword.name, value) {
            ("$ref", _) => {
                let target = rule.as_str().and_then(|target| referred(self.root, target));
                self.validate(target.expect("references were checked"), value, place, deeper)
            }
            ("pattern", Json::String(text)) => {
                let pattern = rule.as_str().expect("patterns were checked");
                if !self.matches(pattern, text)? {
                    self.note(place, &format!("{} does not match {}", shown(text), shown(pattern)));
                }
                Ok(())
            }
            ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "dependentSchemas" | "dependencies", _) => {
                self.combined(keyword, value, place, deeper)
            }
            (_, Json::Array(values)) => self.elements(keyword, values, place, deeper),
            (_, Json::Object(values)) => self.entries(keyword, values, place, deeper),
            _ => Ok(()),
        }
    }

    fn combined(
        &mut self,
        keyword: Keyword<'_>,
        value: &Json,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), Fault> {
        let Keyword { name: keyword, rule, beside } = keyword;
        let schemas = rule.as_array().map_or(&[][..], Vec::as_slice);
        match keyword {
            "allOf" => {
                for schema in schemas {
                    self.validate(schema, value, place, depth)?;
                }
            }
            "dependentSchemas" | "dependencies" => {
                for (name, schema) in rule.as_object().into_iter().flatten() {
                    self.budget.work(NAME_STEPS)?;
                    if value.get(name).is_some() && !schema.is_array() {
                        self.validate(schema, value, place, depth)?;
                    }
                }
            }
            "not" => {
                if self.allows(rule, value, place, depth)? {
                    self.note(place, "the schema of `not` allows it");
                }
            }
            "if" => {
                let next = if self.allows(rule, value, place, depth)? { "then" } else { "else" };
                if let Some(schema) = beside.get(next) {
                    self.validate(schema, value, place, depth)?;
                }
            }
            _ => {
                let mut allowed = 0;
                for schema in schemas {
                    allowed += usize::from(self.allows(schema, value, place, depth)?);
                }
                if allowed == 0 {
                    self.note(place, &format!("no schema of `{keyword}` allows it"));
                } else if allowed > 1 && keyword == "oneOf" {
                    self.note(place, &format!("{allowed} schemas of `oneOf` allow it"));
                }
            }
        }
        Ok(())
    }

    fn elements(
        &mut self,
        keyword: Keyword<'_>,
        values: &[Json],
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), Fault> {
        let Keyword { name: keyword, rule, beside } = keyword;
        let first = |keyword: &str| beside.get(keyword).and_then(Json::as_array).map(Vec::len);
        // In draft 7, `items` may be a list of schemas, and `additionalItems` is the schema for the remaining elements.
        let from = match (keyword, rule) {
            ("prefixItems", _) | ("items", Json::Array(_)) => {
                for (index, (schema, value)) in rule.as_array().into_iter().flatten().zip(values).enumerate()
                {
                    self.validate(schema, value, &Place::Index(place, index), depth)?;
                }
                return Ok(());
            }
            ("items", _) => first("prefixItems").unwrap_or(0),
            ("additionalItems", _) => first("items").unwrap_or(values.len()),
            ("contains", _) => {
                let mut count = 0;
                for (index, value) in values.iter().enumerate() {
                    count += u64::from(self.allows(rule, value, &Place::Index(place, index), depth)?);
                }
                let bound = |keyword| beside.get(keyword).and_then(Json::as_u64);
                let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains"));
                if count < least || most.is_some_and(|most| count > most) {
                    self.note(place, &format!("{count} elements are as `contains` says"));
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        for (index, value) in values.iter().enumerate().skip(from) {
            self.validate(rule, value, &Place::Index(place, index), depth)?;
        }
        Ok(())
    }

    fn entries(
        &mut self,
        keyword: Keyword<'_>,
        values: &Map<String, Json>,
        place: &Place<'_>,
        depth: usize,
    ) -> Result<(), Fault> {
        let Keyword { name: keyword, rule, beside } = keyword;
        let entries = |keyword: &str| beside.get(keyword).and_then(Json::as_object);
        match keyword {
            "properties" => {
                for (name, schema) in rule.as_object().into_iter().flatten() {
                    self.budget.work(NAME_STEPS)?;
                    if let Some(value) = values.get(name) {
                        self.validate(schema, value, &Place::Key(place, name), depth)?;
                    }
                }
            }
            "patternProperties" => {
                for (pattern, schema) in rule.as_object().into_iter().flatten() {
                    for (name, value) in values {
                        if self.matches(pattern, name)? {
                            self.validate(schema, value, &Place::Key(place, name), depth)?;
                        }
                    }
                }
            }
            "additionalProperties" => {
                for (name, value) in values {
                    self.budget.work(NAME_STEPS)?;
                    let mut known = entries("properties").is_some_and(|names| names.contains_key(name));
                    for pattern in entries("patternProperties").into_iter().flat_map(Map::keys) {
                        known = known || self.matches(pattern, name)?;
                    }
                    if !known {
                        self.validate(rule, value, &Place::Key(place, name), depth)?;
                    }
                }
            }
            "propertyNames" => {
                for name in values.keys() {
                    self.validate(rule, &Json::from(name.as_str()), &Place::Key(place, name), depth)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn matches(&mut self, pattern: &str, text: &str) -> Result<bool, Fault> {
        let (pattern, caches) = self.patterns.get_mut(pattern).expect("patterns were compiled");
        pattern.is_match(caches, text, self.budget)
    }
}
