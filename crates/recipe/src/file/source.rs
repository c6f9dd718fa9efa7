//! The text of a recipe file, for problems that only a store can find.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anabranch_document::Span;
use anabranch_text::Problem;

/// The names and paths of a recipe file that only a store can find, each with the position of an input that reads it.
#[derive(Clone, Default)]
pub(super) struct Source {
    pub name: String,
    pub text: Arc<str>,
    pub references: BTreeMap<String, Span>,
    /// The paths inside folders, by the index of the blob.
    pub insides: BTreeMap<(usize, String), Span>,
}

impl Source {
    /// A problem at a position, or with the whole file if there is none.
    pub(super) fn problem(&self, at: Option<&Span>, what: impl Into<String>) -> Problem {
        match at {
            Some(at) => Problem::in_source(&self.name, &self.text, at.clone(), what),
            None => Problem::new(&self.name, what),
        }
    }
}

/// Files with the same entries are equal, however they are written.
impl PartialEq for Source {
    fn eq(&self, _: &Source) -> bool {
        true
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Source").field(&self.name).finish()
    }
}
