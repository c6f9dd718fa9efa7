//! What can be wrong with a sampler.

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

const SHORT_LIST: usize = 7;

/// The names nearest to an unknown one, at most seven, for messages.
pub(crate) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .map(|other| {
            let lower = other.to_lowercase();
            let shares = wanted.starts_with(&lower) || lower.starts_with(&wanted);
            (if shares { 0 } else { edits(&wanted, &lower) }, other)
        })
        .collect();
    ranked.sort();
    ranked.dedup();
    // A short list is shown whole.
    if ranked.len() <= SHORT_LIST {
        return ranked.into_iter().map(|(_, other)| other).collect();
    }
    let most = ranked.first().map_or(0, |first| (first.0 + 1).max(2));
    ranked.into_iter().take_while(|(distance, _)| *distance <= most).map(|(_, other)| other).take(5).collect()
}

/// The number of edits from one word to another, both cut at 64 characters.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
