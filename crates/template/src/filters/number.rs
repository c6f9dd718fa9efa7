//! Filters of numbers.

use anabranch_value::Value;

use super::{Arguments, attribute};
use crate::error::{Stop, wrong};
use crate::kinds::Number;
use crate::number_format::percent_format;
use crate::operators::add;
use crate::work::Work;

pub(crate) fn abs(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    match work.number(value)? {
        Number::Integer(integer) => match integer.checked_abs() {
            Some(integer) => Ok(integer.into()),
            None => wrong("the number is too large"),
        },
        Number::Float(float) => Ok(float.abs().into()),
    }
}

pub(crate) fn float(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let Value::Text(digits) = value else {
        return match work.number(value) {
            Ok(number) => Ok(number.float().into()),
            Err(stop) if work.is_plain() => Err(stop),
            Err(_) => Ok(arguments.get(0).cloned().unwrap_or(Value::Float(0.0))),
        };
    };
    work.look(digits.len())?;
    match digits.trim().parse::<f64>() {
        Ok(float) => Ok(float.into()),
        Err(_) if work.is_plain() => wrong("the text is not a number"),
        Err(_) => Ok(arguments.get(0).cloned().unwrap_or(Value::Float(0.0))),
    }
}

pub(crate) fn int(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let otherwise = || Ok(arguments.get(0).cloned().unwrap_or(Value::Int(0)));
    if let Value::Text(digits) = value {
        work.look(digits.len())?;
        let base = arguments.size(work, 1, 10)?;
        return match (parse(digits, base), work.is_plain()) {
            (Some(integer), _) => Ok(integer.into()),
            (None, true) => wrong("the text is not an integer"),
            // As in Jinja, the integer part of a number, else the default.
            (None, false) => match digits.trim().parse::<f64>().ok().and_then(truncated) {
                Some(integer) if base == 10 => Ok(integer.into()),
                _ => otherwise(),
            },
        };
    }
    match work.number(value) {
        Ok(Number::Float(float)) => match truncated(float) {
            Some(integer) => Ok(integer.into()),
            None => wrong("the number is too large for an integer"),
        },
        Ok(integer) => Ok(integer.into()),
        Err(stop) if work.is_plain() => Err(stop),
        Err(_) => otherwise(),
    }
}

fn parse(digits: &str, base: usize) -> Option<i64> {
    let digits = digits.trim();
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        _ => "",
    };
    let digits = digits.strip_prefix(prefix).unwrap_or(digits);
    let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base))?;
    i64::from_str_radix(digits, base).ok()
}

/// The integer part of a float, if it fits.
pub(crate) fn truncated(float: f64) -> Option<i64> {
    // 2^63 is the first float beyond.
    (float.abs() < 9_223_372_036_854_775_808.0).then_some(float.trunc() as i64)
}

pub(crate) fn round(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let digits = match arguments.get(0) {
        None => 0,
        Some(digits) => match work.integer(digits)? {
            digits @ 0..=15 => digits as i32,
            digits @ -15..0 if !work.is_plain() => digits as i32,
            other => return wrong(format!("{other} is not a number of digits, 0 to 15")),
        },
    };
    let scale = 10_f64.powi(digits);
    let method = arguments.text(1, "common")?;
    let number = work.number(value)?;
    let float = number.float();
    let rounded = match (method, number) {
        ("common", Number::Integer(integer)) if digits >= 0 || work.is_plain() => return Ok(integer.into()),
        ("common", _) if work.is_plain() => (float * scale).round() / scale,
        // The digits of the exact value decide, as in Python: 2.675 is less than it looks.
        ("common", _) if digits >= 0 => match float.is_finite() {
            true => format!("{float:.*}", digits as usize).parse().unwrap_or(float),
            false => float,
        },
        ("common", _) => (float * scale).round_ties_even() / scale,
        ("ceil", _) => (float * scale).ceil() / scale,
        ("floor", _) => (float * scale).floor() / scale,
        (other, _) => return wrong(format!("method {other:?} is not common, ceil or floor")),
    };
    let rounded = if rounded.is_finite() { rounded } else { float };
    match (number, method) {
        (Number::Integer(_), "common") => Ok(truncated(rounded).unwrap_or(i64::MAX).into()),
        _ => Ok(rounded.into()),
    }
}

pub(crate) fn sum(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let mut sum = arguments.get(1).cloned().unwrap_or(Value::Int(0));
    for element in work.elements(value)? {
        let number = attribute(&element, arguments.get(0))?;
        work.number(&number)?;
        sum = add(work, &sum, &number)?;
    }
    Ok(sum)
}

pub(crate) fn format(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    let values: Vec<Value> = arguments.values.iter().flatten().cloned().collect();
    percent_format(work, &text, &values)
}
