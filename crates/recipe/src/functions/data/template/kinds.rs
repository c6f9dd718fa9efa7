//! What a template can ask of a value, behind `is`.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::work::{Stop, wrong};

/// A question.
pub(super) struct Test {
    pub(super) name: &'static str,
    /// How many values it is asked with.
    pub(super) takes: usize,
    pub(super) holds: Holds,
}

type Holds = fn(&Value, &[Value]) -> Result<bool, Stop>;

const fn test(name: &'static str, takes: usize, holds: Holds) -> Test {
    Test { name, takes, holds }
}

/// All of them. What they look at is short, or is looked at in the order of its beginning.
pub(super) static TESTS: [Test; 17] = [
    test("boolean", 0, |value, _| Ok(value.kind() == ValueKind::Bool)),
    test("defined", 0, |value, _| Ok(!value.is_undefined())),
    test("divisibleby", 1, |value, by| match (integer(value)?, integer(&by[0])?) {
        (_, 0) => wrong("nothing is divisible by 0"),
        (value, by) => Ok(value.checked_rem(by).unwrap_or(0) == 0),
    }),
    test("endingwith", 1, |value, end| Ok(text(value)?.ends_with(text(&end[0])?))),
    test("even", 0, |value, _| Ok(integer(value)? % 2 == 0)),
    test("false", 0, |value, _| Ok(value.kind() == ValueKind::Bool && !value.is_true())),
    test("float", 0, |value, _| Ok(value.kind() == ValueKind::Number && !value.is_integer())),
    test("integer", 0, |value, _| Ok(value.is_integer())),
    test("mapping", 0, |value, _| Ok(value.kind() == ValueKind::Map)),
    test("none", 0, |value, _| Ok(value.is_none())),
    test("number", 0, |value, _| Ok(value.kind() == ValueKind::Number)),
    test("odd", 0, |value, _| Ok(integer(value)? % 2 != 0)),
    test("sequence", 0, |value, _| Ok(value.kind() == ValueKind::Seq)),
    test("startingwith", 1, |value, start| Ok(text(value)?.starts_with(text(&start[0])?))),
    test("string", 0, |value, _| Ok(value.kind() == ValueKind::String)),
    test("true", 0, |value, _| Ok(value.kind() == ValueKind::Bool && value.is_true())),
    test("undefined", 0, |value, _| Ok(value.is_undefined())),
];

/// What a value is called in a message.
pub(super) fn called(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "something undefined",
        ValueKind::None => "none",
        ValueKind::Bool => "true or false",
        ValueKind::Number => "a number",
        ValueKind::String => "a text",
        ValueKind::Seq => "a list",
        ValueKind::Map => "a map",
        _ => "something else",
    }
}

/// A value that must be a text.
pub(super) fn text(value: &Value) -> Result<&str, Stop> {
    match value.as_str() {
        Some(text) => Ok(text),
        None => wrong(format!("takes a text, not {}; `string` makes one", called(value))),
    }
}

/// A value that must be an integer.
pub(super) fn integer(value: &Value) -> Result<i128, Stop> {
    match number(value)? {
        Number::Integer(integer) => Ok(integer),
        Number::Float(_) => wrong("takes an integer, not a float; `int` makes one"),
    }
}

/// A number.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

/// A value that must be a number.
pub(super) fn number(value: &Value) -> Result<Number, Stop> {
    let read = match value.kind() {
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok().map(Number::Integer),
        ValueKind::Number => f64::try_from(value.clone()).ok().map(Number::Float),
        _ => None,
    };
    match read {
        Some(number) => Ok(number),
        None => wrong(format!("takes a number, not {}", called(value))),
    }
}

impl Number {
    /// The nearest float.
    pub(super) fn float(self) -> f64 {
        match self {
            Number::Integer(integer) => integer as f64,
            Number::Float(float) => float,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Integer(integer) => match i64::try_from(integer) {
                Ok(integer) => integer.into(),
                Err(_) => integer.into(),
            },
            Number::Float(float) => float.into(),
        }
    }
}
