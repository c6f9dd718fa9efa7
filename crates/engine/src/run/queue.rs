//! A priority queue for items that mostly arrive in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Returns the least item first. An item that is not less than the previous one costs constant time, because a frontier
/// returns a million ready nodes in ascending order.
pub(super) struct AscendingQueue<T> {
    ascending: VecDeque<T>,
    others: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Default for AscendingQueue<T> {
    fn default() -> AscendingQueue<T> {
        AscendingQueue { ascending: VecDeque::new(), others: BinaryHeap::new() }
    }
}

impl<T: Ord + Copy> AscendingQueue<T> {
    pub(super) fn push(&mut self, item: T) {
        match self.ascending.back() {
            Some(last) if *last > item => self.others.push(Reverse(item)),
            _ => self.ascending.push_back(item),
        }
    }

    /// The least item.
    pub(super) fn peek(&self) -> Option<T> {
        match (self.ascending.front(), self.others.peek()) {
            (Some(first), Some(Reverse(other))) => Some(*first.min(other)),
            (first, other) => first.or(other.map(|Reverse(other)| other)).copied(),
        }
    }

    /// Takes the least item.
    pub(super) fn pop(&mut self) -> Option<T> {
        let least = self.peek()?;
        match self.ascending.front() {
            Some(first) if *first == least => self.ascending.pop_front(),
            _ => self.others.pop().map(|Reverse(item)| item),
        }
    }
}
