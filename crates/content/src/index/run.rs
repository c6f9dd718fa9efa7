//! A run: sorted entries in a file that never changes.
//!
//! The file has blocks of entries; after every few dozen blocks, the leaf that names them; at the end the top, which
//! names the leaves, the filter and the footer. Top and filter are held in memory.

use super::block::Block;
use super::error::{DecodeFailure, Error};
use super::filter::Filter;
use super::footer::Footer;
use super::home::{Home, Name};
use super::key::{Key, is_point};
use super::manifest::ListedRun;
use super::span::{Span, SpannedFile};
use super::table::Change;
use super::top::{Leaf, TopLevel};
use crate::Wait;

/// A run, open to be read.
pub(super) struct Run {
    pub(super) listed: ListedRun,
    pub(super) file: SpannedFile,
    pub(super) footer: Footer,
    pub(super) top: TopLevel,
    filter: Filter,
}

impl Run {
    /// Opens a run that a manifest lists.
    pub(super) fn open(home: &Home, listed: &ListedRun) -> Result<Run, Error> {
        let file = home.open(Name::Run(listed.number))?;
        Run::load(file, listed)
    }

    /// A run that was just written.
    pub(super) fn written(
        file: SpannedFile,
        listed: ListedRun,
        footer: Footer,
        top: TopLevel,
        filter: Filter,
    ) -> Run {
        Run { listed, file, footer, top, filter }
    }

    /// Reads the parts of a run that are held in memory, and checks that this is the file that the manifest names.
    pub(super) fn load(file: SpannedFile, listed: &ListedRun) -> Result<Run, Error> {
        if file.len != listed.bytes {
            return Err(file.damaged(format!("it has {} bytes, not {}", file.len, listed.bytes)));
        }
        let mut bytes = Vec::new();
        let offset = file.len.saturating_sub(Footer::BYTES as u64);
        file.read_raw(offset, Footer::BYTES, Wait::Yes, &mut bytes)?;
        let footer = Footer::decode(&bytes).map_err(file.malformed())?;
        if !bytes.ends_with(&listed.footer_crc.to_le_bytes())
            || (footer.number, footer.entries) != (listed.number, listed.entries)
        {
            return Err(file.damaged("it is another run than the manifest means"));
        }
        if footer.points > footer.entries || footer.entries > file.len {
            return Err(file.damaged("it has no room for its entries"));
        }
        file.read(footer.top, Wait::Yes, &mut bytes)?;
        let top = TopLevel::decode(&bytes).map_err(file.malformed())?;
        file.read(footer.filter, Wait::Yes, &mut bytes)?;
        let filter = Filter::decode(&bytes).map_err(file.malformed())?;
        Ok(Run { listed: listed.clone(), file, footer, top, filter })
    }

    /// False if the run certainly does not have the key.
    pub(super) fn may_have(&self, key: &Key) -> bool {
        match is_point(key.as_bytes()) {
            true => self.filter.may_have(key.as_bytes()),
            false => (self.footer.first..=self.footer.last).contains(key),
        }
    }

    /// The run's entry of a key, if it has one. `near` must have been used for this run only, or be new.
    pub(super) fn find(&self, key: &Key, wait: Wait, near: &mut LastBlock) -> Result<Option<Change>, Error> {
        let Some(leaf) = self.top.find(key) else { return Ok(None) };
        let leaf = near.leaf.load(&self.file, self.top.leaves()[leaf].1, wait)?;
        let Some(block) = choose(leaf, key).map_err(self.file.malformed())? else { return Ok(None) };
        let block = near.block.load(&self.file, block, wait)?;
        let found = Block::parse(block).and_then(|block| block.find(key.as_bytes()));
        Ok(found.map_err(self.file.malformed())?.map(|value| value.map(Box::from)))
    }

    /// The memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.top.bytes() + self.filter.as_bytes().len()
    }
}

/// The block of a leaf that has the key if any does.
fn choose(leaf: &[u8], key: &Key) -> Result<Option<Span>, DecodeFailure> {
    let leaf = Leaf::parse(leaf)?;
    let Some(number) = leaf.find(key.as_bytes())? else { return Ok(None) };
    Ok(Some(leaf.child(number)?.1))
}

/// The block that a lookup read last in a run: if keys are looked up in order, the next key is often in it too.
#[derive(Default)]
pub(super) struct LastBlock {
    leaf: LoadedSpan,
    block: LoadedSpan,
}

impl LastBlock {
    /// Ready for another run.
    pub(super) fn forget(&mut self) {
        (self.leaf.span, self.block.span) = (None, None);
    }
}

#[derive(Default)]
struct LoadedSpan {
    span: Option<Span>,
    bytes: Vec<u8>,
}

impl LoadedSpan {
    fn load(&mut self, file: &SpannedFile, span: Span, wait: Wait) -> Result<&[u8], Error> {
        if self.span != Some(span) {
            self.span = None;
            file.read(span, wait, &mut self.bytes)?;
            self.span = Some(span);
        }
        Ok(&self.bytes)
    }
}
