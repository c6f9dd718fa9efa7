//! Reads all of an index and checks it.

use super::Index;
use super::block::Block;
use super::error::{DecodeFailure, Error};
use super::key::{Key, is_point};
use super::run::Run;
use super::span::Span;
use super::top::Leaf;
use crate::Wait;

impl Index {
    /// Reads every part of every run and checks it: the bytes, their order, and that a lookup would find each entry.
    /// Calls `pace` after each step with the number of bytes that it read.
    pub(crate) fn verify(&self, pace: &mut dyn FnMut(u64)) -> Result<(), Error> {
        self.state().runs.iter().try_for_each(|run| run.verify(pace))
    }
}

impl Run {
    fn verify(&self, pace: &mut dyn FnMut(u64)) -> Result<(), Error> {
        // The copy in memory may be right although the file is damaged.
        let run = Run::load(self.file.clone(), &self.listed)?;
        pace(u64::from(run.footer.top.len) + u64::from(run.footer.filter.len));
        let mut walk = Walk { run: &run, before: None, entries: 0, points: 0, block: Vec::new() };
        let mut leaf = Vec::new();
        for (first, span) in run.top.leaves() {
            run.file.read(*span, Wait::Yes, &mut leaf)?;
            let read = walk.leaf(first.as_bytes(), &leaf)?;
            pace(u64::from(span.len) + read);
        }
        walk.end()
    }
}

/// A walk through a run, leaf by leaf.
struct Walk<'a> {
    run: &'a Run,
    /// The last key seen.
    before: Option<Key>,
    entries: u64,
    points: u64,
    block: Vec<u8>,
}

impl Walk<'_> {
    /// Checks a leaf and the blocks it names; returns how many bytes it read.
    fn leaf(&mut self, first: &[u8], bytes: &[u8]) -> Result<u64, Error> {
        let malformed = self.run.file.malformed();
        let leaf = Leaf::parse(bytes).map_err(&malformed)?;
        leaf.check().map_err(&malformed)?;
        let mut read = 0;
        for number in 0..leaf.count() {
            let (child_first, span) = leaf.child(number).map_err(&malformed)?;
            if number == 0 && child_first != first {
                return Err(self.run.file.damaged("a leaf begins with another key than the top says"));
            }
            self.block(child_first, span)?;
            read += u64::from(span.len);
        }
        Ok(read)
    }

    fn block(&mut self, first: &[u8], span: Span) -> Result<(), Error> {
        let mut bytes = std::mem::take(&mut self.block);
        self.run.file.read(span, Wait::Yes, &mut bytes)?;
        self.entries(first, &bytes).map_err(self.run.file.malformed())?;
        self.block = bytes;
        Ok(())
    }

    fn entries(&mut self, first: &[u8], bytes: &[u8]) -> Result<(), DecodeFailure> {
        let block = Block::parse(bytes)?;
        block.check()?;
        if block.entry(0)?.0 != first {
            return Err(DecodeFailure("a block begins with another key than its leaf says"));
        }
        if self.before.is_some_and(|before| before.as_bytes() >= first) {
            return Err(DecodeFailure("the blocks are out of order"));
        }
        for number in 0..block.count() {
            let key = Key::new(block.entry(number)?.0).ok_or(DecodeFailure("a key is empty"))?;
            if !self.run.may_have(&key) {
                return Err(DecodeFailure("the filter does not know a key"));
            }
            self.before = Some(key);
            self.entries += 1;
            self.points += u64::from(is_point(key.as_bytes()));
        }
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        let footer = &self.run.footer;
        let first = self.run.top.leaves().first().map(|(first, _)| *first);
        let seen = (first, self.before, self.entries, self.points);
        match seen == (Some(footer.first), Some(footer.last), footer.entries, footer.points) {
            true => Ok(()),
            false => Err(self.run.file.damaged("its entries are not those that the footer counts")),
        }
    }
}
