//! The end of a run's file: where its other parts are.

use super::error::DecodeFailure;
use super::key::{KEY_MOST, Key};
use super::span::Span;
use crate::fields::FieldReader;

const MAGIC: [u8; 8] = *b"indexrun";
const VERSION: u32 = 1;

/// The description of a run, at the end of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) number: u64,
    pub(super) entries: u64,
    /// The number of entries in the filter.
    pub(super) points: u64,
    pub(super) first: Key,
    pub(super) last: Key,
    pub(super) top: Span,
    pub(super) filter: Span,
}

impl Footer {
    pub(super) const BYTES: usize = 8 + 4 + 3 * 8 + 2 * (1 + KEY_MOST) + 2 * Span::BYTES + 4;

    /// The footer's bytes, of which the last four are their checksum.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        for number in [self.number, self.entries, self.points] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for key in [&self.first, &self.last] {
            let end = bytes.len() + 1 + KEY_MOST;
            bytes.push(key.as_bytes().len() as u8);
            bytes.extend_from_slice(key.as_bytes());
            bytes.resize(end, 0);
        }
        bytes.extend_from_slice(&self.top.encode());
        bytes.extend_from_slice(&self.filter.encode());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Footer, DecodeFailure> {
        let (rest, crc) = bytes.split_last_chunk().ok_or(DecodeFailure("the footer is too short"))?;
        if u32::from_le_bytes(*crc) != crc32fast::hash(rest) {
            return Err(DecodeFailure("the footer changed"));
        }
        let mut take = FieldReader(rest);
        if take.array() != Some(MAGIC) {
            return Err(DecodeFailure("it is not a run of an index"));
        }
        if take.u32() != Some(VERSION) {
            return Err(DecodeFailure("its version is unknown"));
        }
        let footer = Footer::take(&mut take)
            .ok_or(DecodeFailure("the footer ends early or has a key that is not one"))?;
        take.end().map(|()| footer).ok_or(DecodeFailure("the footer is too long"))
    }

    /// The fields behind the version.
    fn take(take: &mut FieldReader<'_>) -> Option<Footer> {
        Some(Footer {
            number: take.u64()?,
            entries: take.u64()?,
            points: take.u64()?,
            first: take_key(take)?,
            last: take_key(take)?,
            top: Span::take(take)?,
            filter: Span::take(take)?,
        })
    }
}

/// A length, then a key with zeros behind it.
fn take_key(take: &mut FieldReader<'_>) -> Option<Key> {
    let len = take.u8()?;
    let (key, padding) = take.bytes(KEY_MOST)?.split_at_checked(usize::from(len))?;
    Key::new(key).filter(|_| padding.iter().all(|byte| *byte == 0))
}
