//! The parameters of each sampler.

use anabranch_value::Value;

/// A sampler with its parameters.
#[derive(Clone, Debug)]
pub enum Sampler {
    Uuid(Uuid),
    Category(Category),
    Subcategory(Subcategory),
    Uniform(Uniform),
    Gaussian(Gaussian),
    Bernoulli { p: f64 },
    BernoulliMixture { p: f64, distribution: Distribution },
    Binomial { n: u64, p: f64 },
    Poisson { mean: f64 },
    Scipy { distribution: Distribution, decimal_places: Option<u32> },
    Datetime(Datetime),
    Timedelta(Timedelta),
    Person(Person),
}

/// A random identifier.
#[derive(Clone, Debug, Default)]
pub struct Uuid {
    pub prefix: Option<String>,
    /// 8 hex digits instead of 32.
    pub short_form: bool,
    pub uppercase: bool,
}

/// One of several values.
#[derive(Clone, Debug)]
pub struct Category {
    /// Text and numbers, at least one.
    pub values: Vec<Value>,
    /// One per value; equal weights if `None`.
    pub weights: Option<Vec<f64>>,
}

/// One of several values that depend on another column's value.
#[derive(Clone, Debug)]
pub struct Subcategory {
    /// The column with the category.
    pub category: String,
    /// The values to choose from, by the category's value as text.
    pub values: Vec<(String, Vec<Value>)>,
}

/// A number between two others.
#[derive(Clone, Debug)]
pub struct Uniform {
    pub low: f64,
    pub high: f64,
    pub decimal_places: Option<u32>,
}

/// A normally distributed number.
#[derive(Clone, Debug)]
pub struct Gaussian {
    pub mean: f64,
    pub stddev: f64,
    pub decimal_places: Option<u32>,
}

/// A distribution by the name that `scipy.stats` has for it, checked by [`Distribution::new`].
#[derive(Clone, Debug)]
pub struct Distribution {
    pub name: String,
    pub params: Vec<(String, f64)>,
}

/// A time between two others.
#[derive(Clone, Debug)]
pub struct Datetime {
    /// As written; [`Sampler::check`] parses it.
    pub start: String,
    /// Exclusive.
    pub end: String,
    pub unit: TimeUnit,
}

/// A time that lies a random while after another column's.
#[derive(Clone, Debug)]
pub struct Timedelta {
    pub dt_min: u64,
    /// Exclusive.
    pub dt_max: u64,
    pub reference_column_name: String,
    /// Not years or months.
    pub unit: TimeUnit,
}

/// The unit that times are truncated to or deltas count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// A made-up person: a map of fields.
#[derive(Clone, Debug)]
pub struct Person {
    /// A locale without a table of its own takes that of the nearest language, with a warning.
    pub locale: String,
    pub sex: Option<Sex>,
    /// Empty: any city. A city that the table lacks is taken without its postcode and region, with a warning.
    pub cities: Vec<String>,
    /// Years, both inclusive.
    pub age_range: [u32; 2],
    /// Only persons whose fields have one of these values.
    pub select_field_values: Vec<(String, Vec<String>)>,
    /// Adds persona fields: English texts put together from templates, and scores of five traits.
    pub with_synthetic_personas: bool,
    /// Written as `person_from_faker` in the config; the persons are the same.
    pub from_faker: bool,
}

/// The sex of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sex {
    Male,
    Female,
}

/// The target type of `convert_to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Convert {
    Int,
    Float,
    Text,
    /// A `strftime` format, for dates.
    Strftime(String),
}
