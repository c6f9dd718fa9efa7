//! Errors with their place in the template.

use std::borrow::Cow;
use std::ops::Range;

use crate::code::Place;
use crate::work::MEMORY_BYTES;

/// An error in a template, or an error of one run of it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The bytes of the source that the error is about.
    pub place: Range<usize>,
    /// The problem. The message of a run also names the line and the part of the template.
    pub message: String,
    pub kind: ErrorKind,
}

/// The kinds of errors, by the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The template, or a value in it, is wrong.
    Template,
    /// The run needs more fuel.
    Fuel,
    /// The run makes more than [`MEMORY_BYTES`], or than it was given.
    Memory,
    /// The output is larger than allowed.
    Output,
    /// The caller stopped the run.
    Stopped,
}

impl Error {
    /// The message with the line and the part of the template, as in the messages of a run.
    pub fn located(&self, source: &str) -> String {
        located(source, &self.place, &self.message)
    }
}

fn located(source: &str, place: &Place, problem: &str) -> String {
    let before = &source.as_bytes()[..place.start.min(source.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let part = source.as_bytes().get(place.clone()).map(String::from_utf8_lossy);
    match part {
        Some(part) if !part.is_empty() => format!("line {line}: {problem}, in {}", shortened(&part)),
        _ => format!("line {line}: {problem}"),
    }
}

/// A text in quotes, at most 40 characters of it.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The reason why a run or a compilation stops.
#[derive(Debug)]
pub(crate) enum Stop {
    Wrong(Cow<'static, str>),
    Fuel,
    Memory,
    Output,
    /// The caller's check said so.
    Check,
}

/// A stop with the message.
pub(crate) fn wrong<T>(problem: impl Into<Cow<'static, str>>) -> Result<T, Stop> {
    Err(Stop::Wrong(problem.into()))
}

/// A stop and its place.
#[derive(Debug)]
pub(crate) struct Halt {
    pub(crate) place: Place,
    pub(crate) stop: Stop,
}

impl Halt {
    /// A stop that no part of the template stands for.
    pub(crate) fn nowhere(stop: Stop) -> Halt {
        Halt { place: 0..0, stop }
    }

    /// The error of a compilation.
    pub(crate) fn into_error(self) -> Error {
        self.error(None, 0, 0)
    }

    /// The error of a run of a template, with the bounds that the run had.
    pub(crate) fn in_run(self, source: &str, fuel: u64, output_bytes: usize) -> Error {
        self.error(Some(source), fuel, output_bytes)
    }

    fn error(self, source: Option<&str>, fuel: u64, output_bytes: usize) -> Error {
        let Halt { place, stop } = self;
        let (problem, kind) = match stop {
            Stop::Wrong(problem) => (problem.into_owned(), ErrorKind::Template),
            Stop::Fuel => (format!("takes more than {fuel} steps"), ErrorKind::Fuel),
            Stop::Memory => {
                let problem = format!("makes more than {MEMORY_BYTES} bytes; make less of it at once");
                (problem, ErrorKind::Memory)
            }
            Stop::Output => (format!("gives more than {output_bytes} bytes"), ErrorKind::Output),
            Stop::Check => ("was stopped".to_owned(), ErrorKind::Stopped),
        };
        let message = match source {
            Some(source) => located(source, &place, &problem),
            None => problem,
        };
        Error { place, message, kind }
    }
}
