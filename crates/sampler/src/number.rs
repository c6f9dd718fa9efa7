//! Rounding and text of numbers.

use anabranch_value::Value;

/// Rounded to decimal places, halves to even.
pub(crate) fn round_places(number: f64, places: Option<u32>) -> f64 {
    let Some(places) = places else { return number };
    // A double has no more places than these.
    if places > 15 {
        return number;
    }
    let factor = POWERS_OF_TEN[places as usize];
    let scaled = number * factor;
    if scaled.is_finite() { libm::rint(scaled) / factor } else { number }
}

const POWERS_OF_TEN: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number as Python writes it: `3.0`, `0.1`, `1e+16`.
pub(crate) fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |rest| ("-", rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    let text = format!("{number}");
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// A number for messages, short even if it is huge.
pub(crate) fn shown(number: f64) -> String {
    if number.abs() < 1e15 || !number.is_finite() { format!("{number}") } else { format!("{number:e}") }
}

/// A value as text, the way that keys and conversions see it.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Text(text) => (**text).to_owned(),
        Value::Int(int) => int.to_string(),
        Value::Float(float) => float_text(*float),
        Value::Bool(truth) => if *truth { "True" } else { "False" }.to_owned(),
        Value::Null => "None".to_owned(),
        Value::List(_) | Value::Map(_) => value.to_json(),
    }
}

/// The whole number nearest to a float, if 64 bits have it.
pub(crate) fn whole(number: f64) -> Option<i64> {
    let rounded = libm::rint(number);
    // The upper limit is the first float that is too large.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded).then_some(rounded as i64)
}
