//! Methods of values, named as Python's.

use std::ops::RangeInclusive;

use anabranch_value::Value;

use crate::error::{Stop, wrong};
use crate::filters::{capitalized, changed, cut, joined, python_title, replaced, split_text};
use crate::kinds::{called, count};
use crate::number_format::brace_format;
use crate::operators::equal;
use crate::work::{VALUE, Work};

/// A method.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// The number of arguments.
    pub(crate) takes: RangeInclusive<usize>,
    pub(crate) run: Run,
}

type Run = fn(&mut Work, &Value, &[Value]) -> Result<Value, Stop>;

const fn method(name: &'static str, takes: RangeInclusive<usize>, run: Run) -> Method {
    Method { name, takes, run }
}

/// A value that must be a text.
fn text(value: &Value) -> Result<&str, Stop> {
    match value.as_text() {
        Some(text) => Ok(text),
        None => wrong(format!("{} has no such method: it is for a text", called(value))),
    }
}

/// An argument that must be a text.
fn argument(value: &Value) -> Result<&str, Stop> {
    match value.as_text() {
        Some(text) => Ok(text),
        None => wrong(format!("takes a text, not {}", called(value))),
    }
}

/// Whether a text has letters, all of them of a kind.
fn all(work: &mut Work, value: &Value, holds: fn(char) -> bool) -> Result<Value, Stop> {
    let text = text(value)?;
    work.look(text.len())?;
    Ok((!text.is_empty() && text.chars().all(holds)).into())
}

/// Whether a text has letters with a case, and a change of case does not change them.
fn cased(work: &mut Work, value: &Value, change: fn(&str) -> String) -> Result<Value, Stop> {
    let text = text(value)?;
    work.make(text.len())?;
    let has_case = text.chars().any(|letter| letter.is_uppercase() || letter.is_lowercase());
    Ok((has_case && change(text) == text).into())
}

/// The letters that `strip` takes away.
fn stripped(letters: Option<&Value>) -> Result<impl Fn(char) -> bool + '_, Stop> {
    let letters = letters.filter(|letters| !letters.is_null()).map(argument).transpose()?;
    if letters.is_some_and(|letters| letters.len() > 256) {
        return wrong("takes at most 256 letters");
    }
    Ok(move |letter: char| letters.map_or(letter.is_whitespace(), |letters| letters.contains(letter)))
}

/// Whether a text begins or ends with a text, or one of a list.
fn edged(work: &mut Work, edges: &Value, holds: impl Fn(&str) -> bool) -> Result<Value, Stop> {
    let edges = match edges {
        Value::List(list) => list,
        edge => std::slice::from_ref(edge),
    };
    for edge in edges {
        let edge = argument(edge)?;
        work.look(edge.len())?;
        if holds(edge) {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

/// The number of letters before a byte.
fn letters_before(text: &str, at: Option<usize>) -> Option<Value> {
    at.map(|at| count(text[..at].chars().count()))
}

static METHODS: &[Method] = &[
    method("capitalize", 0..=0, |work, value, _| {
        text(value)?;
        changed(work, value, capitalized)
    }),
    method("count", 1..=1, |work, value, with| match value {
        Value::List(list) => {
            let mut found = 0;
            for element in list.iter() {
                found += usize::from(equal(work, element, &with[0])?);
            }
            Ok(count(found))
        }
        _ => {
            let (text, part) = (text(value)?, argument(&with[0])?);
            work.look(text.len())?;
            Ok(count(text.matches(part).count()))
        }
    }),
    method("endswith", 1..=1, |work, value, with| {
        let text = text(value)?;
        edged(work, &with[0], |edge| text.ends_with(edge))
    }),
    method("find", 1..=1, |work, value, with| {
        let (text, part) = (text(value)?, argument(&with[0])?);
        work.look(text.len())?;
        Ok(letters_before(text, text.find(part)).unwrap_or(Value::Int(-1)))
    }),
    method("format", 0..=64, |work, value, with| brace_format(work, text(value)?, with)),
    method("get", 1..=2, |work, value, with| match value {
        Value::Map(map) => {
            let name = work.text(&with[0])?;
            work.look(name.len())?;
            Ok(map.get(&*name).or(with.get(1)).cloned().unwrap_or(Value::Null))
        }
        _ => wrong(format!("{} has no such method: it is for a map", called(value))),
    }),
    method("index", 1..=1, |work, value, with| {
        let at = match value {
            Value::List(list) => {
                let mut at = None;
                for (index, element) in list.iter().enumerate() {
                    if equal(work, element, &with[0])? {
                        at = Some(count(index));
                        break;
                    }
                }
                at
            }
            _ => {
                let (text, part) = (text(value)?, argument(&with[0])?);
                work.look(text.len())?;
                letters_before(text, text.find(part))
            }
        };
        at.map_or_else(|| wrong("the value is not there; `in` tells whether it is"), Ok)
    }),
    method("isalnum", 0..=0, |work, value, _| all(work, value, char::is_alphanumeric)),
    method("isalpha", 0..=0, |work, value, _| all(work, value, char::is_alphabetic)),
    method("isdigit", 0..=0, |work, value, _| all(work, value, |letter| letter.is_ascii_digit())),
    method("islower", 0..=0, |work, value, _| cased(work, value, str::to_lowercase)),
    method("isnumeric", 0..=0, |work, value, _| all(work, value, char::is_numeric)),
    method("isspace", 0..=0, |work, value, _| all(work, value, char::is_whitespace)),
    method("isupper", 0..=0, |work, value, _| cased(work, value, str::to_uppercase)),
    method("items", 0..=0, |work, value, _| entries(work, value, |name, value| Value::list([name, value]))),
    method("join", 1..=1, |work, value, with| {
        let separator = text(value)?;
        let list = work.elements(&with[0])?;
        joined(work, &list, separator)
    }),
    method("keys", 0..=0, |work, value, _| entries(work, value, |name, _| name)),
    method("lower", 0..=0, |work, value, _| {
        text(value)?;
        changed(work, value, str::to_lowercase)
    }),
    method("lstrip", 0..=1, |work, value, with| {
        let part = text(value)?.trim_start_matches(stripped(with.first())?);
        work.made_text(part)
    }),
    method("removeprefix", 1..=1, |work, value, with| {
        let text = text(value)?;
        work.made_text(text.strip_prefix(argument(&with[0])?).unwrap_or(text))
    }),
    method("removesuffix", 1..=1, |work, value, with| {
        let text = text(value)?;
        work.made_text(text.strip_suffix(argument(&with[0])?).unwrap_or(text))
    }),
    method("replace", 2..=3, |work, value, with| {
        let most = with.get(2).map(|most| work.integer(most)).transpose()?;
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        replaced(work, text(value)?, argument(&with[0])?, argument(&with[1])?, most)
    }),
    method("rsplit", 0..=2, |work, value, with| match (with.first(), with.get(1)) {
        (Some(Value::Text(separator)), Some(most)) if !separator.is_empty() => {
            let (text, most) = (text(value)?, work.integer(most)?);
            let most = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
            work.look(text.len())?;
            let mut parts = Vec::new();
            for part in text.rsplitn(most, &**separator) {
                work.make(VALUE)?;
                parts.push(part);
            }
            cut(work, parts.into_iter().rev())
        }
        _ => split(work, value, with),
    }),
    method("rstrip", 0..=1, |work, value, with| {
        let part = text(value)?.trim_end_matches(stripped(with.first())?);
        work.made_text(part)
    }),
    method("split", 0..=2, split),
    method("splitlines", 0..=0, |work, value, _| {
        let text = text(value)?;
        work.look(text.len())?;
        cut(work, text.lines())
    }),
    method("startswith", 1..=1, |work, value, with| {
        let text = text(value)?;
        edged(work, &with[0], |edge| text.starts_with(edge))
    }),
    method("strip", 0..=1, |work, value, with| {
        let strip = stripped(with.first())?;
        work.made_text(text(value)?.trim_start_matches(&strip).trim_end_matches(&strip))
    }),
    method("title", 0..=0, |work, value, _| {
        text(value)?;
        changed(work, value, python_title)
    }),
    method("upper", 0..=0, |work, value, _| {
        text(value)?;
        changed(work, value, str::to_uppercase)
    }),
    method("values", 0..=0, |work, value, _| entries(work, value, |_, value| value)),
    method("zfill", 1..=1, |work, value, with| {
        let (text, width) = (text(value)?, work.size(&with[0])?);
        let pad = width.saturating_sub(text.chars().count());
        work.make(pad.saturating_add(text.len()))?;
        let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
        Ok(format!("{sign}{}{digits}", "0".repeat(pad)).into())
    }),
];

fn split(work: &mut Work, value: &Value, with: &[Value]) -> Result<Value, Stop> {
    let separator = with.first().filter(|separator| !separator.is_null()).map(argument).transpose()?;
    let most = with.get(1).map(|most| work.integer(most)).transpose()?;
    split_text(work, text(value)?, separator, most.and_then(|most| usize::try_from(most).ok()))
}

fn entries(work: &mut Work, value: &Value, entry: fn(Value, Value) -> Value) -> Result<Value, Stop> {
    let Value::Map(map) = value else {
        return wrong(format!("{} has no such method: it is for a map", called(value)));
    };
    // An entry is a list of two, perhaps.
    work.make(map.len().saturating_mul(4 * VALUE))?;
    let entries = map.iter().map(|(name, value)| entry(Value::Text(name.clone()), value.clone()));
    Ok(work.list(entries)?.into())
}

/// A method by its name.
pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// The names of all methods.
pub(crate) fn names() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.name).collect()
}
