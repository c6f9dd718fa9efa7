//! What is wrong with a recipe file: all of it at once.

use std::fmt;
use std::ops::Range;

/// One thing wrong with a recipe file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The line, from 1; 0 if it is about the file as a whole.
    pub line: usize,
    /// The character of the line it begins at, from 1.
    pub column: usize,
    /// How many characters of the line it is about.
    pub width: usize,
    /// The line.
    pub text: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Everything wrong with a recipe file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblems {
    /// The file.
    pub file: String,
    /// What is wrong, from the top.
    pub problems: Vec<FileProblem>,
    /// How many there are besides.
    pub more: usize,
}

impl FileProblems {
    pub(super) fn whole(file: &str, what: String, help: &str) -> FileProblems {
        let help = Some(help.to_owned());
        let problem = FileProblem { line: 0, column: 0, width: 0, text: String::new(), what, help };
        FileProblems { file: file.to_owned(), problems: vec![problem], more: 0 }
    }
}

impl fmt::Display for FileProblems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let break_before = if at > 0 { "\n" } else { "" };
            write!(out, "{break_before}{}", self.file)?;
            if problem.line > 0 {
                write!(out, ":{}:{}", problem.line, problem.column)?;
            }
            write!(out, ": {}", problem.what)?;
            if let Some(help) = &problem.help {
                write!(out, " ({help})")?;
            }
        }
        match self.more {
            0 => Ok(()),
            more => write!(out, "\nand {more} more"),
        }
    }
}

impl std::error::Error for FileProblems {}

/// So many problems are told; who has more mends these first.
const TOLD: usize = 100;

/// Where bytes of the file are.
pub(super) type Span = Range<usize>;

/// Gathers what is wrong.
pub(super) struct Notes<'a> {
    file: &'a str,
    text: &'a str,
    found: Vec<(Span, String, Option<String>)>,
    more: usize,
}

impl<'a> Notes<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Notes<'a> {
        Notes { file, text, found: Vec::new(), more: 0 }
    }

    /// Notes a problem, with the way out.
    pub(super) fn note(&mut self, at: &Span, what: impl Into<String>, help: impl Into<String>) {
        self.keep(at, what.into(), Some(help.into()));
    }

    /// Notes a problem whose way out is plain, or that has a hint perhaps.
    pub(super) fn hint(&mut self, at: &Span, what: impl Into<String>, help: Option<String>) {
        self.keep(at, what.into(), help);
    }

    fn keep(&mut self, at: &Span, what: String, help: Option<String>) {
        match self.found.len() < TOLD {
            true => self.found.push((at.clone(), what, help)),
            false => self.more += 1,
        }
    }

    /// Whether further problems are still told, so that hints for them are worth their time.
    pub(super) fn are_told(&self) -> bool {
        self.found.len() < TOLD
    }

    /// Nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The file, if nothing is wrong with it.
    pub(super) fn none_or<T>(mut self, file: T) -> Result<T, FileProblems> {
        if self.found.is_empty() {
            return Ok(file);
        }
        self.found.sort_by_key(|(at, _, _)| at.start);
        let problems = self.found.iter().map(|(at, what, help)| self.placed(at, what, help)).collect();
        Err(FileProblems { file: self.file.to_owned(), problems, more: self.more })
    }

    fn placed(&self, at: &Span, what: &str, help: &Option<String>) -> FileProblem {
        let start = self.text.floor_char_boundary(at.start);
        let before = &self.text[..start];
        let begins = before.rfind('\n').map_or(0, |newline| newline + 1);
        let ends = self.text[start..].find('\n').map_or(self.text.len(), |newline| start + newline);
        let end = self.text.floor_char_boundary(at.end).clamp(start, ends);
        FileProblem {
            line: before.matches('\n').count() + 1,
            column: self.text[begins..start].chars().count() + 1,
            width: self.text[start..end].trim_end().chars().count().max(1),
            text: self.text[begins..ends].trim_end().to_owned(),
            what: what.to_owned(),
            help: help.clone(),
        }
    }
}
