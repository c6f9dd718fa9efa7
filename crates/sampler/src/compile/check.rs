//! The checks of all parameters but those of persons.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_value::Value;

use super::{CompiledTimedelta, FieldType, Kind, type_of};
use crate::choice::Choice;
use crate::error::{Error, finite, probability};
use crate::number::{shown, value_text};
use crate::params::{Category, Datetime, Sampler, Subcategory, TimeUnit, Timedelta, Uniform};
use crate::person::CompiledPerson;
use crate::time::{Date, TimeFormat, parse_time};

/// The format of dates unless `convert_to` names another.
const ISO: &str = "%Y-%m-%dT%H:%M:%S";
/// Larger counts are not whole in a double.
const MAX_TRIALS: u64 = 1 << 53;
const MAX_MEAN: f64 = 1e15;
/// Longer deltas leave the calendar whatever the reference.
const MAX_DELTA: u64 = 400_000_000_000;

pub(super) fn compile(sampler: &Sampler, as_of: Date, warnings: &mut Vec<String>) -> Result<Kind, Error> {
    match sampler {
        Sampler::Uuid(params) => Ok(Kind::Uuid {
            prefix: params.prefix.clone().unwrap_or_default(),
            digits: if params.short_form { 8 } else { 32 },
            uppercase: params.uppercase,
        }),
        Sampler::Category(params) => category(params),
        Sampler::Subcategory(params) => subcategory(params),
        Sampler::Uniform(params) => uniform(params),
        Sampler::Gaussian(params) => {
            let mean = finite("mean", params.mean)?;
            let stddev = not_negative("stddev", params.stddev)?;
            Ok(Kind::Gaussian { mean, stddev, places: params.decimal_places })
        }
        Sampler::Bernoulli { p } => Ok(Kind::Bernoulli { p: probability("p", *p)? }),
        Sampler::BernoulliMixture { p, distribution } => {
            Ok(Kind::Mixture { p: probability("p", *p)?, distribution: distribution.compile()? })
        }
        Sampler::Binomial { n, p } => {
            if *n > MAX_TRIALS {
                return Err(Error::param("n", format!("expected at most {MAX_TRIALS}, found {n}")));
            }
            Ok(Kind::Binomial { n: *n as f64, p: probability("p", *p)? })
        }
        Sampler::Poisson { mean } => {
            let mean = not_negative("mean", *mean)?;
            if mean > MAX_MEAN {
                return Err(Error::param(
                    "mean",
                    format!("expected at most {MAX_MEAN:e}, found {}", shown(mean)),
                ));
            }
            Ok(Kind::Poisson { mean })
        }
        Sampler::Scipy { distribution, decimal_places } => {
            Ok(Kind::Scipy { distribution: distribution.compile()?, places: *decimal_places })
        }
        Sampler::Datetime(params) => datetime(params),
        Sampler::Timedelta(params) => timedelta(params),
        Sampler::Person(params) => Ok(Kind::Person(Box::new(CompiledPerson::new(params, as_of, warnings)?))),
    }
}

fn not_negative(param: &str, number: f64) -> Result<f64, Error> {
    if finite(param, number)? < 0.0 {
        return Err(Error::param(param, format!("expected a number from 0 up, found {number}")));
    }
    Ok(number)
}

fn category(params: &Category) -> Result<Kind, Error> {
    values("values", &params.values)?;
    let choice = match &params.weights {
        None => None,
        Some(weights) if weights.len() == params.values.len() => Some(Choice::new(weights)?),
        Some(weights) => {
            let (weights, values) = (weights.len(), params.values.len());
            let problem =
                format!("expected one weight per value, found {weights} weights for {values} values");
            return Err(Error::param("weights", problem));
        }
    };
    let joint = type_of(&params.values);
    Ok(Kind::Category { values: params.values.iter().map(|value| in_type(value, joint)).collect(), choice })
}

fn values(param: &str, values: &[Value]) -> Result<(), Error> {
    if values.is_empty() {
        return Err(Error::param(param, "the list is empty; give at least one value"));
    }
    for value in values {
        match value {
            Value::Text(_) | Value::Int(_) | Value::Bool(_) => {}
            Value::Float(float) if float.is_finite() => {}
            Value::Float(float) => {
                return Err(Error::param(param, format!("expected text and finite numbers, found {float}")));
            }
            other => {
                return Err(Error::param(
                    param,
                    format!("expected text and numbers, found {}", other.kind()),
                ));
            }
        }
    }
    Ok(())
}

/// The value in the type that a column of such values has.
fn in_type(value: &Value, joint: FieldType) -> Value {
    match (value, joint) {
        (Value::Int(int), FieldType::Float) => Value::Float(*int as f64),
        (Value::Text(_), _) => value.clone(),
        (_, FieldType::Text) => value_text(value).into(),
        _ => value.clone(),
    }
}

fn subcategory(params: &Subcategory) -> Result<Kind, Error> {
    if params.values.is_empty() {
        return Err(Error::param("values", "no lists; give one list per value of the category"));
    }
    let joint = type_of(params.values.iter().flat_map(|(_, values)| values));
    let mut lists: HashMap<String, Arc<[Value]>> = HashMap::with_capacity(params.values.len());
    for (parent, list) in &params.values {
        values(&format!("values.{parent}"), list)?;
        if lists.insert(parent.clone(), list.iter().map(|value| in_type(value, joint)).collect()).is_some() {
            return Err(Error::param(format!("values.{parent}"), "given twice; join the two lists"));
        }
    }
    Ok(Kind::Subcategory { column: params.category.as_str().into(), values: lists })
}

fn uniform(params: &Uniform) -> Result<Kind, Error> {
    let (low, high) = (finite("low", params.low)?, finite("high", params.high)?);
    if low > high {
        return Err(Error::param(
            "low",
            format!("expected at most `high` ({high}), found {low}; swap the two"),
        ));
    }
    let width = finite("high", high - low)
        .map_err(|_| Error::param("high", "too far from `low`; the difference must be a finite number"))?;
    Ok(Kind::Uniform { low, width, places: params.decimal_places })
}

fn datetime(params: &Datetime) -> Result<Kind, Error> {
    let time = |param: &str, text: &str| {
        parse_time(text).ok_or_else(|| {
            let text: String = text.chars().take(80).collect();
            Error::param(
                param,
                format!("`{text}` is not a date; write it as 2024-05-31 or 2024-05-31T14:30:00"),
            )
        })
    };
    let (start, end) = (time("start", &params.start)?, time("end", &params.end)?);
    if start >= end {
        let (start, end) = (&params.start, &params.end);
        return Err(Error::param("end", format!("expected a time after `start` ({start}), found {end}")));
    }
    Ok(Kind::Datetime { start, seconds: (end - start) as u64, unit: params.unit, iso: iso()? })
}

fn timedelta(params: &Timedelta) -> Result<Kind, Error> {
    let seconds_per_unit = match params.unit {
        TimeUnit::Day => 86_400,
        TimeUnit::Hour => 3_600,
        TimeUnit::Minute => 60,
        TimeUnit::Second => 1,
        TimeUnit::Month | TimeUnit::Year => {
            return Err(Error::param("unit", "a timedelta has no months or years; use D, h, m or s"));
        }
    };
    let (least, end) = (params.dt_min, params.dt_max);
    if least >= end {
        return Err(Error::param("dt_max", format!("expected more than `dt_min` ({least}), found {end}")));
    }
    if end > MAX_DELTA {
        return Err(Error::param("dt_max", format!("expected at most {MAX_DELTA}, found {end}")));
    }
    let column = params.reference_column_name.clone();
    if column.is_empty() {
        return Err(Error::param("reference_column_name", "empty; name a datetime column"));
    }
    Ok(Kind::Timedelta(Box::new(CompiledTimedelta {
        column,
        least,
        count: end - least,
        seconds_per_unit,
        reference: None,
        iso: iso()?,
    })))
}

fn iso() -> Result<TimeFormat, Error> {
    TimeFormat::new(ISO).map_err(|problem| Error::param("convert_to", problem))
}
