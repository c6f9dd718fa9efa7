//! Filters that put elements in order or tell them apart.

use std::cmp::Ordering;
use std::collections::HashSet;

use anabranch_value::Value;

use super::{Arguments, attribute};
use crate::error::{Stop, wrong};
use crate::kinds::called;
use crate::work::{VALUE, Work};

/// The value that counts in an order.
enum Key {
    None,
    Bool(bool),
    /// An integer, and the nearest float.
    Integer(i64),
    Float(f64),
    Text(String),
}

impl Key {
    /// The key of a value; texts are in small letters unless their case counts.
    fn of(work: &mut Work, value: &Value, fold: bool) -> Result<Key, Stop> {
        Ok(match value {
            Value::Null => Key::None,
            Value::Bool(truth) if work.is_plain() => Key::Bool(*truth),
            Value::Bool(truth) => Key::Integer(i64::from(*truth)),
            Value::Int(integer) => Key::Integer(*integer),
            Value::Float(float) => Key::Float(*float),
            Value::Text(text) => {
                work.make(text.len())?;
                Key::Text(if fold { text.to_lowercase() } else { text.to_string() })
            }
            _ => return wrong(format!("has no order for {}; `attribute=` names what counts", called(value))),
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Key::None => "none",
            Key::Bool(_) => "true or false",
            Key::Integer(_) | Key::Float(_) => "a number",
            Key::Text(_) => "a text",
        }
    }

    fn cmp(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Bool(one), Key::Bool(other)) => one.cmp(other),
            (Key::Integer(one), Key::Integer(other)) => one.cmp(other),
            (Key::Integer(one), Key::Float(other)) => (*one as f64).total_cmp(other),
            (Key::Float(one), Key::Integer(other)) => one.total_cmp(&(*other as f64)),
            (Key::Float(one), Key::Float(other)) => one.total_cmp(other),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        }
    }

    /// A form in which equal keys are the same.
    fn identity(&self) -> Identity<'_> {
        match self {
            Key::None => Identity::None,
            Key::Bool(truth) => Identity::Bool(*truth),
            Key::Integer(integer) => Identity::Integer(*integer),
            Key::Float(float) => match super::number::truncated(*float) {
                Some(integer) if integer as f64 == *float => Identity::Integer(integer),
                _ => Identity::Float(float.to_bits()),
            },
            Key::Text(text) => Identity::Text(text),
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Identity<'a> {
    None,
    Bool(bool),
    Integer(i64),
    Float(u64),
    Text(&'a str),
}

/// Elements with their keys.
fn keyed(
    work: &mut Work,
    value: &Value,
    path: Option<&Value>,
    case_sensitive: bool,
) -> Result<Vec<(Key, Value)>, Stop> {
    let fold = !case_sensitive && !work.is_plain();
    let elements = work.elements(value)?;
    work.make(2 * VALUE * elements.len())?;
    let (mut bytes, mut keyed) = (0, Vec::with_capacity(elements.len()));
    for element in elements {
        let key = Key::of(work, &attribute(&element, path)?, fold)?;
        if let Key::Text(text) = &key {
            bytes += text.len();
        }
        keyed.push((key, element));
    }
    let depth = keyed.len().checked_ilog2().unwrap_or(0) as usize + 1;
    work.look((bytes + 4 * keyed.len()).saturating_mul(depth))?;
    Ok(keyed)
}

fn sorted(
    work: &mut Work,
    value: &Value,
    path: Option<&Value>,
    case_sensitive: bool,
) -> Result<Vec<(Key, Value)>, Stop> {
    let mut keyed = keyed(work, value, path, case_sensitive)?;
    if let Some(pair) = keyed.windows(2).find(|pair| pair[0].0.kind() != pair[1].0.kind()) {
        let (one, other) = (pair[0].0.kind(), pair[1].0.kind());
        return wrong(format!("has no order for {one} and {other}"));
    }
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(keyed)
}

/// Elements in the opposite order; equal ones stay as they are.
fn turned(mut keyed: Vec<(Key, Value)>, turn: bool) -> Vec<(Key, Value)> {
    if turn {
        keyed.sort_by(|(one, _), (other, _)| other.cmp(one));
    }
    keyed
}

fn elements(keyed: Vec<(Key, Value)>) -> Value {
    Value::list(keyed.into_iter().map(|(_, element)| element))
}

pub(crate) fn sort(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let keyed = sorted(work, value, arguments.get(2), arguments.flag(1))?;
    Ok(elements(turned(keyed, arguments.flag(0))))
}

pub(crate) fn max(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Option<Value>, Stop> {
    // Of equal elements the plain dialect has the last, Jinja the first.
    let keyed = sorted(work, value, arguments.get(1), arguments.flag(0))?;
    let turn = !work.is_plain();
    let mut keyed = turned(keyed, turn);
    edge(work, if turn { keyed.into_iter().next() } else { keyed.pop() })
}

pub(crate) fn min(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Option<Value>, Stop> {
    let keyed = sorted(work, value, arguments.get(1), arguments.flag(0))?;
    edge(work, keyed.into_iter().next())
}

fn edge(work: &Work, element: Option<(Key, Value)>) -> Result<Option<Value>, Stop> {
    match element {
        None if work.is_plain() => wrong("the list is empty"),
        element => Ok(element.map(|(_, element)| element)),
    }
}

pub(crate) fn unique(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let keyed = keyed(work, value, arguments.get(1), arguments.flag(0))?;
    work.make(2 * VALUE * keyed.len())?;
    let mut seen = HashSet::new();
    let new = keyed.iter().filter(|(key, _)| seen.insert(key.identity()));
    Ok(Value::list(new.map(|(_, element)| element.clone())))
}

/// Lists of two: the value of the attribute, and the elements that have it.
pub(crate) fn groupby(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let path = arguments.get(0);
    let default = arguments.get(1);
    let key_of = |element: &Value| match (attribute(element, path), default) {
        (Err(_), Some(default)) => Ok(default.clone()),
        (found, _) => found,
    };
    // Pairs of the key and the element are sorted by the key.
    let list = work.elements(value)?;
    work.make(list.len().saturating_mul(4 * VALUE))?;
    let mut pairs = Vec::with_capacity(list.len());
    for element in list {
        pairs.push(Value::list([key_of(&element)?, element]));
    }
    let sorted = sorted(work, &pairs.into(), Some(&Value::Int(0)), arguments.flag(2))?;
    let mut groups: Vec<(Key, Value, Vec<Value>)> = Vec::new();
    for (key, pair) in sorted {
        let Some([name, element]) = pair.as_list() else { continue };
        match groups.last_mut() {
            Some((last, _, group)) if last.cmp(&key).is_eq() => group.push(element.clone()),
            _ => groups.push((key, name.clone(), vec![element.clone()])),
        }
    }
    Ok(Value::list(groups.into_iter().map(|(_, name, group)| Value::list([name, group.into()]))))
}

/// The entries of a map as lists of two, in order.
pub(crate) fn dictsort(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let entries = super::list::items(work, value, arguments)?;
    let by = match arguments.text(1, "key")? {
        "key" => 0,
        "value" => 1,
        other => return wrong(format!("by {other:?} is not key or value")),
    };
    let keyed = sorted(work, &entries, Some(&Value::Int(by)), arguments.flag(0))?;
    Ok(elements(turned(keyed, arguments.flag(2))))
}
