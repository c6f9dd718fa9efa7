//! What is wrong with an input: all of it at once, each with its place and the way out.

use std::fmt;

/// One thing wrong, or odd, with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a file, a node, a field.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Everything found wrong with an input. Warnings alone do not refuse it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// What must be mended.
    pub errors: Vec<Problem>,
    /// What runs, though hardly as meant.
    pub warnings: Vec<Problem>,
}

impl Problem {
    /// Something wrong at `place`.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { place: place.into(), what: what.into(), help: None }
    }

    /// With a way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

impl Problems {
    /// Notes an error.
    pub fn error(&mut self, problem: Problem) {
        self.errors.push(problem);
    }

    /// Notes a warning.
    pub fn warn(&mut self, problem: Problem) {
        self.warnings.push(problem);
    }

    /// Whether there is no error.
    pub fn is_fine(&self) -> bool {
        self.errors.is_empty()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.errors.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems { errors: vec![problem], warnings: Vec::new() }
    }
}

/// The candidate closest to `word`, if one is close: for help such as "did you mean". The shorter the word, the closer
/// it must be; a single letter is close to nothing.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() + 1) / 3;
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let swap = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = swap.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn the_shorter_the_closer() {
        let check = |word, near| assert_eq!(closest(word, ["take", "country", "a", "id"]), near, "{word}");
        check("b", None);
        check("i", None);
        check("ix", Some("id"));
        check("tke", Some("take"));
        check("time", None);
        check("contri", Some("country"));
        check("county_name", None);
    }
}
