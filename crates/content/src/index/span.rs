//! Parts of a file, each named with its checksum by the part above it: a manifest names footers, a footer the top, the
//! top leaves, a leaf blocks. So no part can be damaged, misplaced or exchanged without the one who asks for it seeing.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::{Error, Malformed};
use crate::{File, Wait};

/// Where a part is, and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) crc: u32,
}

impl Span {
    pub(super) const BYTES: usize = 16;

    /// The span of these bytes, when they are put at this offset.
    pub(super) fn of(bytes: &[u8], offset: u64) -> Span {
        Span { offset, len: bytes.len() as u32, crc: crc32fast::hash(bytes) }
    }

    pub(super) fn encode(&self) -> [u8; Span::BYTES] {
        let mut bytes = [0; Span::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..].copy_from_slice(&self.crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Result<Span, Malformed> {
        let span =
            Span { offset: take_u64(&mut bytes)?, len: take_u32(&mut bytes)?, crc: take_u32(&mut bytes)? };
        if bytes.is_empty() { Ok(span) } else { Err(Malformed("a span is too long")) }
    }
}

/// Takes the next bytes, of which there must be so many.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (first, rest) = bytes.split_first_chunk().ok_or(Malformed("it ends early"))?;
    *bytes = rest;
    Ok(*first)
}

pub(super) fn take_u32(bytes: &mut &[u8]) -> Result<u32, Malformed> {
    take(bytes).map(u32::from_le_bytes)
}

pub(super) fn take_u64(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    take(bytes).map(u64::from_le_bytes)
}

/// A file that is read in spans.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    pub(super) len: u64,
}

impl Spanned {
    /// Reads the bytes of a span and checks them.
    pub(super) fn read(&self, span: Span, wait: Wait, into: &mut Vec<u8>) -> Result<(), Error> {
        self.read_raw(span.offset, span.len as usize, wait, into)?;
        self.check(span, into)
    }

    /// Reads bytes that are to be checked later. Nothing is allocated for bytes that the file does not have.
    pub(super) fn read_raw(
        &self,
        offset: u64,
        len: usize,
        wait: Wait,
        into: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            return Err(self.damaged("it ends before a part of it"));
        }
        into.resize(len, 0);
        match self.file.read_at(into, offset, wait) {
            Ok(count) if count == len => Ok(()),
            Ok(_) => Err(self.damaged("it was cut off")),
            Err(cause) => Err(Error::disk("read", &self.path, cause)),
        }
    }

    pub(super) fn check(&self, span: Span, bytes: &[u8]) -> Result<(), Error> {
        match crc32fast::hash(bytes) == span.crc {
            true => Ok(()),
            false => Err(self.damaged(format!("the {} bytes at {} changed", span.len, span.offset))),
        }
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// What bytes of this file that do not decode mean.
    pub(super) fn malformed(&self) -> impl Fn(Malformed) -> Error + use<'_> {
        |Malformed(what)| self.damaged(what)
    }
}
