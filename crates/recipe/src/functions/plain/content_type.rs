//! Guesses the content type of bytes.

use std::str;

use crate::function::{Fault, Out};
use crate::functions::kernels::{StreamingFunction, signature, summed};
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    functions.add(StreamingFunction(
        signature(
            "content_type/1.0.0",
            "The media type according to the first bytes: image/png, image/jpeg, image/gif, \
             application/zip, application/gzip, application/pdf, application/zstd; application/json for \
             `{` or `[`; otherwise text/plain for UTF-8, also if empty, and application/octet-stream.",
        )
        .nanos_per_kib(60),
        |_| Ok(summed(SeenBytes::default(), SeenBytes::see, |seen, out| seen.give(out, SeenBytes::simple))),
    ));
    functions.add(StreamingFunction(
        signature(
            "content_type/2.0.0",
            "The media type according to the first bytes, as in 1.0.0, but application/json for UTF-8 that \
             begins with `{` or `[` and ends with its counterpart, apart from white space; text/plain for \
             other UTF-8; application/octet-stream for other bytes and for an empty input.",
        )
        .nanos_per_kib(60),
        |_| Ok(summed(SeenBytes::default(), SeenBytes::see, |seen, out| seen.give(out, SeenBytes::careful))),
    ));
}

const BEGINNINGS: [(&[u8], &str); 7] = [
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"%PDF", "application/pdf"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
];

/// The length of the longest entry in [`BEGINNINGS`].
const HEAD: usize = 4;

#[derive(Default)]
struct SeenBytes {
    head: Vec<u8>,
    /// The first and the last byte that are not white space.
    first: Option<u8>,
    last: Option<u8>,
    utf8: Utf8,
}

impl SeenBytes {
    fn see(&mut self, chunk: &[u8]) {
        let missing = HEAD - self.head.len();
        self.head.extend_from_slice(&chunk[..missing.min(chunk.len())]);
        let trimmed = chunk.trim_ascii();
        self.first = self.first.or(trimmed.first().copied());
        self.last = trimmed.last().copied().or(self.last);
        self.utf8.see(chunk);
    }

    fn give(&self, out: &mut Out, otherwise: fn(&SeenBytes) -> &'static str) -> Result<(), Fault> {
        let beginning = BEGINNINGS.iter().find(|(beginning, _)| self.head.starts_with(beginning));
        out.write(beginning.map_or_else(|| otherwise(self), |(_, name)| name).as_bytes());
        Ok(())
    }

    fn simple(&self) -> &'static str {
        match (self.head.first(), self.utf8.whole()) {
            (Some(b'{' | b'['), _) => "application/json",
            (_, true) => "text/plain",
            (_, false) => "application/octet-stream",
        }
    }

    fn careful(&self) -> &'static str {
        match (self.first, self.last) {
            _ if self.head.is_empty() || !self.utf8.whole() => "application/octet-stream",
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) => "application/json",
            _ => "text/plain",
        }
    }
}

/// Tracks whether all bytes so far are UTF-8, and holds an incomplete character.
#[derive(Default)]
struct Utf8 {
    broken: bool,
    begun: Vec<u8>,
}

impl Utf8 {
    fn see(&mut self, mut chunk: &[u8]) {
        while !self.broken && !self.begun.is_empty() && !chunk.is_empty() {
            self.begun.push(chunk[0]);
            chunk = &chunk[1..];
            match str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) => self.broken = error.error_len().is_some(),
            }
        }
        if self.broken {
            return;
        }
        if let Err(error) = str::from_utf8(chunk) {
            self.broken = error.error_len().is_some();
            self.begun
                .extend_from_slice(&chunk[error.valid_up_to()..][..3.min(chunk.len() - error.valid_up_to())]);
        }
    }

    fn whole(&self) -> bool {
        !self.broken && self.begun.is_empty()
    }
}
