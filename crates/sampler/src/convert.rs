//! The conversion of sampled values (`convert_to`).

use anabranch_value::Value;

use crate::compile::FieldType;
use crate::error::Error;
use crate::number::{value_text, whole};
use crate::params::Convert;
use crate::time::{TimeFormat, parse_time};

/// A conversion with its format parsed.
#[derive(Clone, Debug)]
pub struct CompiledConvert(Step);

#[derive(Clone, Debug)]
enum Step {
    Int,
    Float,
    Text,
    Time(TimeFormat),
}

impl Convert {
    /// The conversion that a config names: `int`, `float`, `str`, or a `strftime` format.
    pub fn parse(text: &str) -> Result<Convert, Error> {
        match text {
            "int" => Ok(Convert::Int),
            "float" => Ok(Convert::Float),
            "str" => Ok(Convert::Text),
            format if format.contains('%') => Ok(Convert::Strftime(format.to_owned())),
            other => Err(Error::param(
                "convert_to",
                format!("expected int, float, str or a date format such as %Y-%m-%d, found `{other}`"),
            )),
        }
    }

    /// Checks a format and parses it.
    pub fn compile(&self) -> Result<CompiledConvert, Error> {
        Ok(CompiledConvert(match self {
            Convert::Int => Step::Int,
            Convert::Float => Step::Float,
            Convert::Text => Step::Text,
            Convert::Strftime(format) => {
                Step::Time(TimeFormat::new(format).map_err(|problem| Error::param("convert_to", problem))?)
            }
        }))
    }

    /// The type of converted values.
    pub fn value_type(&self) -> FieldType {
        match self {
            Convert::Int => FieldType::Int,
            Convert::Float => FieldType::Float,
            Convert::Text | Convert::Strftime(_) => FieldType::Text,
        }
    }
}

impl CompiledConvert {
    /// The converted value; null stays null.
    pub fn apply(&self, value: &Value) -> Result<Value, Error> {
        if value.is_null() {
            return Ok(Value::Null);
        }
        match &self.0 {
            Step::Int => match value {
                Value::Int(_) => Ok(value.clone()),
                _ => whole(number(value, "int")?)
                    .map(Value::Int)
                    .ok_or_else(|| fault(value, "int", "it does not fit into 64 bits")),
            },
            Step::Float => number(value, "float").map(Value::Float),
            Step::Text => match value {
                Value::Text(_) => Ok(value.clone()),
                _ => Ok(value_text(value).into()),
            },
            Step::Time(format) => {
                let time = value
                    .as_text()
                    .and_then(parse_time)
                    .ok_or_else(|| fault(value, "a formatted date", "it is not a date"))?;
                Ok(format.format(time).into())
            }
        }
    }
}

fn number(value: &Value, target: &str) -> Result<f64, Error> {
    let found = match value {
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Value::Text(text) => text.trim().parse().ok(),
        other => other.as_number(),
    };
    match found {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(fault(value, target, "it is not finite")),
        None => Err(fault(value, target, "it is not a number")),
    }
}

fn fault(value: &Value, target: &str, problem: &str) -> Error {
    let value = match value {
        Value::Text(text) => format!("`{}`", text.chars().take(80).collect::<String>()),
        Value::List(_) | Value::Map(_) => value.kind().to_owned(),
        other => value_text(other),
    };
    Error::Convert { value, target: target.to_owned(), problem: problem.to_owned() }
}
