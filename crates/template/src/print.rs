//! Values as text.

use std::fmt::{self, Write};

use anabranch_value::Value;

use crate::template::Dialect;

/// Writes a value as an expression in `{{ }}` shows it.
pub(crate) fn print(out: &mut impl Write, value: &Value, dialect: Dialect) -> fmt::Result {
    match (value, dialect) {
        (Value::Text(text), _) => out.write_str(text),
        (Value::Float(float), Dialect::Plain) => plain_float(out, *float),
        (Value::List(_) | Value::Map(_), Dialect::Dataset) => json(out, value, &SPACED, 0),
        _ => repr(out, value, dialect),
    }
}

/// Writes a value as Python's `repr` does.
pub(crate) fn repr(out: &mut impl Write, value: &Value, dialect: Dialect) -> fmt::Result {
    match value {
        Value::Null => out.write_str("None"),
        Value::Bool(truth) => out.write_str(if *truth { "True" } else { "False" }),
        Value::Int(integer) => write!(out, "{integer}"),
        Value::Float(float) if dialect == Dialect::Plain => write!(out, "{float:?}"),
        Value::Float(float) => python_float(out, *float),
        Value::Text(text) => python_quote(out, text),
        Value::List(list) => {
            out.write_char('[')?;
            for (index, element) in list.iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                repr(out, element, dialect)?;
            }
            out.write_char(']')
        }
        Value::Map(map) => {
            out.write_char('{')?;
            for (index, (name, value)) in map.iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                python_quote(out, name)?;
                out.write_str(": ")?;
                repr(out, value, dialect)?;
            }
            out.write_char('}')
        }
    }
}

/// A float as the plain dialect shows it outside of lists and maps.
fn plain_float(out: &mut impl Write, float: f64) -> fmt::Result {
    match float {
        float if float.is_nan() => out.write_str("NaN"),
        float if float.is_infinite() || float.fract() != 0.0 => write!(out, "{float}"),
        float => write!(out, "{float:.1}"),
    }
}

/// A float as Python's `repr` writes it: the fewest digits that read back the same, with an exponent from 1e16 up.
pub(crate) fn python_float(out: &mut impl Write, float: f64) -> fmt::Result {
    if float.is_nan() {
        return out.write_str("nan");
    }
    if float.is_infinite() || float == 0.0 {
        return match (float.is_sign_negative(), float == 0.0) {
            (false, true) => out.write_str("0.0"),
            (true, true) => out.write_str("-0.0"),
            (false, false) => out.write_str("inf"),
            (true, false) => out.write_str("-inf"),
        };
    }
    let short = format!("{float:e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if (-4..16).contains(&exponent) => match float.fract() == 0.0 {
            true => write!(out, "{float:.1}"),
            false => write!(out, "{float}"),
        },
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(out, "{digits}e{sign}{:02}", exponent.abs())
        }
        Err(_) => Err(fmt::Error),
    }
}

fn python_quote(out: &mut impl Write, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    let mut left = text;
    while let Some(at) = left.find(|letter: char| letter == quote || letter == '\\' || letter.is_control()) {
        out.write_str(&left[..at])?;
        let letter = left[at..].chars().next().unwrap_or_default();
        match letter {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            letter if letter.is_control() => write!(out, "\\x{:02x}", u32::from(letter))?,
            letter => write!(out, "\\{letter}")?,
        }
        left = &left[at + letter.len_utf8()..];
    }
    out.write_str(left)?;
    out.write_char(quote)
}

/// The spaces in JSON.
pub(crate) struct Layout {
    comma: &'static str,
    colon: &'static str,
    /// The spaces per level of nesting, each element on its own line.
    indent: Option<usize>,
}

/// JSON without spaces.
pub(crate) const COMPACT: Layout = Layout { comma: ",", colon: ":", indent: None };

/// JSON with a space after each comma and colon, as Python's `json.dumps` writes it.
pub(crate) const SPACED: Layout = Layout { comma: ", ", colon: ": ", indent: None };

impl Layout {
    /// JSON with each element on its own line.
    pub(crate) fn indented(spaces: usize) -> Layout {
        Layout { comma: ",", colon: ": ", indent: Some(spaces) }
    }

    fn line(&self, out: &mut impl Write, depth: usize) -> fmt::Result {
        match self.indent {
            Some(spaces) => write!(out, "\n{:1$}", "", spaces * depth),
            None => Ok(()),
        }
    }
}

/// Writes a value as JSON. Numbers that JSON does not have are `null`.
pub(crate) fn json(out: &mut impl Write, value: &Value, layout: &Layout, depth: usize) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Text(text) => json_quote(out, text),
        Value::Int(integer) => write!(out, "{integer}"),
        Value::Float(float) if !float.is_finite() => out.write_str("null"),
        Value::Float(float) if layout.comma == COMPACT.comma && layout.indent.is_none() => {
            plain_float(out, *float)
        }
        Value::Float(float) => python_float(out, *float),
        Value::List(list) if list.is_empty() => out.write_str("[]"),
        Value::Map(map) if map.is_empty() => out.write_str("{}"),
        Value::List(list) => {
            out.write_char('[')?;
            for (index, element) in list.iter().enumerate() {
                out.write_str(if index > 0 { layout.comma } else { "" })?;
                layout.line(out, depth + 1)?;
                json(out, element, layout, depth + 1)?;
            }
            layout.line(out, depth)?;
            out.write_char(']')
        }
        Value::Map(map) => {
            out.write_char('{')?;
            for (index, (name, value)) in map.iter().enumerate() {
                out.write_str(if index > 0 { layout.comma } else { "" })?;
                layout.line(out, depth + 1)?;
                json_quote(out, name)?;
                out.write_str(layout.colon)?;
                json(out, value, layout, depth + 1)?;
            }
            layout.line(out, depth)?;
            out.write_char('}')
        }
    }
}

fn json_quote(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    let mut left = text;
    while let Some(at) = left.find(|letter: char| letter < ' ' || letter == '"' || letter == '\\') {
        out.write_str(&left[..at])?;
        match left.as_bytes()[at] {
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            mark @ (b'"' | b'\\') => write!(out, "\\{}", char::from(mark))?,
            control => write!(out, "\\u{control:04x}")?,
        }
        left = &left[at + 1..];
    }
    out.write_str(left)?;
    out.write_char('"')
}
