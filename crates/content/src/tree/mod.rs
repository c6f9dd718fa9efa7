//! The BLAKE3 tree of a large blob, kept at two levels, so that any part of the blob can be checked by itself.
//!
//! A blob is cut into groups of 64 KiB, and 1024 groups are a span. Each has a value: BLAKE3's chaining value of its
//! subtree, or the address itself where the part is the whole blob. Spans' values merge to the address, a span's
//! groups' values to the span's, and the bytes of a group hash to its value; so one group costs one group of reading
//! and one span's values, and what has to be in memory at once is 32 bytes for each 64 MiB.
//!
//! A tree file is a header, the groups' values and the spans' values. Nothing in it is believed unless it merges to
//! the address.

mod builder;
#[cfg(test)]
mod tests;

use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{self, HasherExt, Mode};

use crate::Address;

pub(crate) use builder::{Builder, Part, group_values};

/// The value of a group or a span.
pub(crate) type Value = [u8; VALUE_LEN];

/// The length of a tree file's header.
pub(crate) const HEADER_LEN: usize = 24;

/// The length of a group, in bytes.
pub(crate) const GROUP_LEN: usize = 64 << 10;

const VALUE_LEN: usize = 32;
const MAGIC: [u8; 8] = *b"blobtree";
const VERSION: u32 = 1;

/// The tree of a blob with a given length: the positions of its parts and their values, and the checks of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    shape: Shape,
    len: u64,
}

/// The way in which a blob is split. Both numbers are powers of two, so that groups and spans are subtrees of BLAKE3's
/// tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    group_len: u64,
    span_groups: u64,
}

const SHAPE: Shape = Shape { group_len: GROUP_LEN as u64, span_groups: 1024 };

impl Tree {
    /// The tree of a blob of `len` bytes.
    pub(crate) fn of(len: u64) -> Tree {
        Tree { shape: SHAPE, len }
    }

    /// The header of the tree file.
    pub(crate) fn header(&self) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..20].copy_from_slice(&self.len.to_le_bytes());
        let check = crc32fast::hash(&header[..20]);
        header[20..].copy_from_slice(&check.to_le_bytes());
        header
    }

    /// The length of the tree file.
    pub(crate) fn file_len(&self) -> u64 {
        self.span_values().end
    }

    /// The groups that overlap this range of the blob.
    pub(crate) fn groups_of(&self, range: &Range<u64>) -> Range<u64> {
        range.start / self.shape.group_len..range.end.div_ceil(self.shape.group_len)
    }

    /// The span of a group, and the group's index in it.
    pub(crate) fn place_of(&self, group: u64) -> (u64, usize) {
        (group / self.shape.span_groups, (group % self.shape.span_groups) as usize)
    }

    /// The range of a group's bytes in the blob.
    pub(crate) fn group(&self, group: u64) -> Range<u64> {
        let start = group.saturating_mul(self.shape.group_len);
        start.min(self.len)..start.saturating_add(self.shape.group_len).min(self.len)
    }

    /// The range of the values of a span's groups in the tree file.
    pub(crate) fn group_values(&self, span: u64) -> Range<u64> {
        let first = span.saturating_mul(self.shape.span_groups).min(self.groups());
        let last = first.saturating_add(self.shape.span_groups).min(self.groups());
        place(first)..place(last)
    }

    /// The range of the spans' values in the tree file.
    pub(crate) fn span_values(&self) -> Range<u64> {
        place(self.groups())..place(self.groups() + self.spans())
    }

    /// Whether these are the spans' values of the blob at `address`.
    pub(crate) fn spans_hold(&self, spans: &[Value], address: &Address) -> bool {
        spans.len() as u64 == self.spans() && root(spans) == *address.as_bytes()
    }

    /// Whether these are the values of the groups of a span that has this value.
    pub(crate) fn groups_hold(&self, span: u64, groups: &[Value], value: &Value) -> bool {
        let range = self.group_values(span);
        let merge = if self.spans() == 1 { root } else { merge };
        let whole = groups.len() as u64 * VALUE_LEN as u64 == range.end - range.start;
        whole && !groups.is_empty() && merge(groups) == *value
    }

    /// Whether these are the bytes of a group that has this value.
    pub(crate) fn group_holds(&self, group: u64, bytes: &[u8], value: &Value) -> bool {
        let range = self.group(group);
        bytes.len() as u64 == range.end - range.start && self.value_of(range.start, bytes) == Some(*value)
    }

    fn value_of(&self, start: u64, bytes: &[u8]) -> Option<Value> {
        match bytes {
            _ if self.groups() == 1 => Some(*blake3::hash(bytes).as_bytes()),
            // A group past the end of the blob.
            [] => None,
            _ => Some(Hasher::new().set_input_offset(start).update(bytes).finalize_non_root()),
        }
    }

    fn groups(&self) -> u64 {
        self.len.div_ceil(self.shape.group_len).max(1)
    }

    fn spans(&self) -> u64 {
        self.groups().div_ceil(self.shape.span_groups)
    }
}

/// The offset of the value with this number in a tree file.
fn place(number: u64) -> u64 {
    HEADER_LEN as u64 + number * VALUE_LEN as u64
}

/// Values as they are in a tree file.
pub(crate) fn decode_values(bytes: &[u8]) -> Vec<Value> {
    bytes.as_chunks().0.to_vec()
}

/// The address of the blob whose parts have these values, left to right, all of one size but the last.
fn root(values: &[Value]) -> Value {
    match values {
        [whole] => *whole,
        _ => {
            let (left, right) = values.split_at(left_len(values.len()));
            *hazmat::merge_subtrees_root(&merge(left), &merge(right), Mode::Hash).as_bytes()
        }
    }
}

/// The value of the part, not the whole blob, whose parts have these values.
fn merge(values: &[Value]) -> Value {
    match values {
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(left_len(values.len()));
            hazmat::merge_subtrees_non_root(&merge(left), &merge(right), Mode::Hash)
        }
    }
}

/// The largest power of two under `count`, which is two or more: a left subtree is always full.
fn left_len(count: usize) -> usize {
    count.div_ceil(2).next_power_of_two()
}
