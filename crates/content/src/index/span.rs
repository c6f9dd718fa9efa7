//! Parts of a file, each named with its checksum by the part above it: a manifest names footers, a footer the top, the
//! top leaves, a leaf blocks. So the reader of a part detects if it was damaged, moved or exchanged.

use std::path::PathBuf;
use std::sync::Arc;

use super::error::{DecodeFailure, Error};
use crate::fields::FieldReader;
use crate::{File, Wait};

/// The position of a part, and the checksum of its bytes.
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

    pub(super) fn take(take: &mut FieldReader<'_>) -> Option<Span> {
        Some(Span { offset: take.u64()?, len: take.u32()?, crc: take.u32()? })
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Span, DecodeFailure> {
        let mut take = FieldReader(bytes);
        let span = Span::take(&mut take);
        span.filter(|_| take.end().is_some()).ok_or(DecodeFailure("a span is not 16 bytes long"))
    }
}

/// A file that is read in spans.
#[derive(Clone, Debug)]
pub(super) struct SpannedFile {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn File>,
    pub(super) len: u64,
}

impl SpannedFile {
    /// Reads the bytes of a span and checks them.
    pub(super) fn read(&self, span: Span, wait: Wait, into: &mut Vec<u8>) -> Result<(), Error> {
        self.read_raw(span.offset, span.len as usize, wait, into)?;
        self.check(span, into)
    }

    /// Reads bytes that the caller checks later. Allocates nothing for bytes that the file does not have.
    pub(super) fn read_raw(
        &self,
        offset: u64,
        len: usize,
        wait: Wait,
        into: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            return Err(self.damaged("it ends before one of its parts"));
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

    /// The error for bytes of this file that do not decode.
    pub(super) fn malformed(&self) -> impl Fn(DecodeFailure) -> Error + use<'_> {
        |DecodeFailure(what)| self.damaged(what)
    }
}
