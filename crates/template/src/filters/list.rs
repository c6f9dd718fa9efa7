//! Filters of lists and maps.

use std::fmt::Write;
use std::sync::Arc;

use anabranch_value::Value;

use super::{Arguments, attribute};
use crate::error::{Stop, wrong};
use crate::evaluate::index_in;
use crate::json_path;
use crate::kinds::{called, count};
use crate::print::print;
use crate::work::{VALUE, Work};

pub(crate) fn same(_: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    Ok(value.clone())
}

pub(crate) fn length(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    match value {
        Value::Text(text) => {
            work.look(text.len())?;
            Ok(count(text.chars().count()))
        }
        Value::List(list) => Ok(count(list.len())),
        Value::Map(map) => Ok(count(map.len())),
        _ => wrong(format!("{} has no length", called(value))),
    }
}

pub(crate) fn list(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    Ok(work.elements(value)?.into())
}

pub(crate) fn attr(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Option<Value>, Stop> {
    let name = arguments.text(0, "")?;
    work.look(name.len())?;
    Ok(value.get(name).cloned())
}

pub(crate) fn first(work: &mut Work, value: &Value, _: &Arguments) -> Result<Option<Value>, Stop> {
    edge(work, value, 0)
}

pub(crate) fn last(work: &mut Work, value: &Value, _: &Arguments) -> Result<Option<Value>, Stop> {
    edge(work, value, -1)
}

fn edge(work: &mut Work, value: &Value, index: i64) -> Result<Option<Value>, Stop> {
    match value {
        Value::List(list) => match index_in(list.len(), index) {
            None if work.is_plain() => wrong("the list is empty"),
            at => Ok(at.map(|at| list[at].clone())),
        },
        Value::Text(text) if !work.is_plain() => {
            let mut letters = text.chars();
            let letter = if index == 0 { letters.next() } else { letters.next_back() };
            Ok(letter.map(|letter| Value::from(letter.encode_utf8(&mut [0; 4]) as &str)))
        }
        Value::Map(map) if !work.is_plain() => {
            let name = if index == 0 { map.keys().next() } else { map.keys().next_back() };
            Ok(name.map(|name| Value::Text(name.clone())))
        }
        _ => wrong(format!("takes a list, not {}", called(value))),
    }
}

/// A list with one element per entry of a map.
fn entries(work: &mut Work, value: &Value, entry: fn((&Arc<str>, &Value)) -> Value) -> Result<Value, Stop> {
    let Value::Map(map) = value else { return wrong(format!("takes a map, not {}", called(value))) };
    // An entry is a list of two, perhaps.
    work.make(map.len().saturating_mul(4 * VALUE))?;
    Ok(work.list(map.iter().map(entry))?.into())
}

pub(crate) fn items(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    entries(work, value, |(name, value)| Value::list([Value::Text(name.clone()), value.clone()]))
}

pub(crate) fn keys(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    entries(work, value, |(name, _)| Value::Text(name.clone()))
}

pub(crate) fn values(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    entries(work, value, |(_, value)| value.clone())
}

/// The filter `map(attribute=...)`; with the name of a filter it is compiled into a loop.
pub(crate) fn map(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let mut list = work.elements(value)?;
    for element in &mut list {
        *element = match (attribute(element, arguments.get(0)), arguments.values.get(1)) {
            (Ok(value), _) => value,
            (Err(_), Some(Some(default))) => default.clone(),
            (Err(stop), _) => return Err(stop),
        };
    }
    Ok(list.into())
}

pub(crate) fn join(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let separator = match arguments.get(0) {
        Some(separator) => work.text(separator)?,
        None => "".into(),
    };
    let mut list = work.elements(value)?;
    for element in &mut list {
        *element = attribute(element, arguments.get(1))?;
    }
    joined(work, &list, &separator)
}

/// The texts of values, with a separator between them.
pub(crate) fn joined(work: &mut Work, list: &[Value], separator: &str) -> Result<Value, Stop> {
    let dialect = work.dialect;
    work.written(|out| {
        list.iter().enumerate().try_for_each(|(index, element)| {
            out.write_str(if index > 0 { separator } else { "" })?;
            print(out, element, dialect)
        })
    })
}

pub(crate) fn reverse(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    match value {
        Value::Text(text) => {
            work.look(text.len())?;
            let reversed: String = text.chars().rev().collect();
            work.made_text(&reversed)
        }
        _ => {
            let mut list = work.elements(value)?;
            list.reverse();
            Ok(list.into())
        }
    }
}

/// Lists of so many elements each.
pub(crate) fn batch(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let size = match arguments.size(work, 0, 1)? {
        0 => return wrong("takes a number of elements from 1 up"),
        size => size,
    };
    let list = work.elements(value)?;
    work.make(list.len().saturating_mul(2 * VALUE))?;
    let mut batches = Vec::new();
    for chunk in list.chunks(size) {
        let mut batch = chunk.to_vec();
        if let Some(fill) = arguments.get(1) {
            work.make((size - chunk.len()).saturating_mul(VALUE))?;
            batch.resize(size, fill.clone());
        }
        batches.push(Value::from(batch));
    }
    Ok(batches.into())
}

/// So many lists, as equal in length as can be.
pub(crate) fn slice(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let slices = match arguments.size(work, 0, 1)? {
        0 => return wrong("takes a number of lists from 1 up"),
        slices => slices,
    };
    work.make(slices.saturating_mul(2 * VALUE))?;
    let list = work.elements(value)?;
    work.make(list.len().saturating_mul(VALUE))?;
    let (each, larger) = (list.len() / slices, list.len() % slices);
    let (mut lists, mut from) = (Vec::new(), 0);
    for index in 0..slices {
        let len = each + usize::from(index < larger);
        let mut slice = list[from..from + len].to_vec();
        if let Some(fill) = arguments.get(1)
            && larger > 0
            && index >= larger
        {
            slice.push(fill.clone());
        }
        lists.push(Value::from(slice));
        from += len;
    }
    Ok(lists.into())
}

pub(crate) fn json_path(
    work: &mut Work,
    value: &Value,
    arguments: &Arguments,
) -> Result<Option<Value>, Stop> {
    let path = arguments.text(0, "$")?;
    work.look(path.len())?;
    json_path::find(work, value, path)
}
