//! Distributions by the names and parameters of `scipy.stats`.

mod continuous;
mod discrete;

use crate::error::{Error, finite, hint};
use crate::number::shown;
use crate::params::Distribution;
use crate::stream::Stream;

/// A row of a table of distributions.
struct Entry {
    name: &'static str,
    /// The shape parameters with the numbers they take.
    shapes: Shapes,
    /// The rule that several parameters keep together, with its test.
    rule: Option<Rule>,
    /// A draw with location 0 and scale 1.
    draw: Draw,
}

type Shapes = &'static [(&'static str, Domain)];
type Rule = (&'static str, fn(&[f64]) -> bool);
type Draw = fn(&[f64], &mut Stream) -> f64;

const fn row(name: &'static str, shapes: Shapes, draw: Draw) -> Entry {
    Entry { name, shapes, rule: None, draw }
}

const fn row_with_rule(name: &'static str, shapes: Shapes, rule: Rule, draw: Draw) -> Entry {
    Entry { name, shapes, rule: Some(rule), draw }
}

/// The numbers that a parameter takes.
#[derive(Clone, Copy)]
enum Domain {
    /// Infinite too.
    Extended,
    Real,
    NotZero,
    Positive,
    NotNegative,
    /// [0, 1].
    Probability,
    /// (0, 1].
    Share,
    /// (0, 1).
    OpenShare,
    AboveOne,
    /// Whole, from 0 up.
    Count,
    /// Whole.
    Whole,
}

/// Whole numbers above this lose digits in a double.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

impl Domain {
    fn takes(self, number: f64) -> bool {
        let whole = number == libm::trunc(number) && number.abs() <= MAX_WHOLE;
        match self {
            Domain::Extended => !number.is_nan(),
            Domain::Real => number.is_finite(),
            Domain::NotZero => number != 0.0,
            Domain::Positive => number > 0.0,
            Domain::NotNegative => number >= 0.0,
            Domain::Probability => (0.0..=1.0).contains(&number),
            Domain::Share => number > 0.0 && number <= 1.0,
            Domain::OpenShare => number > 0.0 && number < 1.0,
            Domain::AboveOne => number > 1.0,
            Domain::Count => whole && number >= 0.0,
            Domain::Whole => whole,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Domain::Extended => "a number",
            Domain::Real => "a finite number",
            Domain::NotZero => "a number other than 0",
            Domain::Positive => "a number above 0",
            Domain::NotNegative => "a number from 0 up",
            Domain::Probability => "a number from 0 to 1",
            Domain::Share => "a number above 0, at most 1",
            Domain::OpenShare => "a number above 0 and below 1",
            Domain::AboveOne => "a number above 1",
            Domain::Count => "a whole number from 0 up",
            Domain::Whole => "a whole number",
        }
    }
}

/// A distribution with its parameters in order.
#[derive(Clone, Debug)]
pub(crate) struct CompiledDistribution {
    name: &'static str,
    draw: Draw,
    shapes: Vec<f64>,
    loc: f64,
    scale: f64,
    pub(crate) discrete: bool,
}

/// Overflowing draws that are replaced before the sampler gives up.
const OVERFLOW_TRIES: u32 = 64;

impl CompiledDistribution {
    /// A finite draw; whole if the distribution is discrete.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Result<f64, Error> {
        for _ in 0..OVERFLOW_TRIES {
            let number = self.loc + self.scale * (self.draw)(&self.shapes, stream);
            if number.is_finite() {
                return Ok(number);
            }
        }
        Err(Error::Draw(format!(
            "the distribution `{}` gave {OVERFLOW_TRIES} numbers in a row that are not finite; use milder parameters",
            self.name
        )))
    }
}

impl Distribution {
    /// A distribution whose name and parameters are known to be good.
    pub fn new(name: impl Into<String>, params: Vec<(String, f64)>) -> Result<Distribution, Error> {
        let distribution = Distribution { name: name.into(), params };
        distribution.compile()?;
        Ok(distribution)
    }

    /// The names of all distributions.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = entries().map(|(entry, _)| entry.name).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn compile(&self) -> Result<CompiledDistribution, Error> {
        let Some((entry, discrete)) = entries().find(|(entry, _)| entry.name == self.name) else {
            return Err(unknown(&self.name));
        };
        self.check_names(entry, discrete)?;
        let shapes = entry
            .shapes
            .iter()
            .map(|(name, domain)| {
                let Some(number) = self.param(name) else {
                    let takes = takes(entry, discrete);
                    return Err(Error::param(
                        format!("dist_params.{name}"),
                        format!("missing; `{}` takes {takes}", entry.name),
                    ));
                };
                check(name, *domain, number)
            })
            .collect::<Result<Vec<f64>, Error>>()?;
        if let Some((rule, holds)) = entry.rule
            && !holds(&shapes)
        {
            return Err(Error::param("dist_params", format!("`{}` needs {rule}", entry.name)));
        }
        let loc = check(
            "loc",
            if discrete { Domain::Whole } else { Domain::Real },
            self.param("loc").unwrap_or(0.0),
        )?;
        let scale = check("scale", Domain::Positive, self.param("scale").unwrap_or(1.0))?;
        Ok(CompiledDistribution { name: entry.name, draw: entry.draw, shapes, loc, scale, discrete })
    }

    fn param(&self, name: &str) -> Option<f64> {
        self.params.iter().find(|(param, _)| param == name).map(|(_, number)| *number)
    }

    fn check_names(&self, entry: &Entry, discrete: bool) -> Result<(), Error> {
        for (index, (name, _)) in self.params.iter().enumerate() {
            let known = entry.shapes.iter().any(|(shape, _)| shape == name)
                || name == "loc"
                || (name == "scale" && !discrete);
            if !known {
                let takes = takes(entry, discrete);
                return Err(Error::param(
                    format!("dist_params.{name}"),
                    format!("unknown; `{}` takes {takes}", entry.name),
                ));
            }
            if self.params[..index].iter().any(|(other, _)| other == name) {
                return Err(Error::param(format!("dist_params.{name}"), "given twice; remove one"));
            }
        }
        Ok(())
    }
}

fn entries() -> impl Iterator<Item = (&'static Entry, bool)> {
    let continuous = continuous::ENTRIES.iter().chain(continuous::DERIVED).map(|entry| (entry, false));
    continuous.chain(discrete::ENTRIES.iter().map(|entry| (entry, true)))
}

fn check(name: &str, domain: Domain, number: f64) -> Result<f64, Error> {
    let param = format!("dist_params.{name}");
    if !matches!(domain, Domain::Extended) {
        finite(&param, number)?;
    }
    if domain.takes(number) {
        return Ok(number);
    }
    Err(Error::param(param, format!("expected {}, found {}", domain.describe(), shown(number))))
}

fn takes(entry: &Entry, discrete: bool) -> String {
    let shapes = entry.shapes.iter().map(|(name, _)| *name);
    let names: Vec<&str> = shapes.chain(["loc"]).chain((!discrete).then_some("scale")).collect();
    names.join(", ")
}

/// The names that people write for those that scipy has.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("normal", "norm"),
    ("gaussian", "norm"),
    ("exponential", "expon"),
    ("lognormal", "lognorm"),
    ("binomial", "binom"),
    ("geometric", "geom"),
    ("negative_binomial", "nbinom"),
    ("hypergeometric", "hypergeom"),
    ("student", "t"),
    ("student_t", "t"),
    ("weibull", "weibull_min"),
    ("gumbel", "gumbel_r"),
    ("triangular", "triang"),
    ("chisquare", "chi2"),
    ("power", "powerlaw"),
    ("integers", "randint"),
];

fn unknown(name: &str) -> Error {
    let other =
        OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, known)| *known);
    let hint = match other {
        Some(known) => format!("; did you mean `{known}`?"),
        None => hint(name, Distribution::names()),
    };
    Error::param("dist_name", format!("unknown distribution `{name}`{hint}"))
}
