//! The problems of an input: all of them at once, each with its place and advice.

use std::fmt;
use std::ops::Range;

use crate::names;
use crate::plain::Plain;
use crate::source::Excerpt;

/// One thing wrong, or odd, with an input. Displayed on one line, without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place: a file, a node, a field.
    pub place: String,
    /// The problem.
    pub what: String,
    /// Advice.
    pub help: Option<String>,
    /// The line of the source, if there is one.
    pub excerpt: Option<Box<Excerpt>>,
}

/// Everything found wrong with an input. Warnings alone do not refuse it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Problems that must be fixed.
    pub errors: Vec<Problem>,
    /// Problems of an input that works, but probably not as intended.
    pub warnings: Vec<Problem>,
}

impl Problem {
    /// Something wrong at `place`.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { place: place.into(), what: what.into(), help: None, excerpt: None }
    }

    /// Something wrong with these bytes of a source: its place is `name:line:column`.
    pub fn in_source(name: &str, text: &str, bytes: Range<usize>, what: impl Into<String>) -> Problem {
        let excerpt = Excerpt::of(text, bytes);
        let place = format!("{name}:{}:{}", excerpt.line, excerpt.column);
        Problem { excerpt: Some(Box::new(excerpt)), ..Problem::new(place, what) }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// The problem as a user sees it, with the line of the source; `severity` is `error` or `warning`.
    pub fn report(&self, severity: &str) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            write!(f, "{severity}: ")?;
            let Some(excerpt) = &self.excerpt else { return write!(f, "{self}") };
            write!(f, "{}: {}\n{excerpt}", Plain(&self.place), Plain(&self.what))?;
            self.help.iter().try_for_each(|help| write!(f, "\n  help: {}", Plain(help)))
        })
    }
}

/// The most "did you mean" suggestions. Further errors have none, because comparing names takes time, and an untrusted
/// input decides how many there are.
const MOST_SUGGESTIONS: usize = 50;

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

    /// The candidate that was probably meant, as [`closest`](crate::closest) finds it; none if there are many errors
    /// already.
    pub fn closest<'a>(&self, word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        if self.errors.len() > MOST_SUGGESTIONS { None } else { names::closest(word, candidates) }
    }

    /// The same, as the help of a problem.
    pub fn did_you_mean<'a>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        self.closest(word, candidates).map(|near| format!("did you mean `{near}`?"))
    }

    /// In the order of the sources, each problem once.
    #[must_use]
    pub fn in_order(mut self) -> Problems {
        for list in [&mut self.errors, &mut self.warnings] {
            let file = |problem: &Problem| problem.place.split(':').next().unwrap_or_default().to_owned();
            list.sort_by_cached_key(|problem| {
                let at = problem.excerpt.as_ref().map(|excerpt| (excerpt.line, excerpt.column));
                (file(problem), at, problem.what.clone())
            });
            list.dedup_by(|one, other| one.place == other.place && one.what == other.what);
        }
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Plain(&self.place), Plain(&self.what))?;
        self.help.iter().try_for_each(|help| write!(f, " ({})", Plain(help)))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.errors.iter().enumerate() {
            let before = if at > 0 { "\n" } else { "" };
            write!(f, "{before}{problem}")?;
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

#[cfg(test)]
mod tests {
    use super::{Problem, Problems};

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let hostile = "\u{1b}]0;title\u{7}\nerror: forged\u{202e}\u{9b}2J";
        let source = format!("a {hostile}");
        let whole = Problem::new(hostile, hostile).help(hostile);
        let placed = Problem::in_source(hostile, &source, 2..3, hostile).help(hostile);
        let texts =
            [whole.to_string(), whole.report("error").to_string(), placed.report("error").to_string()];
        for (text, lines) in texts.iter().zip([1, 1, 4]) {
            assert_eq!(text.lines().count(), lines, "{text:?}");
            let is_raw = |letter: &char| (letter.is_control() && *letter != '\n') || *letter == '\u{202e}';
            assert_eq!(text.chars().find(is_raw), None, "{text:?}");
        }
    }

    #[test]
    fn problems_stand_in_the_order_of_the_source_and_once() {
        let source = "a\nb\nc\n";
        let mut problems = Problems::default();
        for at in [4, 0, 4, 2] {
            problems.error(Problem::in_source("file", source, at..at + 1, "wrong"));
        }
        assert_eq!(problems.in_order().to_string(), "file:1:1: wrong\nfile:2:1: wrong\nfile:3:1: wrong");
    }

    #[test]
    fn with_many_errors_nothing_is_compared() {
        let mut problems = Problems::default();
        let near = |problems: &Problems| problems.did_you_mean("tkae", ["take"]);
        assert_eq!(near(&problems).as_deref(), Some("did you mean `take`?"));
        problems.errors = vec![Problem::new("here", "wrong"); 51];
        assert_eq!(near(&problems), None);
    }
}
