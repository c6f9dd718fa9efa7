//! Walks through a run in key order, reading ahead.

use std::ops::{Bound, Range};
use std::sync::Arc;

use super::block::{BLOCK_MOST, Block, EntryRanges};
use super::error::Error;
use super::key::Key;
use super::run::Run;
use super::span::{Span, SpannedFile};
use super::top::Leaf;
use crate::Wait;

/// The most that is read at once.
const AHEAD_MOST: usize = 256 << 10;

/// A place in a run. While it is held, the run stays readable, even when its file is removed.
pub(super) struct Cursor {
    run: Arc<Run>,
    /// The leaves of the run, blocks of the present leaf and entries of the present block that are still to come.
    leaves: Range<usize>,
    blocks: Range<usize>,
    entries: Range<usize>,
    leaf: Vec<u8>,
    window: Window,
    /// The range of the current block in the window.
    block: Range<usize>,
    /// The position of the current entry in the window.
    entry: EntryRanges,
}

impl Cursor {
    /// A cursor at the first entry from `from` on; `None` if there is no such entry.
    pub(super) fn new(run: Arc<Run>, from: Bound<&Key>) -> Result<Option<Cursor>, Error> {
        let mut cursor = Cursor {
            leaves: 0..run.top.leaves().len(),
            run,
            blocks: 0..0,
            entries: 0..0,
            leaf: Vec::new(),
            window: Window { start: 0, bytes: Vec::new(), ahead: BLOCK_MOST },
            block: 0..0,
            entry: EntryRanges { key: 0..0, value: None },
        };
        if let Bound::Included(key) | Bound::Excluded(key) = from {
            cursor.seek(key)?;
        }
        let mut found = cursor.step()?;
        if found && matches!(from, Bound::Excluded(key) if key.as_bytes() == cursor.key()) {
            found = cursor.step()?;
        }
        Ok(found.then_some(cursor))
    }

    /// The present entry's key.
    pub(super) fn key(&self) -> &[u8] {
        &self.window.bytes[self.entry.key.clone()]
    }

    /// The present entry's value; none: the key is deleted.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.entry.value.clone().map(|value| &self.window.bytes[value])
    }

    /// Goes to the next entry; false when there is none.
    pub(super) fn step(&mut self) -> Result<bool, Error> {
        let number = loop {
            match self.entries.next() {
                Some(number) => break number,
                None if self.load_block()? => {}
                None => return Ok(false),
            }
        };
        let block = Block::parse(&self.window.bytes[self.block.clone()]);
        let place = block.and_then(|block| block.place(number)).map_err(self.run.file.malformed())?;
        let shift = |part: Range<usize>| part.start + self.block.start..part.end + self.block.start;
        self.entry = EntryRanges { key: shift(place.key), value: place.value.map(shift) };
        Ok(true)
    }

    /// Skips to the first entry that is not below the key.
    fn seek(&mut self, key: &Key) -> Result<(), Error> {
        let Some(leaf) = self.run.top.find(key) else { return Ok(()) };
        self.leaves.start = leaf;
        self.load_leaf()?;
        let block = Leaf::parse(&self.leaf).and_then(|leaf| leaf.find(key.as_bytes()));
        self.blocks.start = block.map_err(self.run.file.malformed())?.unwrap_or(0);
        self.load_block()?;
        let block = Block::parse(&self.window.bytes[self.block.clone()]);
        let entry = block.and_then(|block| block.below(key.as_bytes()));
        self.entries.start = entry.map_err(self.run.file.malformed())?;
        Ok(())
    }

    fn load_block(&mut self) -> Result<bool, Error> {
        let number = loop {
            match self.blocks.next() {
                Some(number) => break number,
                None if self.load_leaf()? => {}
                None => return Ok(false),
            }
        };
        let child = Leaf::parse(&self.leaf).and_then(|leaf| leaf.child(number));
        let (_, span) = child.map_err(self.run.file.malformed())?;
        self.block = self.window.load(&self.run.file, span)?;
        let block = Block::parse(&self.window.bytes[self.block.clone()]);
        self.entries = 0..block.map_err(self.run.file.malformed())?.count();
        Ok(true)
    }

    fn load_leaf(&mut self) -> Result<bool, Error> {
        let Some(number) = self.leaves.next() else { return Ok(false) };
        self.run.file.read(self.run.top.leaves()[number].1, Wait::Yes, &mut self.leaf)?;
        self.blocks = 0..Leaf::parse(&self.leaf).map_err(self.run.file.malformed())?.count();
        Ok(true)
    }
}

/// A piece of a file, of which blocks are taken from front to back.
struct Window {
    start: u64,
    bytes: Vec<u8>,
    /// The number of bytes to read next. It grows as the walk continues.
    ahead: usize,
}

impl Window {
    /// The range of a block in the window, read if necessary and checked.
    fn load(&mut self, file: &SpannedFile, span: Span) -> Result<Range<usize>, Error> {
        let len = span.len as usize;
        let within = |start: u64, held: usize| {
            let at = usize::try_from(span.offset.checked_sub(start)?).ok()?;
            (at.checked_add(len)? <= held).then_some(at..at + len)
        };
        let range = match within(self.start, self.bytes.len()) {
            Some(range) => range,
            None => {
                let rest = usize::try_from(file.len.saturating_sub(span.offset)).unwrap_or(usize::MAX);
                file.read_raw(span.offset, self.ahead.min(rest).max(len), Wait::Yes, &mut self.bytes)?;
                self.start = span.offset;
                self.ahead = (2 * self.ahead).min(AHEAD_MOST);
                0..len
            }
        };
        file.check(span, &self.bytes[range.clone()])?;
        Ok(range)
    }
}
