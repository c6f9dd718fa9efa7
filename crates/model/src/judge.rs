//! Judges: models that score a text by a rubric.

use std::sync::Arc;

use anabranch_value::{Map, Value};

use crate::reply::ReplyProblem;
use crate::schema::same;

/// One score of a rubric.
#[derive(Clone, Debug)]
pub struct Score {
    pub name: String,
    pub description: String,
    /// The values that the score may have, whole numbers or texts, each with its meaning.
    pub options: Vec<(Value, String)>,
}

/// The JSON schema of a judge's reply: `{score: {reasoning, score}}` for each score.
pub fn schema(scores: &[Score]) -> Value {
    let object = |properties: Map| {
        let names: Vec<Value> = properties.keys().map(|name| Arc::clone(name).into()).collect();
        Value::map([
            ("type", "object".into()),
            ("properties", properties.into()),
            ("required", names.into()),
            ("additionalProperties", false.into()),
        ])
    };
    let properties = scores.iter().map(|score| {
        let reasoning = Value::map([
            ("type", Value::from("string")),
            ("description", "Why this option, in a few sentences.".into()),
        ]);
        let meanings: Vec<String> =
            score.options.iter().map(|(option, meaning)| format!("{}: {meaning}", plain(option))).collect();
        let mut option = Map::new();
        // Strict servers require a type besides the options.
        let options = || score.options.iter().map(|(option, _)| option);
        if options().all(|option| matches!(option, Value::Int(_))) {
            option.insert("type".into(), "integer".into());
        } else if options().all(|option| matches!(option, Value::Text(_))) {
            option.insert("type".into(), "string".into());
        }
        option.insert("enum".into(), Value::list(options().cloned()));
        option.insert("description".into(), meanings.join("; ").into());
        let option = Value::from(option);
        let parts = Map::from_iter([("reasoning".into(), reasoning), ("score".into(), option)]);
        let mut part = object(parts);
        if let Value::Map(map) = &mut part {
            Arc::make_mut(map).insert("description".into(), score.description.as_str().into());
        }
        (Arc::from(score.name.as_str()), part)
    });
    object(properties.collect())
}

/// Parses the scores of a judge's reply: `{score: {reasoning, score}}`, each with one of its options. The reply must
/// not be checked with [`schema`] before, because that would refuse deviations that are accepted here.
///
/// An option is matched exactly, else without regard to case and spaces if only one matches. `4.0` matches `4`; true and
/// false match no number.
pub fn read(scores: &[Score], reply: &Value) -> Result<Value, ReplyProblem> {
    let mut problems = Vec::new();
    let mut read = Map::new();
    for score in scores {
        let name = &score.name;
        let Some(given) = entry(reply, name) else {
            problems.push(format!("the score `{name}` is missing"));
            continue;
        };
        // Some models leave out the object around a bare score.
        let (option, reasoning) = match given {
            Value::Map(map) => {
                (map.get("score"), map.get("reasoning").and_then(Value::as_text).unwrap_or(""))
            }
            bare => (Some(bare), ""),
        };
        let found = option.and_then(|option| matching(&score.options, option));
        let Some(option_found) = found else {
            let expected: Vec<String> = score.options.iter().map(|(option, _)| plain(option)).collect();
            let found =
                option.map_or("nothing".to_owned(), |option| crate::error::shorten(&option.to_json()));
            problems.push(format!("`{name}.score` is {found}; expected one of: {}", expected.join(", ")));
            continue;
        };
        let parts = [("reasoning", Value::from(reasoning)), ("score", option_found.clone())];
        read.insert(name.as_str().into(), Value::map(parts));
    }
    if problems.is_empty() { Ok(read.into()) } else { Err(ReplyProblem(problems.join("; "))) }
}

/// The entry of this name, else the only one that differs by case and spaces.
fn entry<'a>(reply: &'a Value, name: &str) -> Option<&'a Value> {
    let map = reply.as_map()?;
    map.get(name).or_else(|| {
        let mut alike = map.iter().filter(|(other, _)| folded(other) == folded(name)).map(|(_, value)| value);
        alike.next().filter(|_| alike.next().is_none())
    })
}

/// The option that a model means.
fn matching<'a>(options: &'a [(Value, String)], given: &Value) -> Option<&'a Value> {
    let options = options.iter().map(|(option, _)| option);
    let exact = options.clone().find(|option| same(option, given));
    exact.or_else(|| {
        if !matches!(given, Value::Text(_) | Value::Int(_) | Value::Float(_)) {
            return None;
        }
        let given = folded(&plain(given));
        let mut alike = options.filter(|option| folded(&plain(option)) == given);
        alike.next().filter(|_| alike.next().is_none())
    })
}

fn folded(text: &str) -> String {
    text.trim().to_lowercase()
}

/// An option as text, without a fraction of zero.
fn plain(option: &Value) -> String {
    let number = match option {
        Value::Text(text) => {
            return text
                .trim()
                .strip_suffix(".0")
                .filter(|t| t.parse::<i64>().is_ok())
                .unwrap_or(text)
                .to_owned();
        }
        Value::Float(float) => crate::schema::whole(*float).map(Value::Int),
        _ => None,
    };
    number.as_ref().unwrap_or(option).to_json()
}
