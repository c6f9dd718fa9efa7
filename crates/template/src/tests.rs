//! Tests: the words after `is`.

use anabranch_value::Value;

use crate::code::Operator;
use crate::error::{Stop, wrong};
use crate::operators::{apply, contains, equal};
use crate::template::Dialect;
use crate::work::{Work, is_true};

/// A test.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// The number of arguments.
    pub(crate) takes: usize,
    pub(crate) takes_undefined: bool,
    /// The plain dialect has it.
    plain: bool,
    pub(crate) holds: Holds,
}

type Holds = fn(&mut Work, Option<&Value>, &[Value]) -> Result<bool, Stop>;

/// A test of the dataset dialect alone.
const fn test(name: &'static str, takes: usize, holds: Holds) -> Test {
    Test { name, takes, takes_undefined: false, plain: false, holds }
}

/// A test of both dialects.
const fn plain(name: &'static str, takes: usize, holds: Holds) -> Test {
    Test { name, takes, takes_undefined: false, plain: true, holds }
}

/// A test of a value that may be undefined.
const fn existence(name: &'static str, holds: Holds) -> Test {
    Test { name, takes: 0, takes_undefined: true, plain: true, holds }
}

fn compare(work: &mut Work, operator: Operator, value: Option<&Value>, with: &[Value]) -> Result<bool, Stop> {
    Ok(is_true(&apply(work, operator, defined(value), &with[0])?))
}

/// The value of a test that does not take undefined values.
fn defined(value: Option<&Value>) -> &Value {
    value.unwrap_or(&Value::Null)
}

fn letters(work: &mut Work, value: Option<&Value>, change: fn(&str) -> String) -> Result<bool, Stop> {
    let text = work.text(defined(value))?;
    work.make(text.len())?;
    Ok(change(&text) == *text && text.chars().any(char::is_alphabetic))
}

static TESTS: [Test; 31] = [
    plain("boolean", 0, |_, value, _| Ok(matches!(value, Some(Value::Bool(_))))),
    existence("defined", |_, value, _| Ok(value.is_some())),
    plain("divisibleby", 1, |work, value, by| match (work.integer(defined(value))?, work.integer(&by[0])?) {
        (_, 0) => wrong("nothing is divisible by 0"),
        (value, by) => Ok(value.checked_rem(by).unwrap_or(0) == 0),
    }),
    plain("endingwith", 1, |work, value, end| {
        Ok(work.text(defined(value))?.ends_with(&*work.text(&end[0])?))
    }),
    test("eq", 1, |work, value, with| compare(work, Operator::Equal, value, with)),
    test("equalto", 1, |work, value, with| compare(work, Operator::Equal, value, with)),
    plain("even", 0, |work, value, _| Ok(work.integer(defined(value))? % 2 == 0)),
    plain("false", 0, |_, value, _| Ok(matches!(value, Some(Value::Bool(false))))),
    plain("float", 0, |_, value, _| Ok(matches!(value, Some(Value::Float(_))))),
    test("ge", 1, |work, value, with| compare(work, Operator::MoreOrEqual, value, with)),
    test("greaterthan", 1, |work, value, with| compare(work, Operator::More, value, with)),
    test("gt", 1, |work, value, with| compare(work, Operator::More, value, with)),
    test("in", 1, |work, value, with| contains(work, &with[0], defined(value))),
    plain("integer", 0, |_, value, _| Ok(matches!(value, Some(Value::Int(_))))),
    test("iterable", 0, |_, value, _| {
        Ok(matches!(value, Some(Value::List(_) | Value::Map(_) | Value::Text(_))))
    }),
    test("le", 1, |work, value, with| compare(work, Operator::LessOrEqual, value, with)),
    test("lessthan", 1, |work, value, with| compare(work, Operator::Less, value, with)),
    test("lower", 0, |work, value, _| letters(work, value, str::to_lowercase)),
    test("lt", 1, |work, value, with| compare(work, Operator::Less, value, with)),
    plain("mapping", 0, |_, value, _| Ok(matches!(value, Some(Value::Map(_))))),
    test("ne", 1, |work, value, with| compare(work, Operator::Unequal, value, with)),
    plain("none", 0, |_, value, _| Ok(matches!(value, Some(Value::Null)))),
    plain("number", 0, |work, value, _| match value {
        Some(Value::Bool(_)) => Ok(!work.is_plain()),
        value => Ok(matches!(value, Some(Value::Int(_) | Value::Float(_)))),
    }),
    plain("odd", 0, |work, value, _| Ok(work.integer(defined(value))? % 2 != 0)),
    test("sameas", 1, |work, value, with| {
        let kind = std::mem::discriminant(defined(value)) == std::mem::discriminant(&with[0]);
        Ok(kind && equal(work, defined(value), &with[0])?)
    }),
    plain("sequence", 0, |work, value, _| match value {
        Some(Value::Text(_) | Value::Map(_)) => Ok(!work.is_plain()),
        value => Ok(matches!(value, Some(Value::List(_)))),
    }),
    plain("startingwith", 1, |work, value, start| {
        Ok(work.text(defined(value))?.starts_with(&*work.text(&start[0])?))
    }),
    plain("string", 0, |_, value, _| Ok(matches!(value, Some(Value::Text(_))))),
    plain("true", 0, |_, value, _| Ok(matches!(value, Some(Value::Bool(true))))),
    existence("undefined", |_, value, _| Ok(value.is_none())),
    test("upper", 0, |work, value, _| letters(work, value, str::to_uppercase)),
];

/// A test of a dialect.
pub(crate) fn find(name: &str, dialect: Dialect) -> Option<&'static Test> {
    TESTS.iter().find(|test| test.name == name && (test.plain || dialect == Dialect::Dataset))
}

/// The names of all tests of a dialect.
pub(crate) fn names(dialect: Dialect) -> Vec<&'static str> {
    let tests = TESTS.iter().filter(|test| test.plain || dialect == Dialect::Dataset);
    tests.map(|test| test.name).collect()
}
