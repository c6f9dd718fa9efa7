//! Values as the kinds that operators, filters and tests take.

use std::borrow::Cow;

use anabranch_value::Value;

use crate::error::{Stop, wrong};
use crate::print::print;
use crate::work::Work;

/// The kind of a value in a message.
pub(crate) fn called(value: &Value) -> &'static str {
    match value {
        Value::Null => "none",
        Value::Bool(_) => "true or false",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Text(_) => "a text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

/// A number.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// The nearest float.
    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Integer(integer) => integer as f64,
            Number::Float(float) => float,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Integer(integer) => integer.into(),
            Number::Float(float) => float.into(),
        }
    }
}

/// A number of elements as a value.
pub(crate) fn count(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

impl Work {
    /// A value as text: any value has one, but the plain dialect takes only texts.
    pub(crate) fn text<'a>(&mut self, value: &'a Value) -> Result<Cow<'a, str>, Stop> {
        match value {
            Value::Text(text) => Ok(Cow::Borrowed(text)),
            _ if self.is_plain() => wrong(format!("takes a text, not {}; `string` makes one", called(value))),
            _ => {
                let dialect = self.dialect;
                self.write(|out| print(out, value, dialect)).map(Cow::Owned)
            }
        }
    }

    /// A value that must be a number; `true` counts as 1, but not in the plain dialect.
    pub(crate) fn number(&self, value: &Value) -> Result<Number, Stop> {
        match value {
            Value::Int(integer) => Ok(Number::Integer(*integer)),
            Value::Float(float) => Ok(Number::Float(*float)),
            Value::Bool(truth) if !self.is_plain() => Ok(Number::Integer(i64::from(*truth))),
            _ => wrong(format!("takes a number, not {}", called(value))),
        }
    }

    /// A value that must be an integer.
    pub(crate) fn integer(&self, value: &Value) -> Result<i64, Stop> {
        match self.number(value)? {
            Number::Integer(integer) => Ok(integer),
            Number::Float(_) => wrong("takes an integer, not a float; `int` makes one"),
        }
    }

    /// A value that must be a size: an integer from 0 up.
    pub(crate) fn size(&self, value: &Value) -> Result<usize, Stop> {
        let integer = self.integer(value)?;
        usize::try_from(integer).or_else(|_| wrong(format!("takes an integer from 0 up, not {integer}")))
    }

    /// The elements of a list, the names of a map, or the characters of a text (not in the plain dialect).
    pub(crate) fn elements(&mut self, value: &Value) -> Result<Vec<Value>, Stop> {
        match value {
            Value::List(list) => self.list(list.iter().cloned()),
            Value::Map(map) => self.list(map.keys().map(|name| Value::Text(name.clone()))),
            Value::Text(_) if self.is_plain() => {
                wrong("takes a list, not a text; `split` and `lines` make one")
            }
            Value::Text(text) => {
                let mut list = Vec::new();
                for letter in text.chars() {
                    self.make_part(letter.len_utf8())?;
                    list.push(Value::from(letter.encode_utf8(&mut [0; 4]) as &str));
                }
                Ok(list)
            }
            _ => wrong(format!("takes a list, not {}", called(value))),
        }
    }
}
