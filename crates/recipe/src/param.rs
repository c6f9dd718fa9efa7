//! Declarations of parameters, as data. The checks of a call, its defaults, the messages and the reference page are all
//! derived from them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use anabranch_content::Value;

use crate::function::Fault;

/// A parameter of a function.
///
/// ```
/// # use anabranch_recipe::{Param, ParamKind};
/// let level = Param::new("level", ParamKind::int(1, 9), "1 is fast, 9 is small").or(6);
/// assert_eq!(level.to_string(), "a whole number, 1 to 9; default 6");
/// ```
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its meaning.
    pub about: Cow<'static, str>,
    /// The values that it allows.
    pub kind: ParamKind,
    /// Its value if a call omits it; `None` if it is required.
    pub default: Option<Value>,
}

impl Param {
    /// A required parameter.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        kind: ParamKind,
        about: impl Into<Cow<'static, str>>,
    ) -> Param {
        Param { name: name.into(), about: about.into(), kind, default: None }
    }

    /// The same parameter with a default.
    pub fn or(mut self, default: impl Into<Value>) -> Param {
        self.default = Some(default.into());
        self
    }

    /// Whether the parameter is required.
    pub fn is_needed(&self) -> bool {
        self.default.is_none()
    }

    /// Checks a value of this parameter.
    pub fn check(&self, value: &Value) -> Result<(), Fault> {
        match self.kind.takes(value) {
            true => Ok(()),
            false => Err(unlike(&self.name, &self.kind.to_string(), value)),
        }
    }
}

/// For example `a whole number, 1 to 9; default 6`.
impl fmt::Display for Param {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.kind)?;
        match &self.default {
            None => Ok(()),
            Some(Value::Map(map)) if map.is_empty() => out.write_str("; default {}"),
            Some(Value::List(list)) if list.is_empty() => out.write_str("; default []"),
            Some(value) => write!(out, "; default {}", shown(value)),
        }
    }
}

/// The values that a parameter allows. A number, a truth value and bytes may also be written as text, because recipes
/// of Deriva have text parameters only.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// Any text.
    Text,
    /// One of these texts.
    OneOf(Vec<Cow<'static, str>>),
    /// Text, or arbitrary bytes.
    TextOrBytes,
    /// A whole number, as such or in decimal digits.
    Int {
        /// The minimum.
        least: i128,
        /// The maximum.
        most: i128,
    },
    /// A number with a fraction, a whole number, or either as text; never NaN.
    Float {
        /// The minimum.
        least: f64,
        /// The maximum.
        most: f64,
    },
    /// True or false, as such or as text.
    Bool,
    /// Bytes, as such or in hex digits of either case.
    Bytes {
        /// The minimum length.
        least: u64,
        /// The maximum length.
        most: u64,
    },
    /// Several texts, as a list or as one comma-separated text.
    Names,
    /// A list.
    List {
        /// The kind of its elements.
        of: Box<ParamKind>,
        /// The minimum length.
        least: u64,
        /// The maximum length.
        most: u64,
    },
    /// A map of any values.
    Map,
}

impl ParamKind {
    /// A whole number from 0 to 2^64 - 1.
    pub const NUMBER: ParamKind = ParamKind::Int { least: 0, most: u64::MAX as i128 };

    /// A whole number from 1 to 2^64 - 1.
    pub const POSITIVE: ParamKind = ParamKind::Int { least: 1, most: u64::MAX as i128 };

    /// Any number of bytes.
    pub const BYTES: ParamKind = ParamKind::Bytes { least: 0, most: u64::MAX };

    /// A whole number within bounds.
    pub const fn int(least: i128, most: i128) -> ParamKind {
        ParamKind::Int { least, most }
    }

    /// Exactly `count` bytes.
    pub const fn bytes(count: u64) -> ParamKind {
        ParamKind::Bytes { least: count, most: count }
    }

    /// One of these texts.
    pub fn one_of(texts: &[&'static str]) -> ParamKind {
        ParamKind::OneOf(texts.iter().map(|text| Cow::Borrowed(*text)).collect())
    }

    /// A list of at least `least` elements.
    pub fn list(of: ParamKind, least: u64) -> ParamKind {
        ParamKind::List { of: Box::new(of), least, most: u64::MAX }
    }

    /// Whether this kind allows a value.
    pub fn takes(&self, value: &Value) -> bool {
        match self {
            ParamKind::Text => matches!(value, Value::Text(_)),
            ParamKind::OneOf(texts) => {
                matches!(value, Value::Text(text) if texts.iter().any(|one| one == text))
            }
            ParamKind::TextOrBytes => matches!(value, Value::Text(_) | Value::Bytes(_)),
            ParamKind::Int { least, most } => {
                read_int(value).is_some_and(|number| (*least..=*most).contains(&number))
            }
            ParamKind::Float { least, most } => {
                read_float(value).is_some_and(|number| (*least..=*most).contains(&number))
            }
            ParamKind::Bool => read_bool(value).is_some(),
            ParamKind::Bytes { least, most } => {
                byte_count(value).is_some_and(|count| (*least..=*most).contains(&count))
            }
            ParamKind::Names => match value {
                Value::List(names) => {
                    !names.is_empty() && names.iter().all(|name| matches!(name, Value::Text(_)))
                }
                value => matches!(value, Value::Text(_)),
            },
            ParamKind::List { of, least, most } => match value {
                Value::List(values) => {
                    (*least..=*most).contains(&(values.len() as u64))
                        && values.iter().all(|value| of.takes(value))
                }
                _ => false,
            },
            ParamKind::Map => matches!(value, Value::Map(_)),
        }
    }
}

/// For example `a whole number, 1 to 9`.
impl fmt::Display for ParamKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INT_MOST: i128 = u64::MAX as i128;
        match self {
            ParamKind::Text => out.write_str("text"),
            ParamKind::OneOf(texts) => {
                for (place, text) in texts.iter().enumerate() {
                    let before = match place {
                        0 => "",
                        _ if place + 1 == texts.len() => " or ",
                        _ => ", ",
                    };
                    write!(out, "{before}`{text}`")?;
                }
                Ok(())
            }
            ParamKind::TextOrBytes => out.write_str("text or bytes"),
            ParamKind::Int { least: 0, most: INT_MOST } => out.write_str("a whole number"),
            ParamKind::Int { least, most: INT_MOST } => write!(out, "a whole number, {least} or more"),
            ParamKind::Int { least, most } => write!(out, "a whole number, {least} to {most}"),
            ParamKind::Float { least: f64::NEG_INFINITY, most: f64::INFINITY } => out.write_str("a number"),
            ParamKind::Float { least, most } => write!(out, "a number, {least} to {most}"),
            ParamKind::Bool => out.write_str("true or false"),
            ParamKind::Bytes { least: 0, most: u64::MAX } => out.write_str("bytes, or hex digits"),
            ParamKind::Bytes { least: 1, most: u64::MAX } => out.write_str("bytes, or hex digits, not empty"),
            ParamKind::Bytes { least, most } if least == most => {
                write!(out, "{least} bytes, or {} hex digits", least * 2)
            }
            ParamKind::Bytes { least, most } => write!(out, "{least} to {most} bytes, or hex digits"),
            ParamKind::Names => out.write_str("a list of texts, or one text with commas between them"),
            ParamKind::List { of, least, most } => {
                let of = if **of == ParamKind::Text { "texts".to_owned() } else { format!("values: {of}") };
                write!(out, "a list of {of}")?;
                match (least, most) {
                    (0, &u64::MAX) => Ok(()),
                    (1, &u64::MAX) => out.write_str(", one or more"),
                    (least, &u64::MAX) => write!(out, ", {least} or more"),
                    (least, most) => write!(out, ", {least} to {most}"),
                }
            }
            ParamKind::Map => out.write_str("a map"),
        }
    }
}

/// A whole number, as such or in decimal digits.
pub(crate) fn read_int(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Text(digits) => digits.parse().ok(),
        _ => None,
    }
}

/// A number, as such or as text.
pub(crate) fn read_float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Text(digits) => digits.parse().ok(),
        _ => None,
    }
}

/// A truth value, as such or as text.
pub(crate) fn read_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// The number of bytes in a value, given as such or in hex digits.
fn byte_count(value: &Value) -> Option<u64> {
    match value {
        Value::Bytes(bytes) => Some(bytes.len() as u64),
        Value::Text(digits) => {
            let are_hex = digits.len() % 2 == 0 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            are_hex.then_some(digits.len() as u64 / 2)
        }
        _ => None,
    }
}

/// The fault of a value that the parameter does not allow.
pub(crate) fn unlike(name: &str, allowed: &str, got: &Value) -> Fault {
    Fault::param(name, format!("{} is not {allowed}", shown(got)))
}

/// A value in short form, for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(value) if value.len() <= 40 => format!("{value:?}"),
        Value::Text(value) => format!("text of {} bytes", value.len()),
        Value::Bytes(value) => format!("{} bytes", value.len()),
        Value::Address(_) => "an address".to_owned(),
        Value::List(values) => format!("a list of {}", values.len()),
        Value::Map(_) => "a map".to_owned(),
    }
}

/// An empty list, as a default.
pub(crate) fn no_values() -> Value {
    Value::List(Vec::new())
}

/// An empty map, as a default.
pub(crate) fn no_entries() -> Value {
    Value::Map(BTreeMap::new())
}
