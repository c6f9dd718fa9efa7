//! The JSON Schema keywords that depend on one value alone, and the positions of subschemas in a schema.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value as Json};

use crate::functions::text::shown;

/// The outcome of one keyword for one value.
pub(super) enum Rule {
    /// The keyword allows the value, or does not apply to it.
    Kept,
    Broken(String),
    /// The keyword contains schemas or patterns, which the caller must check.
    Inside,
}

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Checks the value of a keyword.
pub(super) fn check(keyword: &str, rule: &Json) -> Result<(), String> {
    let (allowed, is_allowed) = match keyword {
        "type" => ("the name of a type, or a list of such", {
            let is_type = |name: &Json| name.as_str().is_some_and(|name| TYPES.contains(&name));
            is_type(rule) || rule.as_array().is_some_and(|names| names.iter().all(is_type))
        }),
        "enum" | "allOf" | "anyOf" | "oneOf" | "prefixItems" => ("a list", rule.is_array()),
        "required" => ("a list of texts", is_texts(rule)),
        "multipleOf" => ("a number above 0", rule.as_f64().is_some_and(|number| number > 0.0)),
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => ("a number", rule.is_number()),
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
        | "minContains" | "maxContains" => ("a whole number, 0 or more", rule.is_u64()),
        "uniqueItems" => ("true or false", rule.is_boolean()),
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
        | "definitions" => ("an object", rule.is_object()),
        "dependentRequired" => (
            "an object of lists of texts",
            rule.as_object().is_some_and(|lists| lists.values().all(is_texts)),
        ),
        _ => return Ok(()),
    };
    match is_allowed {
        true => Ok(()),
        false => Err(format!("`{keyword}` is not {allowed}")),
    }
}

fn is_texts(value: &Json) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Json::is_string))
}

/// The subschemas of a schema, with their paths.
pub(super) fn schemas(keywords: &Map<String, Json>) -> Vec<(String, &Json)> {
    let mut inside = Vec::new();
    for (keyword, rule) in keywords {
        match (&**keyword, rule) {
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Json::Array(schemas)) => {
                let place = |(index, schema)| (format!("{keyword}/{index}"), schema);
                inside.extend(schemas.iter().enumerate().map(place));
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames",
                schema,
            ) => inside.push((keyword.clone(), schema)),
            (
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
                | "definitions",
                Json::Object(schemas),
            ) => {
                let schemas = schemas.iter().filter(|(_, schema)| !schema.is_array());
                inside.extend(schemas.map(|(name, schema)| (format!("{keyword}/{name}"), schema)));
            }
            _ => {}
        }
    }
    inside
}

/// Checks a value against one keyword.
pub(super) fn judge(keyword: &str, rule: &Json, value: &Json) -> Rule {
    let broken = match keyword {
        "type" => {
            let names = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
            let fits = names.iter().any(|name| name.as_str().is_some_and(|name| is_of(name, value)));
            (!fits).then(|| format!("{} is not of type {rule}", brief(value)))
        }
        "enum" => {
            let there = rule.as_array().is_some_and(|values| values.iter().any(|one| is_same(one, value)));
            (!there).then(|| format!("{} is not one of {}", brief(value), brief(rule)))
        }
        "const" => (!is_same(rule, value)).then(|| format!("{} is not {}", brief(value), brief(rule))),
        "$ref"
        | "pattern"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "prefixItems"
        | "items"
        | "additionalItems"
        | "contains"
        | "properties"
        | "patternProperties"
        | "additionalProperties"
        | "propertyNames"
        | "dependentSchemas" => return Rule::Inside,
        "dependencies" => match dependent(rule, value) {
            Some(problem) => return Rule::Broken(problem),
            None => return Rule::Inside,
        },
        "dependentRequired" => dependent(rule, value),
        _ => match value {
            Json::Number(number) => of_number(keyword, rule, number),
            Json::String(text) => bounded(keyword, rule, "Length", text.chars().count(), "characters"),
            Json::Array(values) => of_list(keyword, rule, values),
            Json::Object(values) => of_object(keyword, rule, values),
            Json::Null | Json::Bool(_) => None,
        },
    };
    broken.map_or(Rule::Kept, Rule::Broken)
}

fn is_of(name: &str, value: &Json) -> bool {
    match (name, value) {
        ("array", Json::Array(_))
        | ("boolean", Json::Bool(_))
        | ("null", Json::Null)
        | ("number", Json::Number(_))
        | ("object", Json::Object(_))
        | ("string", Json::String(_)) => true,
        ("integer", Json::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    }
}

fn of_number(keyword: &str, rule: &Json, number: &Number) -> Option<String> {
    let Json::Number(bound) = rule else { return None };
    let order = compare_numbers(number, bound);
    let (kept, problem) = match keyword {
        "maximum" => (order != Ordering::Greater, "more than"),
        "exclusiveMaximum" => (order == Ordering::Less, "not less than"),
        "minimum" => (order != Ordering::Less, "less than"),
        "exclusiveMinimum" => (order == Ordering::Greater, "not more than"),
        "multipleOf" => (is_multiple(number, bound), "not a multiple of"),
        _ => return None,
    };
    (!kept).then(|| format!("{number} is {problem} {bound}"))
}

fn is_multiple(number: &Number, of: &Number) -> bool {
    match (number.as_i128(), of.as_i128()) {
        (Some(number), Some(of)) if of > 0 => number % of == 0,
        _ => {
            let quotient = number.as_f64().unwrap_or(f64::NAN) / of.as_f64().unwrap_or(f64::NAN);
            quotient.is_finite() && quotient.fract() == 0.0
        }
    }
}

/// Checks a length against a keyword of the form `min...` or `max...`.
fn bounded(keyword: &str, rule: &Json, what: &str, len: usize, noun: &str) -> Option<String> {
    let bound = rule.as_u64()?;
    match keyword.strip_suffix(what)? {
        "max" if len as u64 > bound => Some(format!("has {len} {noun}; it may have {bound}")),
        "min" if (len as u64) < bound => Some(format!("has {len} {noun}; it must have {bound}")),
        _ => None,
    }
}

fn of_list(keyword: &str, rule: &Json, values: &[Json]) -> Option<String> {
    if keyword == "uniqueItems" && rule == &Json::Bool(true) {
        let mut sorted: Vec<&Json> = values.iter().collect();
        sorted.sort_unstable_by(|one, other| compare(one, other));
        let twice = sorted.windows(2).find(|pair| is_same(pair[0], pair[1]))?;
        return Some(format!("{} is there twice", brief(twice[0])));
    }
    bounded(keyword, rule, "Items", values.len(), "elements")
}

fn of_object(keyword: &str, rule: &Json, values: &Map<String, Json>) -> Option<String> {
    if keyword == "required" {
        let names = rule.as_array().into_iter().flatten().filter_map(Json::as_str);
        return missing(names, values).map(|name| format!("{} is missing", shown(name)));
    }
    bounded(keyword, rule, "Properties", values.len(), "entries")
}

fn missing<'a>(mut names: impl Iterator<Item = &'a str>, values: &Map<String, Json>) -> Option<&'a str> {
    names.find(|name| !values.contains_key(*name))
}

/// Checks `dependentRequired`: names that must be present if another name is.
fn dependent(rule: &Json, value: &Json) -> Option<String> {
    let values = value.as_object()?;
    for (name, names) in rule.as_object().into_iter().flatten().filter(|(name, _)| values.contains_key(*name))
    {
        let names = names.as_array().into_iter().flatten().filter_map(Json::as_str);
        if let Some(missing) = missing(names, values) {
            return Some(format!("{} is missing, which {} needs", shown(missing), shown(name)));
        }
    }
    None
}

/// A value in short form, for a message.
fn brief(value: &Json) -> String {
    match value {
        Json::String(text) => shown(text),
        Json::Array(values) if values.len() <= 8 && !values.iter().any(|value| value.is_array()) => {
            format!("[{}]", values.iter().map(brief).collect::<Vec<_>>().join(", "))
        }
        Json::Array(values) => format!("a list of {}", values.len()),
        Json::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}

fn is_same(one: &Json, other: &Json) -> bool {
    compare(one, other) == Ordering::Equal
}

/// An order of JSON values in which 1 and 1.0 are equal.
fn compare(one: &Json, other: &Json) -> Ordering {
    let kind = |value: &Json| match value {
        Json::Null => 0,
        Json::Bool(_) => 1,
        Json::Number(_) => 2,
        Json::String(_) => 3,
        Json::Array(_) => 4,
        Json::Object(_) => 5,
    };
    match (one, other) {
        (Json::Bool(one), Json::Bool(other)) => one.cmp(other),
        (Json::Number(one), Json::Number(other)) => compare_numbers(one, other),
        (Json::String(one), Json::String(other)) => one.cmp(other),
        (Json::Array(one), Json::Array(other)) => {
            let pairs = one.iter().zip(other).map(|(one, other)| compare(one, other));
            pairs.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        }
        (Json::Object(one), Json::Object(other)) => {
            let pairs = one.iter().zip(other);
            let order = |((key, value), (other_key, other))| {
                Ord::cmp(key, other_key).then_with(|| compare(value, other))
            };
            pairs.map(order).fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        }
        _ => kind(one).cmp(&kind(other)),
    }
}

fn compare_numbers(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => {
            let [one, other] = [one, other].map(|number| number.as_f64().unwrap_or(f64::NAN));
            // Adding 0.0 makes zero and minus zero equal.
            (one + 0.0).total_cmp(&(other + 0.0))
        }
    }
}
