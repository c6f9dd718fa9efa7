//! Samplers with everything parsed and checked, so that a draw is only a draw.

mod check;

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_value::Value;

use crate::choice::Choice;
use crate::draw::{binomial, normal, poisson};
use crate::error::Error;
use crate::number::{round_places, value_text, whole};
use crate::params::{Sampler, Subcategory, TimeUnit};
use crate::person::CompiledPerson;
use crate::scipy::CompiledDistribution;
use crate::stream::Stream;
use crate::time::{Date, TimeFormat, in_range, parse_time, truncate};

/// The type of sampled values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    Text,
    Int,
    Float,
    Bool,
    /// A map with these fields, in this order.
    Struct(&'static [(&'static str, FieldType)]),
}

/// A sampler that is ready to draw.
#[derive(Clone, Debug)]
pub struct CompiledSampler {
    kind: Kind,
    warnings: Vec<String>,
}

#[derive(Clone, Debug)]
enum Kind {
    Uuid { prefix: String, digits: usize, uppercase: bool },
    Category { values: Arc<[Value]>, choice: Option<Choice> },
    Subcategory { column: Arc<str>, values: HashMap<String, Arc<[Value]>> },
    Uniform { low: f64, width: f64, places: Option<u32> },
    Gaussian { mean: f64, stddev: f64, places: Option<u32> },
    Bernoulli { p: f64 },
    Mixture { p: f64, distribution: CompiledDistribution },
    Binomial { n: f64, p: f64 },
    Poisson { mean: f64 },
    Scipy { distribution: CompiledDistribution, places: Option<u32> },
    Datetime { start: i64, seconds: u64, unit: TimeUnit, iso: TimeFormat },
    Timedelta(Box<CompiledTimedelta>),
    Person(Box<CompiledPerson>),
}

#[derive(Clone, Debug)]
struct CompiledTimedelta {
    column: String,
    least: u64,
    count: u64,
    seconds_per_unit: i64,
    /// The format of the reference column's values, if it is known.
    reference: Option<TimeFormat>,
    iso: TimeFormat,
}

impl Sampler {
    /// Whether the parameters are good; the returned texts are warnings.
    pub fn check(&self) -> Result<Vec<String>, Error> {
        // A person's age fits any day.
        let day = Date::from_days(0);
        Ok(self.compile(day)?.warnings)
    }

    /// The column whose value the sampler needs: the parent of a subcategory, the reference of a timedelta.
    pub fn depends_on(&self) -> Option<&str> {
        match self {
            Sampler::Subcategory(params) => Some(&params.category),
            Sampler::Timedelta(params) => Some(&params.reference_column_name),
            _ => None,
        }
    }

    /// The type of the sampler's values, before any conversion.
    pub fn value_type(&self) -> FieldType {
        match self {
            Sampler::Uuid(_) | Sampler::Datetime(_) | Sampler::Timedelta(_) => FieldType::Text,
            Sampler::Category(params) => type_of(&params.values),
            Sampler::Subcategory(params) => type_of(params.values.iter().flat_map(|(_, values)| values)),
            Sampler::Uniform(_) | Sampler::Gaussian(_) => FieldType::Float,
            Sampler::Bernoulli { .. } | Sampler::Binomial { .. } | Sampler::Poisson { .. } => FieldType::Int,
            Sampler::BernoulliMixture { distribution, .. } | Sampler::Scipy { distribution, .. } => {
                match distribution.compile() {
                    Ok(compiled) if compiled.discrete => FieldType::Int,
                    _ => FieldType::Float,
                }
            }
            Sampler::Person(person) => FieldType::Struct(person.fields()),
        }
    }

    /// Checks and parses the parameters. Ages of persons count up to the given day.
    pub fn compile(&self, as_of: Date) -> Result<CompiledSampler, Error> {
        let mut warnings = Vec::new();
        Ok(CompiledSampler { kind: check::compile(self, as_of, &mut warnings)?, warnings })
    }
}

/// The one type of all values: numbers of both kinds are floats, and any other mixture is text.
fn type_of<'a>(values: impl IntoIterator<Item = &'a Value>) -> FieldType {
    let types = values.into_iter().map(|value| match value {
        Value::Int(_) => FieldType::Int,
        Value::Float(_) => FieldType::Float,
        Value::Bool(_) => FieldType::Bool,
        _ => FieldType::Text,
    });
    let is_number = |of: FieldType| matches!(of, FieldType::Int | FieldType::Float);
    let joint = types.reduce(|one, other| match (one, other) {
        _ if one == other => one,
        _ if is_number(one) && is_number(other) => FieldType::Float,
        _ => FieldType::Text,
    });
    joint.unwrap_or(FieldType::Text)
}

impl CompiledSampler {
    /// What the user should know: a locale that was replaced, a city without a table.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Reads the reference column of a timedelta in the format that the column was converted to.
    pub fn with_reference_format(mut self, format: TimeFormat) -> CompiledSampler {
        if let Kind::Timedelta(timedelta) = &mut self.kind {
            timedelta.reference = Some(format);
        }
        self
    }

    /// A value. `input` is the value of the column that [`Sampler::depends_on`] names.
    pub fn sample(&self, stream: &mut Stream, input: Option<&Value>) -> Result<Value, Error> {
        match &self.kind {
            Kind::Uuid { prefix, digits, uppercase } => Ok(uuid(prefix, *digits, *uppercase, stream).into()),
            Kind::Category { values, choice } => Ok(match choice {
                Some(choice) => values[choice.draw(stream)].clone(),
                None => stream.pick(values).clone(),
            }),
            Kind::Subcategory { column, values } => subcategory(column, values, stream, input),
            Kind::Uniform { low, width, places } => {
                Ok(Value::Float(round_places(low + width * stream.unit(), *places)))
            }
            Kind::Gaussian { mean, stddev, places } => {
                finite_float(round_places(mean + stddev * normal(stream), *places))
            }
            Kind::Bernoulli { p } => Ok(Value::Int(stream.chance(*p).into())),
            Kind::Mixture { p, distribution } => {
                // Drawn in any case, so that a change of `p` alone changes no other number.
                let keep = stream.chance(*p);
                let value = number(distribution, None, stream)?;
                Ok(match value {
                    _ if keep => value,
                    Value::Int(_) => Value::Int(0),
                    _ => Value::Float(0.0),
                })
            }
            Kind::Binomial { n, p } => count(binomial(*n, *p, stream)),
            Kind::Poisson { mean } => count(poisson(*mean, stream)),
            Kind::Scipy { distribution, places } => number(distribution, *places, stream),
            Kind::Datetime { start, seconds, unit, iso } => {
                let time = start + stream.below(*seconds) as i64;
                Ok(iso.format(truncate(time, *unit)).into())
            }
            Kind::Timedelta(timedelta) => timedelta.sample(stream, input),
            Kind::Person(person) => person.sample(stream),
        }
    }
}

impl Subcategory {
    /// The list for a value of the category, as a draw finds it.
    pub fn list_for(&self, parent: &Value) -> Option<&[Value]> {
        let text = value_text(parent);
        let short = if let Value::Float(float) = parent { float.to_string() } else { text.clone() };
        let list = |key: &str| self.values.iter().find(|(name, _)| name == key);
        list(&text).or_else(|| list(&short)).map(|(_, values)| values.as_slice())
    }
}

fn number(
    distribution: &CompiledDistribution,
    places: Option<u32>,
    stream: &mut Stream,
) -> Result<Value, Error> {
    let drawn = distribution.draw(stream)?;
    if distribution.discrete { count(drawn) } else { finite_float(round_places(drawn, places)) }
}

fn count(drawn: f64) -> Result<Value, Error> {
    whole(drawn).map(Value::Int).ok_or_else(|| {
        Error::Draw(format!("{drawn} was drawn, which does not fit into 64 bits; use milder parameters"))
    })
}

fn finite_float(drawn: f64) -> Result<Value, Error> {
    if drawn.is_finite() {
        return Ok(Value::Float(drawn));
    }
    Err(Error::Draw(format!("{drawn} was drawn, which is not finite; use milder parameters")))
}

fn subcategory(
    column: &str,
    values: &HashMap<String, Arc<[Value]>>,
    stream: &mut Stream,
    input: Option<&Value>,
) -> Result<Value, Error> {
    let fault = |problem: String| Error::Input { column: column.to_owned(), problem };
    let parent = input.ok_or_else(|| fault("is missing".to_owned()))?;
    let found = match parent {
        Value::Text(text) => values.get(&**text),
        // 1 and 2.5 are 1.0 and 2.5 in a column; the key is still `1`.
        Value::Float(float) => values.get(&value_text(parent)).or_else(|| values.get(&float.to_string())),
        other => values.get(&value_text(other)),
    };
    let found = found.ok_or_else(|| {
        let text: String = value_text(parent).chars().take(80).collect();
        fault(format!("is `{text}`, for which `values` of the subcategory has no list; add one"))
    })?;
    Ok(stream.pick(found).clone())
}

impl CompiledTimedelta {
    fn sample(&self, stream: &mut Stream, input: Option<&Value>) -> Result<Value, Error> {
        let fault = |problem: String| Error::Input { column: self.column.clone(), problem };
        let text = match input {
            Some(Value::Text(text)) => text,
            Some(other) => {
                return Err(fault(format!("is {}, not a date; refer to a datetime column", other.kind())));
            }
            None => return Err(fault("is missing".to_owned())),
        };
        let reference = match &self.reference {
            Some(format) => format.parse(text).or_else(|| parse_time(text)),
            None => parse_time(text),
        };
        let reference = reference.ok_or_else(|| {
            let text: String = text.chars().take(80).collect();
            fault(format!("is `{text}`, which is not a date; refer to a datetime column"))
        })?;
        let units = (self.least + stream.below(self.count)) as i64;
        let time = units.checked_mul(self.seconds_per_unit).and_then(|delta| reference.checked_add(delta));
        match time.filter(|time| in_range(*time)) {
            Some(time) => Ok(self.iso.format(time).into()),
            None => {
                Err(fault("plus the sampled time is after the year 9999; use a smaller `dt_max`".to_owned()))
            }
        }
    }
}

/// A version 4 UUID without hyphens, or its first digits.
fn uuid(prefix: &str, digits: usize, uppercase: bool, stream: &mut Stream) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0x3 << 62;
    let bits = u128::from(stream.bits()) << 64 | u128::from(stream.bits());
    let bits = bits & !VERSION & !VARIANT | 0x4 << 76 | 0x2 << 62;
    let hex = if uppercase { format!("{bits:032X}") } else { format!("{bits:032x}") };
    [prefix, &hex[..digits]].concat()
}

/// Makes a UUID for others in the crate: 32 digits in the usual groups.
pub(crate) fn hyphenated_uuid(stream: &mut Stream) -> String {
    let hex = uuid("", 32, false, stream);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
