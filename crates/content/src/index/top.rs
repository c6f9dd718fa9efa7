//! The part of a run that stays in memory: which leaf to read for a key. A leaf is a block whose values are the spans
//! of blocks of entries, so one step from here to a leaf and one from the leaf to the entries finds any key.

use super::block::Block;
use super::error::DecodeFailure;
use super::key::Key;
use super::span::Span;
use crate::fields::FieldReader;

/// The longest leaf. It is less than a block: a short one is read faster, and the top stays small all the same.
pub(super) const LEAF_MOST: usize = 1024;

/// The leaves of a run, each with the first key under it, in order.
#[derive(Default)]
pub(super) struct TopLevel {
    leaves: Vec<(Key, Span)>,
}

impl TopLevel {
    /// Adds a leaf behind the others.
    pub(super) fn add(&mut self, first: Key, leaf: Span) {
        self.leaves.push((first, leaf));
    }

    pub(super) fn leaves(&self) -> &[(Key, Span)] {
        &self.leaves
    }

    /// The number of the leaf that has the key if any does; none when the key is before all of them.
    pub(super) fn find(&self, key: &Key) -> Option<usize> {
        self.leaves.partition_point(|(first, _)| first <= key).checked_sub(1)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.leaves.as_slice())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (first, leaf) in &self.leaves {
            bytes.push(first.as_bytes().len() as u8);
            bytes.extend_from_slice(first.as_bytes());
            bytes.extend_from_slice(&leaf.encode());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<TopLevel, DecodeFailure> {
        let mut top = TopLevel::default();
        let mut take = FieldReader(bytes);
        while !take.0.is_empty() {
            let (first, leaf) =
                take_leaf(&mut take).ok_or(DecodeFailure("a leaf's key or span is not whole"))?;
            if top.leaves.last().is_some_and(|(before, _)| *before >= first) {
                return Err(DecodeFailure("the leaves are out of order"));
            }
            top.add(first, leaf);
        }
        Ok(top)
    }
}

/// A length, a key of that many bytes, and a span.
fn take_leaf(take: &mut FieldReader<'_>) -> Option<(Key, Span)> {
    let len = take.u8()?;
    Some((Key::new(take.bytes(usize::from(len))?)?, Span::take(take)?))
}

/// A block whose entries are the first keys of blocks, and their spans.
pub(super) struct Leaf<'a>(Block<'a>);

impl<'a> Leaf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Leaf<'a>, DecodeFailure> {
        Ok(Leaf(Block::parse(bytes)?))
    }

    pub(super) fn count(&self) -> usize {
        self.0.count()
    }

    /// A block's first key and its span.
    pub(super) fn child(&self, number: usize) -> Result<(&'a [u8], Span), DecodeFailure> {
        let (first, span) = self.0.entry(number)?;
        Ok((first, Span::decode(span.unwrap_or_default())?))
    }

    /// The number of the block that has the key if any does; none when the key is before all of them.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<usize>, DecodeFailure> {
        let below = self.0.below(key)?;
        let is_first = below < self.count() && self.0.entry(below)?.0 == key;
        Ok(if is_first { Some(below) } else { below.checked_sub(1) })
    }

    pub(super) fn check(&self) -> Result<(), DecodeFailure> {
        self.0.check()?;
        (0..self.count()).try_for_each(|number| self.child(number).map(|_| ()))
    }
}
