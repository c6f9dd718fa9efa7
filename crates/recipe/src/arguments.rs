//! Typed access to the parameters of a call.

use std::collections::BTreeMap;

use anabranch_content::Value;
use bytes::Bytes;

use crate::budget::CallBudget;
use crate::function::Fault;
use crate::param::{self, Param, read_bool, read_float, read_int, unlike};
use crate::recipe::Params;

/// The parameters of a call. Each accessor returns the value that the recipe gives, or else the declared default. A
/// value that the declaration does not allow is a [`Fault::Param`].
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    declared: &'a [Param],
    given: &'a Params,
    budget: Option<&'a CallBudget>,
}

impl<'a> Arguments<'a> {
    /// The parameters that a recipe gives to a function with these declarations.
    pub fn new(declared: &'a [Param], given: &'a Params) -> Arguments<'a> {
        Arguments { declared, given, budget: None }
    }

    /// The same parameters, of a call with this budget.
    #[must_use]
    pub fn within(self, budget: &'a CallBudget) -> Arguments<'a> {
        Arguments { budget: Some(budget), ..self }
    }

    /// Fails if the call must stop, because no caller waits for it any more or its time is over. A function that runs
    /// long checks at least once every few milliseconds.
    pub fn check_budget(&self) -> Result<(), Fault> {
        self.budget.map_or(Ok(()), CallBudget::check)
    }

    /// The parameters as the recipe gives them.
    pub fn given(&self) -> &'a Params {
        self.given
    }

    /// A value of any kind.
    pub fn value(&self, name: &str) -> Result<&'a Value, Fault> {
        let declared = self.declared.iter().find(|param| param.name == name);
        match (self.given.get(name), declared) {
            (Some(value), Some(param)) => param.check(value).map(|()| value),
            (Some(value), None) => Ok(value),
            (None, Some(Param { default: Some(value), .. })) => Ok(value),
            (None, Some(param)) => Err(missing(param)),
            (None, None) => Err(Fault::param(name, "missing")),
        }
    }

    /// Text.
    pub fn text(&self, name: &str) -> Result<&'a str, Fault> {
        match self.value(name)? {
            Value::Text(text) => Ok(text),
            other => Err(unlike(name, "text", other)),
        }
    }

    /// A whole number, 0 or more, as a number or in decimal digits.
    pub fn number(&self, name: &str) -> Result<u64, Fault> {
        let value = self.value(name)?;
        let number = read_int(value).and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| unlike(name, &param::ParamKind::NUMBER.to_string(), value))
    }

    /// The same as a `usize`, for a number of items in memory. Larger numbers become `usize::MAX`.
    pub fn count(&self, name: &str) -> Result<usize, Fault> {
        Ok(usize::try_from(self.number(name)?).unwrap_or(usize::MAX))
    }

    /// A signed whole number, as a number or in decimal digits.
    pub fn int(&self, name: &str) -> Result<i64, Fault> {
        let value = self.value(name)?;
        let number = read_int(value).and_then(|number| i64::try_from(number).ok());
        number.ok_or_else(|| unlike(name, "a whole number of 64 bits", value))
    }

    /// A floating-point number, as a number or as text.
    pub fn float(&self, name: &str) -> Result<f64, Fault> {
        let value = self.value(name)?;
        read_float(value).ok_or_else(|| unlike(name, "a number", value))
    }

    /// A truth value, as such or as the text `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<bool, Fault> {
        let value = self.value(name)?;
        read_bool(value).ok_or_else(|| unlike(name, "true or false", value))
    }

    /// Bytes, as such or in hex digits of either case.
    pub fn bytes(&self, name: &str) -> Result<Bytes, Fault> {
        let value = self.value(name)?;
        let bytes = match value {
            Value::Bytes(bytes) => Some(bytes.clone()),
            Value::Text(digits) => {
                data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok().map(Bytes::from)
            }
            _ => None,
        };
        bytes.ok_or_else(|| unlike(name, &param::ParamKind::BYTES.to_string(), value))
    }

    /// Exactly `LEN` bytes, as such or in hex digits.
    pub fn array<const LEN: usize>(&self, name: &str) -> Result<[u8; LEN], Fault> {
        let bytes = self.bytes(name)?;
        bytes[..].try_into().map_err(|_| {
            Fault::param(name, format!("has {} bytes; {LEN} are {} hex digits", bytes.len(), LEN * 2))
        })
    }

    /// Bytes, as such or as the UTF-8 bytes of a text.
    pub fn literal(&self, name: &str) -> Result<Bytes, Fault> {
        match self.value(name)? {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            Value::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            other => Err(unlike(name, "text or bytes", other)),
        }
    }

    /// A list.
    pub fn list(&self, name: &str) -> Result<&'a [Value], Fault> {
        match self.value(name)? {
            Value::List(values) => Ok(values),
            other => Err(unlike(name, "a list", other)),
        }
    }

    /// Several texts, as a list or as one comma-separated text.
    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, Fault> {
        let text = |value: &'a Value| match value {
            Value::Text(text) => Ok(&**text),
            other => Err(unlike(name, "text", other)),
        };
        match self.value(name)? {
            Value::List(values) => values.iter().map(text).collect(),
            value => Ok(text(value)?.split(',').map(str::trim).collect()),
        }
    }

    /// As [`Arguments::texts`], but more than `most` texts are an error.
    pub(crate) fn texts_most(&self, name: &str, most: usize) -> Result<Vec<&'a str>, Fault> {
        let count = match self.value(name)? {
            Value::List(values) => values.len(),
            Value::Text(text) => memchr::memchr_iter(b',', text.as_bytes()).count() + 1,
            _ => 0,
        };
        match count > most {
            true => Err(Fault::param(name, format!("there are {count} {name}; there may be {most}"))),
            false => self.texts(name),
        }
    }

    /// A map.
    pub fn map(&self, name: &str) -> Result<&'a BTreeMap<String, Value>, Fault> {
        match self.value(name)? {
            Value::Map(values) => Ok(values),
            other => Err(unlike(name, "a map", other)),
        }
    }
}

/// The fault of a call without a required parameter.
pub(crate) fn missing(param: &Param) -> Fault {
    Fault::param(&param.name, format!("missing: {} ({})", param.kind, param.about))
}
