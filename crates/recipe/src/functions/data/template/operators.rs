//! What is made of two values.

use std::cmp::Ordering;
use std::fmt::Write;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::code::Operator;
use super::kinds::{Number, called, number};
use super::work::{Stop, Work, elements, item, wrong};

/// What an operator makes of two values.
pub(super) fn apply(work: &mut Work, operator: Operator, one: &Value, other: &Value) -> Result<Value, Stop> {
    match operator {
        Operator::Add => add(work, one, other),
        Operator::Join => work.written(|made| write!(made, "{one}{other}")),
        Operator::Equal => Ok(equal(work, one, other)?.into()),
        Operator::Unequal => Ok((!equal(work, one, other)?).into()),
        Operator::Less => Ok(order(work, one, other)?.is_lt().into()),
        Operator::LessOrEqual => Ok(order(work, one, other)?.is_le().into()),
        Operator::More => Ok(order(work, one, other)?.is_gt().into()),
        Operator::MoreOrEqual => Ok(order(work, one, other)?.is_ge().into()),
        Operator::In => Ok(contains(work, other, one)?.into()),
        _ => calculate(operator, number(one)?, number(other)?),
    }
}

/// The sum of numbers, or texts or lists one behind the other.
pub(super) fn add(work: &mut Work, one: &Value, other: &Value) -> Result<Value, Stop> {
    match (one.kind(), other.kind()) {
        (ValueKind::Number, ValueKind::Number) => calculate(Operator::Add, number(one)?, number(other)?),
        (ValueKind::String, ValueKind::String) => work.written(|made| write!(made, "{one}{other}")),
        (ValueKind::Seq, ValueKind::Seq) => Ok(work.list(elements(one).chain(elements(other)))?.into()),
        _ => {
            wrong(format!("`+` takes two numbers, texts or lists, not {} and {}", called(one), called(other)))
        }
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
            Some(result) => Ok(Number::Integer(result).into()),
            None => wrong("the result is beyond 128 bits"),
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

/// What is an integer, if that is not too large; nothing: it is a float.
fn of_integers(operator: Operator, one: i128, other: i128) -> Option<Option<i128>> {
    let down = || {
        let less = one.checked_rem(other)? != 0 && (one < 0) != (other < 0);
        one.checked_div(other)?.checked_sub(i128::from(less))
    };
    match operator {
        Operator::Add => Some(one.checked_add(other)),
        Operator::Subtract => Some(one.checked_sub(other)),
        Operator::Multiply => Some(one.checked_mul(other)),
        Operator::DivideDown => Some(down()),
        Operator::Remainder => Some(down().and_then(|down| one.checked_sub(down.checked_mul(other)?))),
        Operator::Power if other >= 0 => {
            Some(u32::try_from(other).ok().and_then(|other| one.checked_pow(other)))
        }
        _ => None,
    }
}

fn equal(work: &mut Work, one: &Value, other: &Value) -> Result<bool, Stop> {
    if one.kind() != other.kind() {
        return Ok(false);
    }
    work.weigh(one)?;
    Ok(one == other)
}

fn order(work: &mut Work, one: &Value, other: &Value) -> Result<Ordering, Stop> {
    match (one.kind(), other.kind()) {
        (ValueKind::Number, ValueKind::Number) => Ok(one.cmp(other)),
        (ValueKind::String, ValueKind::String) => {
            work.weigh(one)?;
            Ok(one.cmp(other))
        }
        _ => wrong(format!("there is no order for {} and {}", called(one), called(other))),
    }
}

fn contains(work: &mut Work, all: &Value, one: &Value) -> Result<bool, Stop> {
    match (all.kind(), one.as_str()) {
        (ValueKind::String, Some(part)) => {
            work.weigh(all)?;
            work.weigh(one)?;
            Ok(all.as_str().is_some_and(|text| text.contains(part)))
        }
        (ValueKind::Seq, _) => {
            for element in elements(all) {
                work.steps(1)?;
                if equal(work, &element, one)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (ValueKind::Map, _) => {
            work.weigh(one)?;
            Ok(!item(all, one).is_undefined())
        }
        _ => wrong(format!("{} cannot be in {}", called(one), called(all))),
    }
}
