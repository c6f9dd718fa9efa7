//! A part of JSONPath: `$.a.b[0]`, `['a b']`, `[*]`, `.*` and `..name`.

use std::borrow::Cow;

use anabranch_value::Value;

use crate::error::{Stop, wrong};
use crate::evaluate::index_in;
use crate::kinds::called;
use crate::work::{VALUE, Work};

/// One step of a path.
enum Segment<'a> {
    Name(Cow<'a, str>),
    Index(i64),
    /// All elements or entries.
    All,
    /// The fields of a name, at any depth; all values without a name.
    Deep(Option<Cow<'a, str>>),
}

/// The values of a path: a list if the path can lead to several, else the value or none.
pub(crate) fn find(work: &mut Work, value: &Value, path: &str) -> Result<Option<Value>, Stop> {
    if !matches!(value, Value::Map(_) | Value::List(_)) {
        return wrong(format!("takes a map or a list, not {}", called(value)));
    }
    let segments = parse(path)?;
    let several = segments.iter().any(|segment| matches!(segment, Segment::All | Segment::Deep(_)));
    let mut found = vec![value.clone()];
    for segment in &segments {
        let mut next = Vec::new();
        for value in &found {
            follow(work, value, segment, &mut next)?;
        }
        found = next;
    }
    match several {
        true => Ok(Some(found.into())),
        false => Ok(found.into_iter().next()),
    }
}

fn follow(work: &mut Work, value: &Value, segment: &Segment<'_>, next: &mut Vec<Value>) -> Result<(), Stop> {
    work.steps(1)?;
    let mut take = |work: &mut Work, value: &Value| {
        work.steps(1)?;
        work.make(VALUE)?;
        next.push(value.clone());
        Ok(())
    };
    match (segment, value) {
        (Segment::Name(name), Value::Map(map)) => map.get(&**name).map_or(Ok(()), |value| take(work, value)),
        (Segment::Index(index), Value::List(list)) => {
            index_in(list.len(), *index).map_or(Ok(()), |at| take(work, &list[at]))
        }
        (Segment::All, Value::List(list)) => list.iter().try_for_each(|value| take(work, value)),
        (Segment::All, Value::Map(map)) => map.values().try_for_each(|value| take(work, value)),
        (Segment::Deep(name), value) => {
            if let (Some(name), Value::Map(map)) = (name, value)
                && let Some(value) = map.get(&**name)
            {
                take(work, value)?;
            }
            let mut inside = |value: &Value| {
                if name.is_none() {
                    work.make(VALUE)?;
                    next.push(value.clone());
                }
                follow(work, value, segment, next)
            };
            match value {
                Value::List(list) => list.iter().try_for_each(&mut inside),
                Value::Map(map) => map.values().try_for_each(&mut inside),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn parse(path: &str) -> Result<Vec<Segment<'_>>, Stop> {
    let mut segments = Vec::new();
    let trimmed = path.trim();
    let mut left = trimmed.strip_prefix('$').unwrap_or(trimmed);
    let mut begins = !trimmed.starts_with('$');
    while !left.is_empty() {
        if segments.len() == 64 {
            return wrong("a path has at most 64 steps");
        }
        if let Some(rest) = left.strip_prefix("..") {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            left = behind;
            match name {
                "" => return wrong(format!("path {path:?} has no name behind `..`")),
                "*" => segments.push(Segment::Deep(None)),
                name => segments.push(Segment::Deep(Some(name.into()))),
            }
        } else if left.starts_with('[') {
            let Some((inside, behind)) = bracket(left) else {
                return wrong(format!("path {path:?} has a `[` without a `]`"));
            };
            segments.push(in_bracket(path, inside.trim())?);
            left = behind;
        } else {
            let rest = match left.strip_prefix('.') {
                Some(rest) => rest,
                None if begins => left,
                None => return wrong(format!("path {path:?} has no `.` or `[` before {left:?}")),
            };
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            left = behind;
            match name {
                "" => return wrong(format!("path {path:?} has no name behind a `.`")),
                "*" => segments.push(Segment::All),
                name => segments.push(Segment::Name(name.into())),
            }
        }
        begins = false;
    }
    Ok(segments)
}

/// The inside of the bracket at the beginning, and the rest behind it. A bracket in quotes does not count.
fn bracket(path: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, letter) in path.char_indices().skip(1) {
        match (letter, quote) {
            (']', None) => return Some((&path[1..at], &path[at + 1..])),
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            _ => {}
        }
    }
    None
}

fn in_bracket<'a>(path: &str, inside: &'a str) -> Result<Segment<'a>, Stop> {
    let quoted = ['\'', '"'].iter().find_map(|quote| inside.strip_prefix(*quote)?.strip_suffix(*quote));
    match (quoted, inside.parse()) {
        (Some(name), _) => Ok(Segment::Name(name.into())),
        (None, _) if inside == "*" => Ok(Segment::All),
        (None, Ok(index)) => Ok(Segment::Index(index)),
        (None, Err(_)) => {
            wrong(format!("path {path:?}: `[{inside}]` is not an index, `*` or a name in quotes"))
        }
    }
}
