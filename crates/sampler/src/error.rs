//! Errors of samplers.

/// A sampler that cannot give a value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A parameter must be changed.
    #[error("`{param}`: {problem}")]
    Param { param: String, problem: String },
    /// The value of the column that the sampler depends on does not fit.
    #[error("the value of column `{column}` {problem}")]
    Input { column: String, problem: String },
    /// No value could be drawn within the bounded number of tries.
    #[error("{0}")]
    Draw(String),
    /// A value cannot be converted.
    #[error("{value} cannot be converted to {target}: {problem}")]
    Convert { value: String, target: String, problem: String },
}

impl Error {
    pub(crate) fn param(param: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Param { param: param.into(), problem: problem.into() }
    }
}

/// Fails unless the number is finite.
pub(crate) fn finite(param: &str, number: f64) -> Result<f64, Error> {
    if number.is_finite() {
        return Ok(number);
    }
    Err(Error::param(param, format!("expected a finite number, found {number}")))
}

/// Fails unless the number is a probability.
pub(crate) fn probability(param: &str, number: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    Err(Error::param(param, format!("expected a probability from 0 to 1, found {number}")))
}

/// The end of a message about an unknown name: the one that was probably meant, or all of a few.
pub(crate) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const FEW: usize = 12;
    let known: Vec<&str> = known.into_iter().collect();
    match anabranch_text::closest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.len() <= FEW => format!("; it is one of {}", known.join(", ")),
        None => String::new(),
    }
}
