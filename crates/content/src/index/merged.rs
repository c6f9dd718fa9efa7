//! Merges sorted sources into one: each key once, with the entry of the newest source.

use super::cursor::Cursor;
use super::error::Error;
use super::key::{Key, leading};
use super::table::Change;

/// Entries in key order, each key once.
pub(super) enum Source {
    Run(Cursor),
    /// The remaining entries, the next one last.
    Memory(Vec<(Key, Change)>),
}

/// Several sources merged into one.
pub(super) struct MergedSources {
    /// Newest first.
    sources: Vec<Source>,
    /// The sources that are not at their end, by their present key and then by age.
    order: Vec<SourceKey>,
}

#[derive(Clone, Copy)]
struct SourceKey {
    /// The present key's first bytes, which mostly decide.
    leading: u64,
    source: usize,
}

impl MergedSources {
    /// Sources, newest first, each at an entry.
    pub(super) fn new(sources: Vec<Source>) -> MergedSources {
        let mut merged = MergedSources { order: Vec::with_capacity(sources.len()), sources };
        (0..merged.sources.len()).for_each(|source| merged.insert(source));
        merged
    }

    /// The present entry; none at the end.
    pub(super) fn entry(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let source = &self.sources[self.order.first()?.source];
        Some((source.key(), source.value()))
    }

    /// Goes to the next key.
    pub(super) fn step(&mut self) -> Result<(), Error> {
        let Some(first) = self.order.first() else { return Ok(()) };
        let is_present = |turn: &&SourceKey| {
            turn.leading == first.leading
                && self.sources[turn.source].key() == self.sources[first.source].key()
        };
        let older = self.order[1..].iter().take_while(is_present).count();
        for _ in 0..=older {
            // A source that steps on goes behind those that are still at the present key.
            let source = self.order.remove(0).source;
            if self.sources[source].step()? {
                self.insert(source);
            }
        }
        Ok(())
    }

    fn insert(&mut self, source: usize) {
        let key = self.sources[source].key();
        let leading = leading(key);
        let is_before = |turn: &SourceKey| {
            let other = || (self.sources[turn.source].key(), turn.source);
            turn.leading < leading || turn.leading == leading && other() < (key, source)
        };
        let at = self.order.iter().position(|turn| !is_before(turn)).unwrap_or(self.order.len());
        self.order.insert(at, SourceKey { leading, source });
    }
}

impl Source {
    fn key(&self) -> &[u8] {
        match self {
            Source::Run(cursor) => cursor.key(),
            Source::Memory(entries) => entries.last().map_or(&[], |(key, _)| key.as_bytes()),
        }
    }

    fn value(&self) -> Option<&[u8]> {
        match self {
            Source::Run(cursor) => cursor.value(),
            Source::Memory(entries) => entries.last().and_then(|(_, change)| change.as_deref()),
        }
    }

    fn step(&mut self) -> Result<bool, Error> {
        match self {
            Source::Run(cursor) => cursor.step(),
            Source::Memory(entries) => {
                entries.pop();
                Ok(!entries.is_empty())
            }
        }
    }
}
