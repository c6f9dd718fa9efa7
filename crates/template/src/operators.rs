//! Operators of two values.

use std::cmp::Ordering;
use std::fmt::Write;

use anabranch_value::Value;

use crate::code::Operator;
use crate::error::{Stop, wrong};
use crate::evaluate::has;
use crate::kinds::{Number, called};
use crate::number_format::percent_format;
use crate::print::print;
use crate::work::{VALUE, Work};

/// Applies an operator to two values.
pub(crate) fn apply(work: &mut Work, operator: Operator, one: &Value, other: &Value) -> Result<Value, Stop> {
    let dialect = work.dialect;
    match operator {
        Operator::Add => add(work, one, other),
        Operator::Join => work.written(|out| {
            print(out, one, dialect)?;
            print(out, other, dialect)
        }),
        Operator::Equal => Ok(equal(work, one, other)?.into()),
        Operator::Unequal => Ok((!equal(work, one, other)?).into()),
        Operator::Less => Ok(order(work, one, other)?.is_some_and(Ordering::is_lt).into()),
        Operator::LessOrEqual => Ok(order(work, one, other)?.is_some_and(Ordering::is_le).into()),
        Operator::More => Ok(order(work, one, other)?.is_some_and(Ordering::is_gt).into()),
        Operator::MoreOrEqual => Ok(order(work, one, other)?.is_some_and(Ordering::is_ge).into()),
        Operator::In => Ok(contains(work, other, one)?.into()),
        Operator::NotIn => Ok((!contains(work, other, one)?).into()),
        Operator::Multiply if !work.is_plain() => match (one, other) {
            (Value::Text(_) | Value::List(_), times) => repeated(work, one, times),
            (times, Value::Text(_) | Value::List(_)) => repeated(work, other, times),
            _ => calculate(operator, work.number(one)?, work.number(other)?),
        },
        Operator::Remainder if !work.is_plain() && one.as_text().is_some() => {
            let arguments = match other {
                Value::List(list) => &**list,
                other => std::slice::from_ref(other),
            };
            percent_format(work, one.as_text().unwrap_or_default(), arguments)
        }
        _ => calculate(operator, work.number(one)?, work.number(other)?),
    }
}

/// The sum of numbers, or texts or lists one behind the other.
pub(crate) fn add(work: &mut Work, one: &Value, other: &Value) -> Result<Value, Stop> {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => work.written(|out| {
            out.write_str(one)?;
            out.write_str(other)
        }),
        (Value::List(one), Value::List(other)) => {
            Ok(work.list(one.iter().chain(other.iter()).cloned())?.into())
        }
        _ => match (work.number(one), work.number(other)) {
            (Ok(one), Ok(other)) => calculate(Operator::Add, one, other),
            _ => {
                let way_out = if work.is_plain() { "" } else { "; `~` joins values as text" };
                let (one, other) = (called(one), called(other));
                wrong(format!("`+` takes two numbers, texts or lists, not {one} and {other}{way_out}"))
            }
        },
    }
}

/// A text or a list, several times.
fn repeated(work: &mut Work, value: &Value, times: &Value) -> Result<Value, Stop> {
    let times = usize::try_from(work.integer(times)?.max(0)).unwrap_or(usize::MAX);
    match value {
        Value::Text(text) => {
            work.make(text.len().saturating_mul(times))?;
            Ok(if text.is_empty() { "".into() } else { text.repeat(times).into() })
        }
        Value::List(list) => {
            work.make(list.len().saturating_mul(times).saturating_mul(VALUE))?;
            match list.is_empty() {
                true => Ok(value.clone()),
                false => Ok(Value::list(std::iter::repeat_n(list.iter().cloned(), times).flatten())),
            }
        }
        _ => wrong(format!("{} cannot be repeated", called(value))),
    }
}

fn calculate(operator: Operator, one: Number, other: Number) -> Result<Value, Stop> {
    let zero = matches!(other, Number::Integer(0)) || other.float() == 0.0;
    if zero && matches!(operator, Operator::Divide | Operator::DivideDown | Operator::Remainder) {
        return wrong("a number is divided by 0");
    }
    if let (Number::Integer(one), Number::Integer(other)) = (one, other)
        && let Some(result) = of_integers(operator, one, other)
    {
        return match result {
            Some(result) => Ok(result.into()),
            None => wrong("the result is beyond 64 bits; with a float, as in `2.0`, it is rounded"),
        };
    }
    let (one, other) = (one.float(), other.float());
    Ok(match operator {
        Operator::Add => one + other,
        Operator::Subtract => one - other,
        Operator::Multiply => one * other,
        Operator::Divide => one / other,
        Operator::DivideDown => (one / other).floor(),
        Operator::Remainder => one - other * (one / other).floor(),
        // The standard library's power may differ from one machine to the next.
        _ => libm::pow(one, other),
    }
    .into())
}

/// The result of an operation on integers: none if it is a float, and none inside if it is too large.
fn of_integers(operator: Operator, one: i64, other: i64) -> Option<Option<i64>> {
    let down = || {
        let less = one.checked_rem(other)? != 0 && (one < 0) != (other < 0);
        one.checked_div(other)?.checked_sub(i64::from(less))
    };
    match operator {
        Operator::Add => Some(one.checked_add(other)),
        Operator::Subtract => Some(one.checked_sub(other)),
        Operator::Multiply => Some(one.checked_mul(other)),
        Operator::DivideDown => Some(down()),
        Operator::Remainder => {
            let remainder = one.checked_rem(other).unwrap_or(0);
            let below = remainder != 0 && (remainder < 0) != (other < 0);
            Some(Some(if below { remainder + other } else { remainder }))
        }
        Operator::Power if other >= 0 => {
            Some(u32::try_from(other).ok().and_then(|other| one.checked_pow(other)))
        }
        _ => None,
    }
}

/// A number for a comparison: `true` counts as 1, but not in the plain dialect.
fn comparable(work: &Work, value: &Value) -> Option<Number> {
    work.number(value).ok()
}

fn order_of_numbers(one: Number, other: Number) -> Option<Ordering> {
    match (one, other) {
        (Number::Integer(one), Number::Integer(other)) => Some(one.cmp(&other)),
        _ => one.float().partial_cmp(&other.float()),
    }
}

/// Whether two values are equal.
pub(crate) fn equal(work: &mut Work, one: &Value, other: &Value) -> Result<bool, Stop> {
    work.steps(1)?;
    match (one, other) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::Text(one), Value::Text(other)) => {
            work.look(one.len().min(other.len()))?;
            Ok(one == other)
        }
        (Value::List(one), Value::List(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.iter().zip(other.iter()) {
                if !equal(work, one, other)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(one), Value::Map(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (name, value) in one.iter() {
                work.look(name.len())?;
                match other.get(name) {
                    Some(other) if equal(work, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        _ => match (comparable(work, one), comparable(work, other)) {
            (Some(one), Some(other)) => Ok(order_of_numbers(one, other) == Some(Ordering::Equal)),
            _ => Ok(false),
        },
    }
}

/// The order of two values; none if one of them is not a number (NaN).
pub(crate) fn order(work: &mut Work, one: &Value, other: &Value) -> Result<Option<Ordering>, Stop> {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => {
            work.look(one.len())?;
            Ok(Some(one.cmp(other)))
        }
        _ => match (comparable(work, one), comparable(work, other)) {
            (Some(one), Some(other)) => Ok(order_of_numbers(one, other)),
            _ => wrong(format!("there is no order for {} and {}", called(one), called(other))),
        },
    }
}

/// Whether a text, a list or a map has a part.
pub(crate) fn contains(work: &mut Work, all: &Value, one: &Value) -> Result<bool, Stop> {
    match (all, one) {
        (Value::Text(text), Value::Text(part)) => {
            work.look(text.len())?;
            work.look(part.len())?;
            Ok(text.contains(&**part))
        }
        (Value::List(list), _) => has(work, list, one),
        (Value::Map(map), Value::Text(name)) => {
            work.look(name.len())?;
            Ok(map.contains_key(name))
        }
        (Value::Map(_), _) => Ok(false),
        _ => wrong(format!("{} cannot be in {}", called(one), called(all))),
    }
}
