//! Gathers what is wrong with a recipe file.

use std::ops::Range;

use anabranch_text::{Problem, Problems};

/// Of so many problems each is told; who has more mends these first.
const TOLD: usize = 100;

/// Where bytes of the file are.
pub(super) type Span = Range<usize>;

/// What is wrong with a recipe file.
pub(super) struct Notes<'a> {
    file: &'a str,
    text: &'a str,
    found: Problems,
    more: usize,
}

impl<'a> Notes<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Notes<'a> {
        Notes { file, text, found: Problems::default(), more: 0 }
    }

    /// Notes a problem, with the way out.
    pub(super) fn note(&mut self, at: &Span, what: impl Into<String>, help: impl Into<String>) {
        self.hint(at, what, Some(help.into()));
    }

    /// Notes a problem whose way out is plain, or that has a hint perhaps.
    pub(super) fn hint(&mut self, at: &Span, what: impl Into<String>, help: Option<String>) {
        if self.found.errors.len() == TOLD {
            self.more += 1;
            return;
        }
        let problem = Problem::in_source(self.file, self.text, at.clone(), what);
        self.found.error(Problem { help, ..problem });
    }

    /// The name that was probably meant, as the help of a problem.
    pub(super) fn did_you_mean<'n>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Option<String> {
        self.found.did_you_mean(name, known)
    }

    /// Nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_fine()
    }

    /// The file, if nothing is wrong with it.
    pub(super) fn none_or<T>(self, file: T) -> Result<T, Problems> {
        if self.found.is_fine() {
            return Ok(file);
        }
        let mut found = self.found.in_order();
        if self.more > 0 {
            found.error(Problem::new(self.file, format!("and {} more problems", self.more)));
        }
        Err(found)
    }
}
