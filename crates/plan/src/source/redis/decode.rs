//! Replies as columns and lists.

use std::sync::Arc;

use redis::Value;

use super::servers::said;
use crate::source::values::{self, Values};
use crate::source::{Data, Error, Field, Lists, Read};

/// The place of a row that has no key.
pub(super) const NO_KEY: u32 = u32::MAX;

/// What was asked, for errors.
pub(super) struct Asked<'a> {
    pub(super) endpoint: &'a Arc<str>,
    /// The command of the reply at a place.
    pub(super) command: &'a dyn Fn(u32) -> String,
}

/// Replies to what `read` asks, one a row: `places` says which.
pub(super) fn decode(
    read: &Read,
    asked: &Asked<'_>,
    replies: &[Value],
    places: impl ExactSizeIterator<Item = u32>,
) -> Result<Data, Error> {
    match read {
        Read::Fields(fields) => columns(fields, asked, replies, places).map(Data::Columns),
        Read::List { .. } => lists(asked, replies, places).map(Data::Lists),
        Read::Scored { .. } => scored(asked, replies, places).map(Data::Lists),
    }
}

fn columns(
    fields: &[Field],
    asked: &Asked<'_>,
    replies: &[Value],
    places: impl ExactSizeIterator<Item = u32>,
) -> Result<Vec<anabranch_rows::Column>, Error> {
    let mut columns: Vec<Values> = fields.iter().map(|field| Values::new(field.kind, places.len())).collect();
    for place in places {
        if place == NO_KEY {
            columns.iter_mut().for_each(Values::push_null);
            continue;
        }
        let reply = &replies[place as usize];
        let items = match reply {
            Value::ServerError(_) => return Err(asked.wrong(place, reply, "a value")),
            value if fields.len() == 1 => std::slice::from_ref(value),
            Value::Array(items) if items.len() == fields.len() => items,
            _ => return Err(asked.wrong(place, reply, "a list of the fields asked for")),
        };
        for ((field, column), item) in fields.iter().zip(&mut columns).zip(items) {
            let text = match item {
                Value::Nil => {
                    column.push_null();
                    continue;
                }
                Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
                Value::SimpleString(text) => Some(text.as_str()),
                Value::Okay => Some("OK"),
                _ => None,
            };
            if !text.is_some_and(|text| column.push(text)) {
                return Err(Error::Malformed {
                    endpoint: Arc::clone(asked.endpoint),
                    command: format!("{} {}", (asked.command)(place), field.name),
                    found: shown(item),
                    expected: values::expected(field.kind),
                });
            }
        }
    }
    Ok(columns.into_iter().map(Values::finish).collect())
}

fn lists(
    asked: &Asked<'_>,
    replies: &[Value],
    places: impl ExactSizeIterator<Item = u32>,
) -> Result<Lists, Error> {
    let mut lists = Lists { lens: Vec::with_capacity(places.len()), ..Lists::default() };
    for place in places {
        let items = asked.items(replies, place)?;
        lists.lens.push(items.len() as u32);
        lists.ids.reserve(items.len());
        for item in items {
            lists.ids.push(asked.id(place, item)?);
        }
    }
    Ok(lists)
}

fn scored(
    asked: &Asked<'_>,
    replies: &[Value],
    places: impl ExactSizeIterator<Item = u32>,
) -> Result<Lists, Error> {
    let mut lists = Lists { lens: Vec::with_capacity(places.len()), ..Lists::default() };
    let mut scores = Vec::new();
    for place in places {
        let items = asked.items(replies, place)?;
        lists.lens.push(items.len() as u32);
        for item in items {
            let (member, score) = match item {
                Value::Array(pair) => match &pair[..] {
                    [member, Value::Double(score)] if score.is_finite() => (member, *score),
                    _ => return Err(asked.wrong(place, item, "a member and its finite score")),
                },
                _ => return Err(asked.wrong(place, item, "a member and its finite score")),
            };
            lists.ids.push(asked.id(place, member)?);
            scores.push(score);
        }
    }
    Ok(Lists { scores: Some(scores), ..lists })
}

impl Asked<'_> {
    fn items<'v>(&self, replies: &'v [Value], place: u32) -> Result<&'v [Value], Error> {
        if place == NO_KEY {
            return Ok(&[]);
        }
        match &replies[place as usize] {
            Value::Array(items) => Ok(items),
            other => Err(self.wrong(place, other, "a list")),
        }
    }

    fn id(&self, place: u32, item: &Value) -> Result<i64, Error> {
        let id = match item {
            Value::BulkString(bytes) => str::from_utf8(bytes).ok().and_then(values::int),
            Value::SimpleString(text) => values::int(text),
            _ => None,
        };
        id.ok_or_else(|| Error::Malformed {
            endpoint: Arc::clone(self.endpoint),
            command: (self.command)(place),
            found: format!("the item {}", shown(item)),
            expected: values::AN_ID,
        })
    }

    /// An error reply, or one of another type than was asked for.
    fn wrong(&self, place: u32, reply: &Value, expected: &'static str) -> Error {
        let (endpoint, command) = (Arc::clone(self.endpoint), (self.command)(place));
        match reply {
            Value::ServerError(error) => Error::Refused { endpoint, command, message: said(error) },
            other => Error::Malformed { endpoint, command, found: shown(other), expected },
        }
    }
}

/// A reply for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(value) => format!("the integer {value}"),
        Value::Double(value) => format!("the double {value}"),
        Value::Boolean(value) => format!("the boolean {value}"),
        Value::BulkString(bytes) => match str::from_utf8(bytes) {
            Ok(text) => values::quoted(text),
            Err(_) => format!("{} bytes that are no UTF-8", bytes.len()),
        },
        Value::SimpleString(text) => values::quoted(text),
        Value::Okay => "OK".to_owned(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Set(items) => format!("a set of {}", items.len()),
        Value::Map(items) => format!("a map of {}", items.len()),
        Value::ServerError(error) => said(error),
        _ => "something else".to_owned(),
    }
}
