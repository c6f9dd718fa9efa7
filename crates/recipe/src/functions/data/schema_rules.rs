//! The JSON Schema keywords that depend on one value alone, and the positions of subschemas in a schema.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value as Json};

use super::equal::{self, compare_numbers, is_same};
use crate::budget::CallBudget;
use crate::function::Fault;
use crate::functions::text::shown;

/// The steps of work to look up a name.
pub(super) const NAME_STEPS: u64 = 32;

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
pub(super) fn judge(keyword: &str, rule: &Json, value: &Json, budget: &CallBudget) -> Result<Rule, Fault> {
    let broken = match keyword {
        "type" => {
            let names = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
            budget.work(names.len() as u64)?;
            let fits = names.iter().any(|name| name.as_str().is_some_and(|name| is_of(name, value)));
            (!fits).then(|| format!("{} is not of type {rule}", brief(value)))
        }
        "enum" => {
            let mut there = false;
            for one in rule.as_array().into_iter().flatten() {
                there = there || is_same(one, value, budget)?;
            }
            (!there).then(|| format!("{} is not one of {}", brief(value), brief(rule)))
        }
        "const" => {
            (!is_same(rule, value, budget)?).then(|| format!("{} is not {}", brief(value), brief(rule)))
        }
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
        | "dependentSchemas" => return Ok(Rule::Inside),
        "dependencies" => {
            return Ok(dependent(rule, value, budget)?.map_or(Rule::Inside, Rule::Broken));
        }
        "dependentRequired" => dependent(rule, value, budget)?,
        _ => match value {
            Json::Number(number) => of_number(keyword, rule, number),
            Json::String(text) => bounded(keyword, rule, "Length", text.chars().count(), "characters"),
            Json::Array(values) => of_list(keyword, rule, values, budget)?,
            Json::Object(values) => of_object(keyword, rule, values, budget)?,
            Json::Null | Json::Bool(_) => None,
        },
    };
    Ok(broken.map_or(Rule::Kept, Rule::Broken))
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

fn of_list(
    keyword: &str,
    rule: &Json,
    values: &[Json],
    budget: &CallBudget,
) -> Result<Option<String>, Fault> {
    if keyword == "uniqueItems" && rule == &Json::Bool(true) {
        let twice = equal::twice(values, budget)?;
        return Ok(twice.map(|value| format!("{} is there twice", brief(value))));
    }
    Ok(bounded(keyword, rule, "Items", values.len(), "elements"))
}

fn of_object(
    keyword: &str,
    rule: &Json,
    values: &Map<String, Json>,
    budget: &CallBudget,
) -> Result<Option<String>, Fault> {
    if keyword == "required" {
        let missing = missing(rule, values, budget)?;
        return Ok(missing.map(|name| format!("{} is missing", shown(name))));
    }
    Ok(bounded(keyword, rule, "Properties", values.len(), "entries"))
}

/// The first of these names that is not in an object.
fn missing<'a>(
    names: &'a Json,
    values: &Map<String, Json>,
    budget: &CallBudget,
) -> Result<Option<&'a str>, Fault> {
    let names = names.as_array().map_or(&[][..], Vec::as_slice);
    budget.work(NAME_STEPS * names.len() as u64)?;
    Ok(names.iter().filter_map(Json::as_str).find(|name| !values.contains_key(*name)))
}

/// Checks `dependentRequired`: names that must be present if another name is.
fn dependent(rule: &Json, value: &Json, budget: &CallBudget) -> Result<Option<String>, Fault> {
    let Json::Object(values) = value else { return Ok(None) };
    for (name, names) in rule.as_object().into_iter().flatten() {
        budget.work(NAME_STEPS)?;
        if values.contains_key(name)
            && let Some(missing) = missing(names, values, budget)?
        {
            return Ok(Some(format!("{} is missing, which {} needs", shown(missing), shown(name))));
        }
    }
    Ok(None)
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
