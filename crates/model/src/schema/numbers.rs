//! Numbers of JSON: 4 and 4.0 are the same.

use anabranch_value::Value;

/// Whether two values are the same in JSON's sense.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            whole(*float) == Some(*int)
        }
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| same(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The integer value of a float, if it is exact.
pub(crate) fn whole(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
}

/// The number that a text is, if it is exactly one, as JSON writes it.
pub(super) fn from_text(text: &str) -> Option<Value> {
    let number = Value::from_json(text).ok().filter(|value| value.as_number().is_some())?;
    (!text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace)).then_some(number)
}

/// Whether a number is a multiple of another, but for the last digits of floats.
pub(super) fn is_multiple(number: f64, of: f64) -> bool {
    if of == 0.0 {
        return false;
    }
    let ratio = number / of;
    (ratio - ratio.round()).abs() <= 1e-9 * ratio.abs().max(1.0)
}
