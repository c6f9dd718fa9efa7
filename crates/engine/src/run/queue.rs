//! Nodes in order of their rank, most of which arrive in that order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::graph::NodeId;

/// Fresh nodes before those that were tried before, then the lowest number.
pub(super) type Rank = (u32, NodeId);

/// A priority queue. A node that ranks behind all before it costs no search: a frontier gives out a million ready nodes
/// in ascending order.
#[derive(Default)]
pub(super) struct NodeQueue {
    ascending: VecDeque<Rank>,
    others: BinaryHeap<Reverse<Rank>>,
}

impl NodeQueue {
    pub(super) fn push(&mut self, rank: Rank) {
        match self.ascending.back() {
            Some(last) if *last > rank => self.others.push(Reverse(rank)),
            _ => self.ascending.push_back(rank),
        }
    }

    /// The best node.
    pub(super) fn peek(&self) -> Option<Rank> {
        match (self.ascending.front(), self.others.peek()) {
            (Some(first), Some(Reverse(other))) => Some(*first.min(other)),
            (first, other) => first.or(other.map(|Reverse(other)| other)).copied(),
        }
    }

    /// Takes the best node.
    pub(super) fn pop(&mut self) -> Option<Rank> {
        let best = self.peek()?;
        match self.ascending.front() {
            Some(first) if *first == best => self.ascending.pop_front(),
            _ => self.others.pop().map(|Reverse(rank)| rank),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gives_nodes_out_as_a_sorted_list_would(
            steps in prop::collection::vec(prop::option::weighted(0.6, (0..3u32, 0..50u32)), 0..200),
        ) {
            let (mut queue, mut model) = (NodeQueue::default(), Vec::new());
            for step in steps {
                match step {
                    Some((tries, node)) => {
                        queue.push((tries, NodeId(node)));
                        model.push((tries, NodeId(node)));
                        model.sort_unstable();
                    }
                    None => {
                        prop_assert_eq!(queue.peek(), model.first().copied());
                        let best = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(queue.pop(), best);
                    }
                }
            }
        }
    }
}
