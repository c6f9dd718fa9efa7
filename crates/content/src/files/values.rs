//! The values of a blob's tree, each checked against the address before it is used.

use std::ops::Range;
use std::sync::Arc;

use crate::tree::{self, HEADER_LEN, Tree, Value};
use crate::{Address, File, Wait};

/// A tree file whose spans' values were verified. It holds these and the values of one span's groups in memory.
#[derive(Debug)]
pub(super) struct Values {
    tree: Tree,
    file: Arc<dyn File>,
    spans: Vec<Value>,
    in_hand: Option<(u64, Vec<Value>)>,
}

impl Values {
    /// Opens a blob's tree file; `None` if it is not verified, or if the disk fails: the tree can be rebuilt.
    pub(super) fn open(file: Arc<dyn File>, address: &Address, len: u64) -> Option<Values> {
        let tree = Tree::of(len);
        let mut header = [0; HEADER_LEN];
        let read = file.read_at(&mut header, 0, Wait::Yes).ok()?;
        if read < HEADER_LEN || header != tree.header() || file.len().ok()? != tree.file_len() {
            return None;
        }
        let spans = read_values(&*file, tree.span_values())?;
        tree.spans_hold(&spans, address).then_some(Values { tree, file, spans, in_hand: None })
    }

    /// The values of these groups; `None` if the tree file is damaged there.
    pub(super) fn of_groups(&mut self, groups: Range<u64>) -> Option<Vec<Value>> {
        groups.map(|group| self.of_group(group)).collect()
    }

    fn of_group(&mut self, group: u64) -> Option<Value> {
        let (span, place) = self.tree.place_of(group);
        if self.in_hand.as_ref().is_none_or(|(in_hand, _)| *in_hand != span) {
            self.in_hand = self.load(span);
        }
        self.in_hand.as_ref()?.1.get(place).copied()
    }

    fn load(&self, span: u64) -> Option<(u64, Vec<Value>)> {
        let groups = read_values(&*self.file, self.tree.group_values(span))?;
        let value = self.spans.get(span as usize)?;
        self.tree.groups_hold(span, &groups, value).then_some((span, groups))
    }
}

fn read_values(file: &dyn File, range: Range<u64>) -> Option<Vec<Value>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    let read = file.read_at(&mut bytes, range.start, Wait::Yes).ok()?;
    (read == bytes.len()).then(|| tree::decode_values(&bytes))
}
