//! Writes a run: entries are added in key order, and each part is written as soon as it is full.

use super::block::{BLOCK_MOST, Block, Builder};
use super::error::Error;
use super::filter::Filter;
use super::footer::Footer;
use super::home::{Draft, Home, Name};
use super::key::{Key, is_point};
use super::manifest::ListedRun;
use super::run::Run;
use super::span::Span;
use super::top::{LEAF_MOST, TopLevel};

/// The number of bytes written at once.
const PIECE: usize = 256 << 10;

/// A run that is being written.
pub(super) struct Writer {
    number: u64,
    level: u8,
    draft: Draft,
    /// Bytes of finished parts that are not written yet, and where in the file they end.
    pending: Vec<u8>,
    end: u64,
    block: Builder,
    leaf: Builder,
    top: TopLevel,
    filter: Filter,
    entries: u64,
    points: u64,
    last: Option<Key>,
}

impl Writer {
    /// A run without entries, with a filter for up to `points` points.
    pub(super) fn create(home: &Home, number: u64, level: u8, points: u64) -> Result<Writer, Error> {
        Ok(Writer {
            number,
            level,
            draft: home.create(Name::Run(number))?,
            pending: Vec::with_capacity(PIECE),
            end: 0,
            block: Builder::new(BLOCK_MOST),
            leaf: Builder::new(LEAF_MOST),
            top: TopLevel::default(),
            filter: Filter::with_room(points),
            entries: 0,
            points: 0,
            last: None,
        })
    }

    /// Adds an entry; its key is above all that were added.
    pub(super) fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Error> {
        if !self.block.fits(key, value) {
            self.end_block()?;
        }
        self.block.add(key, value);
        self.entries += 1;
        if is_point(key) {
            self.points += 1;
            self.filter.add(key);
        }
        Ok(())
    }

    /// Syncs the bytes written so far, so that the last sync of a long run is short.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.draft.sync()
    }

    /// The run, durable and under its name, and the guard that removes it unless a manifest lists it. None when no
    /// entry was added.
    pub(super) fn finish(mut self) -> Result<Option<(Run, Draft)>, Error> {
        self.end_block()?;
        self.end_leaf()?;
        let (Some(&(first, _)), Some(last)) = (self.top.leaves().first(), self.last) else { return Ok(None) };
        let top = self.append(&self.top.encode())?;
        let filter = Span::of(self.filter.as_bytes(), self.end);
        self.draft.append(&std::mem::take(&mut self.pending))?;
        self.draft.append(self.filter.as_bytes())?;
        self.end += u64::from(filter.len);
        let (number, entries, points) = (self.number, self.entries, self.points);
        let footer = Footer { number, entries, points, first, last, top, filter };
        let footer_bytes = footer.encode();
        self.draft.append(&footer_bytes)?;
        self.draft.sync()?;
        self.draft.publish()?;
        let bytes = self.end + footer_bytes.len() as u64;
        let footer_crc =
            u32::from_le_bytes(*footer_bytes.last_chunk().expect("a footer ends with its checksum"));
        let listed = ListedRun { number, level: self.level, bytes, entries, footer_crc };
        let run = Run::written(self.draft.read(), listed, footer, self.top, self.filter);
        Ok(Some((run, self.draft)))
    }

    fn end_block(&mut self) -> Result<(), Error> {
        let Some(first) = Key::new(self.block.first()) else { return Ok(()) };
        let block = self.block.take();
        self.last = last_key(&block);
        let span = self.append(&block)?.encode();
        if !self.leaf.fits(first.as_bytes(), Some(&span)) {
            self.end_leaf()?;
        }
        self.leaf.add(first.as_bytes(), Some(&span));
        Ok(())
    }

    fn end_leaf(&mut self) -> Result<(), Error> {
        let Some(first) = Key::new(self.leaf.first()) else { return Ok(()) };
        let leaf = self.leaf.take();
        let span = self.append(&leaf)?;
        self.top.add(first, span);
        Ok(())
    }

    /// Puts a part behind the others.
    fn append(&mut self, part: &[u8]) -> Result<Span, Error> {
        let span = Span::of(part, self.end);
        self.end += part.len() as u64;
        self.pending.extend_from_slice(part);
        if self.pending.len() >= PIECE {
            self.draft.append(&self.pending)?;
            self.pending.clear();
        }
        Ok(span)
    }
}

fn last_key(block: &[u8]) -> Option<Key> {
    let block = Block::parse(block).ok()?;
    let (key, _) = block.entry(block.count().checked_sub(1)?).ok()?;
    Key::new(key)
}
