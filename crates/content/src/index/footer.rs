//! The end of a run's file: where its other parts are.

use super::error::Malformed;
use super::key::{KEY_MOST, Key};
use super::span::{Span, take, take_u32, take_u64};

const MAGIC: [u8; 8] = *b"indexrun";
const VERSION: u32 = 1;

/// What a run's file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) number: u64,
    pub(super) entries: u64,
    /// How many of the entries are in the filter.
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

    pub(super) fn decode(bytes: &[u8]) -> Result<Footer, Malformed> {
        let (mut rest, crc) = bytes.split_last_chunk().ok_or(Malformed("the footer is too short"))?;
        if u32::from_le_bytes(*crc) != crc32fast::hash(rest) {
            return Err(Malformed("the footer changed"));
        }
        if take(&mut rest)? != MAGIC {
            return Err(Malformed("it is no run of an index"));
        }
        if take_u32(&mut rest)? != VERSION {
            return Err(Malformed("its version is unknown"));
        }
        let footer = Footer {
            number: take_u64(&mut rest)?,
            entries: take_u64(&mut rest)?,
            points: take_u64(&mut rest)?,
            first: take_key(&mut rest)?,
            last: take_key(&mut rest)?,
            top: Span::decode(&take::<{ Span::BYTES }>(&mut rest)?)?,
            filter: Span::decode(&take::<{ Span::BYTES }>(&mut rest)?)?,
        };
        if rest.is_empty() { Ok(footer) } else { Err(Malformed("the footer is too long")) }
    }
}

fn take_key(bytes: &mut &[u8]) -> Result<Key, Malformed> {
    let [len] = take(bytes)?;
    let padded = take::<KEY_MOST>(bytes)?;
    let (key, padding) = padded.split_at_checked(usize::from(len)).ok_or(Malformed("a key is too long"))?;
    match Key::new(key) {
        Some(key) if padding.iter().all(|byte| *byte == 0) => Ok(key),
        _ => Err(Malformed("a key is not whole")),
    }
}
