//! Iterates over all keys with one prefix.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::cursor::Cursor;
use super::error::Error;
use super::key::Key;
use super::merged::{MergedSources, Source};
use super::run::Run;
use super::table::Change;

/// The entries that start with a prefix, in key order, as they were when it was made. Its calls block.
pub(crate) struct Scan {
    prefix: Vec<u8>,
    /// `None` at the end and after an error.
    merged: Option<MergedSources>,
}

/// A key and its value.
type ScanEntry = (Key, Box<[u8]>);

/// The first possible key that starts with `prefix` and is behind `after`. A prefix may be empty; one that is longer
/// than any key has none, and its scan ends at once.
pub(super) fn start(prefix: &[u8], after: Option<&Key>) -> Bound<Key> {
    match (Key::new(prefix), after) {
        (Some(first), None) => Bound::Included(first),
        (Some(first), Some(after)) if *after < first => Bound::Included(first),
        (_, Some(after)) => Bound::Excluded(*after),
        (None, None) => Bound::Unbounded,
    }
}

impl Scan {
    /// The tables in memory before the runs, newest first.
    pub(super) fn new(
        prefix: &[u8],
        from: Bound<&Key>,
        changes: BTreeMap<Key, Change>,
        runs: &[Arc<Run>],
    ) -> Result<Scan, Error> {
        let mut sources = Vec::with_capacity(1 + runs.len());
        if !changes.is_empty() {
            sources.push(Source::Memory(changes.into_iter().rev().collect()));
        }
        for run in runs {
            sources.extend(Cursor::new(Arc::clone(run), from)?.map(Source::Run));
        }
        Ok(Scan { prefix: prefix.to_owned(), merged: Some(MergedSources::new(sources)) })
    }

    /// The next entry that is not deleted.
    fn advance(merged: &mut MergedSources, prefix: &[u8]) -> Result<Option<ScanEntry>, Error> {
        while let Some((key, value)) = merged.entry().filter(|(key, _)| key.starts_with(prefix)) {
            let found = Key::new(key).zip(value.map(Box::from));
            merged.step()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

impl Iterator for Scan {
    type Item = Result<ScanEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Scan::advance(self.merged.as_mut()?, &self.prefix);
        if !matches!(next, Ok(Some(_))) {
            self.merged = None;
        }
        next.transpose()
    }
}
