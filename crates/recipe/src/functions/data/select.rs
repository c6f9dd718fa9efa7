//! Functions that select one value from a document.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value as Json;

use super::json::keyed;
use super::toml::Dates;
use super::{compact, parsed, toml, yaml};
use crate::budget::CallBudget;
use crate::function::{Call, Fault};
use crate::functions::kernels::signature;
use crate::functions::text::shown;
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::{Body, whole};

pub(super) fn add(functions: &mut Functions) {
    functions.add(whole(
        select(signature("json_select/1", "The value at a place in the JSON, as JSON without white space.")),
        |call| selecting(call, |input, budget| parsed(0, input, budget)),
    ));
    let mut from_yaml =
        signature("yaml_select/1", "The value at a place in the YAML, as JSON without white space.");
    from_yaml.about.to_mut().push_str(yaml::YAML);
    functions.add(whole(select(from_yaml).nanos_per_kib(yaml::COST), |call| selecting(call, yaml::read)));
    let from_toml = signature(
        "toml_select/1",
        "The value at a place in the TOML, as JSON without white space; dates and times are texts.",
    );
    functions.add(whole(select(from_toml), |call| {
        selecting(call, |input, budget| toml::read(input, Dates::Text, budget))
    }));
}

fn select(signature: Signature) -> Signature {
    keyed(signature)
        .needs(
            "path",
            ParamKind::Text,
            "the place: a JSON pointer (`/users/0/name`; empty for the whole document), or names and \
             indexes (`users[0].name`, `[\"a name\"]`)",
        )
        .may("as", ParamKind::one_of(&["json", "text"]), "json", "`text` returns a text without its quotes")
        .nanos_per_kib(15_000)
}

fn selecting(
    call: &Call<'_>,
    read: fn(&Bytes, &Arc<CallBudget>) -> Result<Json, Fault>,
) -> Result<Body, Fault> {
    let steps = steps(call.text("path")?)?;
    let as_text = call.text("as")? == "text";
    Ok(Box::new(move |inputs, budget| {
        let mut value = read(&inputs[0], budget)?;
        for (index, step) in steps.iter().enumerate() {
            value = step.take(value).map_err(|problem| {
                let before: String = steps[..index].iter().map(Step::pointer).collect();
                Fault::input(0, format!("at {before:?}: {problem}"))
            })?;
        }
        match value {
            Json::String(text) if as_text => Ok(text.into()),
            other => compact(&other, budget),
        }
    }))
}

/// One step from a value to a value inside it.
enum Step {
    /// A part of a JSON pointer: a key of an object, or an index of a list.
    Any(String),
    Key(String),
    Index(usize),
}

impl Step {
    fn take(&self, value: Json) -> Result<Json, String> {
        let index = match (self, &value) {
            (Step::Index(index), _) => Some(*index),
            (Step::Any(digits), Json::Array(_)) => Some(
                index(digits).ok_or_else(|| format!("{} is not an index; it is a list", shown(digits)))?,
            ),
            _ => None,
        };
        match (self, index, value) {
            (_, Some(index), Json::Array(mut values)) => match index < values.len() {
                true => Ok(values.swap_remove(index)),
                false => Err(format!("a list of {}, without index {index}", values.len())),
            },
            (Step::Any(key) | Step::Key(key), _, Json::Object(mut values)) => {
                values.remove(key).ok_or_else(|| {
                    let keys = values.keys().map(|key| &**key).collect::<Vec<_>>().join(", ");
                    format!("an object without {}; it has {}", shown(key), shown(&keys))
                })
            }
            (_, _, other) => Err(format!("{} is inside {}", self.pointer(), kind(&other))),
        }
    }

    /// The step as a part of a pointer, shortened for a message.
    fn pointer(&self) -> String {
        match self {
            Step::Any(key) | Step::Key(key) => match key.char_indices().nth(KEY_SHOWN) {
                Some((end, _)) => format!("/{}...", escaped(&key[..end])),
                None => format!("/{}", escaped(key)),
            },
            Step::Index(index) => format!("/{index}"),
        }
    }
}

/// The maximum number of characters of a key in a message.
const KEY_SHOWN: usize = 100;

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null, which has nothing inside",
        Json::Bool(_) => "true or false, which has nothing inside",
        Json::Number(_) => "a number, which has nothing inside",
        Json::String(_) => "a text, which has nothing inside",
        Json::Array(_) => "a list, which has indexes",
        Json::Object(_) => "an object, which has keys",
    }
}

/// Parses an index. Leading zeros are not allowed.
fn index(digits: &str) -> Option<usize> {
    let canonical = digits == "0" || digits.starts_with(|digit: char| matches!(digit, '1'..='9'));
    canonical.then(|| digits.parse().ok()).flatten()
}

/// The maximum number of steps of a path. No document that is read is nested as deep.
const STEPS_MOST: usize = 256;

fn too_many_steps() -> Fault {
    Fault::param("path", format!("has more than {STEPS_MOST} steps"))
}

fn steps(path: &str) -> Result<Vec<Step>, Fault> {
    match path.strip_prefix('/') {
        Some(keys) if keys.split('/').nth(STEPS_MOST).is_some() => Err(too_many_steps()),
        Some(keys) => keys.split('/').map(pointed).collect(),
        None if path.is_empty() => Ok(Vec::new()),
        None => named(path),
    }
}

fn pointed(key: &str) -> Result<Step, Fault> {
    let escaped = key.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    match escaped {
        true => Ok(Step::Any(key.replace("~1", "/").replace("~0", "~"))),
        false => Err(Fault::param(
            "path",
            format!("{}: `~` is written `~0`, and `/` inside a key `~1`", shown(key)),
        )),
    }
}

/// Parses a path such as `a.b[0]["c d"].e`.
fn named(path: &str) -> Result<Vec<Step>, Fault> {
    let wrong = |left: &str| {
        let column = path.len() - left.len() + 1;
        Fault::param(
            "path",
            format!("column {column}: expected a name, `[index]` or `[\"name\"]`, as in `users[0].name`"),
        )
    };
    let mut steps = Vec::new();
    let mut left = path;
    while !left.is_empty() {
        if steps.len() == STEPS_MOST {
            return Err(too_many_steps());
        }
        if let Some(inside) = left.strip_prefix('[') {
            let mut texts = serde_json::Deserializer::from_str(inside).into_iter::<Json>();
            let step = match texts.next() {
                Some(Ok(Json::String(key))) => Step::Key(key),
                Some(Ok(Json::Number(number))) => {
                    Step::Index(index(&number.to_string()).ok_or_else(|| wrong(inside))?)
                }
                _ => return Err(wrong(inside)),
            };
            let behind = &inside[texts.byte_offset()..];
            left = behind.strip_prefix(']').ok_or_else(|| wrong(behind))?;
            steps.push(step);
            continue;
        }
        let name = if steps.is_empty() { left } else { left.strip_prefix('.').ok_or_else(|| wrong(left))? };
        let end = name.find(['.', '[']).unwrap_or(name.len());
        if end == 0 {
            return Err(wrong(name));
        }
        steps.push(Step::Key(name[..end].to_owned()));
        left = &name[end..];
    }
    Ok(steps)
}
