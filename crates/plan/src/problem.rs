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
    /// The line of the source that it is about, if there is one.
    pub excerpt: Option<Box<Excerpt>>,
}

/// A line of a source, and the part of it that something is wrong with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The number of the line, from 1.
    pub line: usize,
    /// The character it begins at, from 1.
    pub column: usize,
    /// How many characters it has on this line, at least 1.
    pub width: usize,
    /// The line.
    pub text: String,
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
        Problem { place: place.into(), what: what.into(), help: None, excerpt: None }
    }

    /// With a way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// With the line that it is about.
    #[must_use]
    pub fn at(mut self, excerpt: Excerpt) -> Problem {
        self.excerpt = Some(Box::new(excerpt));
        self
    }
}

/// The most characters of a line that are shown, and how many of them before the part that matters.
const SHOWN: usize = 100;
const BEFORE: usize = 60;

impl fmt::Display for Excerpt {
    /// The line with its number, and below it a mark under the part that matters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = if self.column > BEFORE { self.column - 1 - BEFORE / 2 } else { 0 };
        // One column a character: tabs and what cannot be seen would move the mark.
        let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
        let line: String = self.text.chars().skip(skipped).take(SHOWN).map(shown).collect();
        let before = self.column.saturating_sub(1 + skipped);
        let width = self.width.min(SHOWN.saturating_sub(before)).max(1);
        let number = self.line.to_string();
        writeln!(f, "  {number} | {}", line.trim_end())?;
        write!(f, "  {} | {}{}", " ".repeat(number.len()), " ".repeat(before), "^".repeat(width))
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

/// Edits between two words; two letters that changed places are one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut above = vec![0; b.len() + 1];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let changed = row[j] + usize::from(a[i] != b[j]);
            let mut least = changed.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && (a[i], a[i - 1]) == (b[j - 1], b[j]) {
                least = least.min(above[j - 1] + 1);
            }
            next.push(least);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{Excerpt, closest};

    #[test]
    fn the_mark_is_under_the_part() {
        let excerpt = Excerpt { line: 12, column: 7, width: 3, text: "\tfour bad".to_owned() };
        assert_eq!(excerpt.to_string(), "  12 |  four bad\n     |       ^^^");
        let long = Excerpt { line: 1, column: 501, width: 900, text: "x".repeat(2_000) };
        assert_eq!(long.to_string(), format!("  1 | {}\n    | {:30}{}", "x".repeat(100), "", "^".repeat(70)));
    }

    #[test]
    fn the_shorter_the_closer() {
        let check = |word, near| assert_eq!(closest(word, ["take", "country", "a", "id"]), near, "{word}");
        check("b", None);
        check("i", None);
        check("ix", Some("id"));
        check("tke", Some("take"));
        check("tkae", Some("take"));
        check("time", None);
        check("contri", Some("country"));
        check("county_name", None);
    }
}
