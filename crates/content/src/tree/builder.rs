//! Builds the tree of a blob while it is written.

use blake3::Hasher;
use blake3::hazmat::HasherExt;

use super::{GROUP_LEN, SHAPE, Shape, Tree, VALUE_LEN, Value, merge, place, root};
use crate::Address;

/// Hashes a blob once, for its address and its tree. Holds the values of one span, and the spans' values.
#[derive(Debug)]
pub(crate) struct Builder {
    shape: Shape,
    len: u64,
    /// The hasher of the current group; `None` if the last group came with its value.
    hasher: Option<Hasher>,
    /// The values of the current span.
    groups: Vec<Value>,
    spans: Vec<Value>,
    /// Groups' values that are not in the tree file yet, and where they go.
    ready: Part,
}

/// The values of whole groups that begin at `offset`, which is a multiple of their length, in a blob that has more.
pub(crate) fn group_values(offset: u64, bytes: &[u8]) -> Vec<Value> {
    let offsets = (offset..).step_by(GROUP_LEN);
    let value = |(offset, group): (u64, &[u8])| {
        Hasher::new().set_input_offset(offset).update(group).finalize_non_root()
    };
    offsets.zip(bytes.chunks(GROUP_LEN)).map(value).collect()
}

/// Bytes of a tree file, and where they go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A whole blob's address and what is left to write of its tree file.
#[derive(Debug)]
pub(crate) struct BuiltTree {
    pub(crate) address: Address,
    pub(crate) len: u64,
    /// The last values, then the header: a tree file that was cut off in writing has none.
    pub(crate) tree: [Part; 2],
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder::with(SHAPE)
    }

    pub(super) fn with(shape: Shape) -> Builder {
        let ready = Part { offset: place(0), bytes: Vec::new() };
        Builder { shape, len: 0, hasher: Some(Hasher::new()), groups: Vec::new(), spans: Vec::new(), ready }
    }

    /// Takes the blob's next bytes. Whole groups at a time are fastest.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let filled = self.len % self.shape.group_len;
            // Only now is it certain that the current group is not the whole blob.
            if filled == 0 && self.len > 0 {
                self.end_group();
                // A new one, because a hasher that is reset keeps its offset.
                self.hasher.insert(Hasher::new()).set_input_offset(self.len);
            }
            let room = (self.shape.group_len - filled) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.hasher.as_mut().expect("a group has begun").update(now);
            self.len += now.len() as u64;
            bytes = later;
        }
    }

    /// Takes the values of the next groups, all of them whole, which were hashed elsewhere ([`group_values`]). Groups of
    /// this kind are never the whole blob: there are at least two.
    pub(crate) fn push_groups(&mut self, values: &[Value]) {
        debug_assert!(self.len.is_multiple_of(self.shape.group_len), "whole groups begin at one");
        debug_assert!(self.len > 0 || values.len() > 1, "one group may be the whole blob");
        if self.len > 0 {
            self.end_group();
        }
        self.hasher = None;
        for value in values {
            self.begin_span();
            self.push_group(*value);
        }
        self.len += values.len() as u64 * self.shape.group_len;
    }

    /// The values that can be written to the tree file, once they are those of a whole span.
    pub(crate) fn ready(&mut self) -> Option<Part> {
        let enough = self.shape.span_groups as usize * VALUE_LEN;
        (self.ready.bytes.len() >= enough).then(|| {
            let next = self.ready.offset + self.ready.bytes.len() as u64;
            std::mem::replace(&mut self.ready, Part { offset: next, bytes: Vec::new() })
        })
    }

    /// Ends the blob.
    pub(crate) fn finish(mut self) -> BuiltTree {
        let tree = Tree { shape: self.shape, len: self.len };
        if tree.groups() == 1 {
            let hasher = self.hasher.take().expect("a single group is hashed here");
            self.push_group(*hasher.finalize().as_bytes());
        } else {
            self.end_group();
        }
        if tree.spans() == 1 {
            self.spans.push(root(&self.groups));
        } else {
            self.end_span();
        }
        let mut last = self.ready;
        last.bytes.extend(self.spans.as_flattened());
        let header = Part { offset: 0, bytes: tree.header().to_vec() };
        BuiltTree { address: Address::from_bytes(root(&self.spans)), len: self.len, tree: [last, header] }
    }

    /// Ends the current group, unless it came with its value.
    fn end_group(&mut self) {
        if let Some(hasher) = self.hasher.take() {
            self.begin_span();
            self.push_group(hasher.finalize_non_root());
        }
    }

    /// Ends the current span if it is full.
    fn begin_span(&mut self) {
        if self.groups.len() as u64 == self.shape.span_groups {
            self.end_span();
        }
    }

    fn push_group(&mut self, value: Value) {
        self.groups.push(value);
        self.ready.bytes.extend(value);
    }

    fn end_span(&mut self) {
        self.spans.push(merge(&self.groups));
        self.groups.clear();
    }
}
