//! A set of node numbers whose lowest member is found at once.

/// A bit set with summary levels: one bit per node, then one bit per word of the level below, up to a single word.
///
/// Insert, remove and `pop_first` touch one word per level; six levels cover every `u32`. A single member is kept in
/// `front` and touches no word, which is the usual case in a chain.
pub(crate) struct ReadySet {
    /// A member that is lower than all members in `words`, or [`NO_NODE`].
    front: u32,
    words: Box<[u64]>,
    /// The start of each level in `words`; level 0 holds the members.
    starts: [u32; LEVELS],
    levels: usize,
}

const LEVELS: usize = 6;
/// Graphs are smaller, so no node has this number.
const NO_NODE: u32 = u32::MAX;

impl ReadySet {
    pub(crate) fn new(node_count: u32) -> ReadySet {
        let mut starts = [0; LEVELS];
        let mut levels = 0;
        let mut total = 0;
        let mut width = node_count;
        loop {
            width = width.div_ceil(64).max(1);
            starts[levels] = total;
            total += width;
            levels += 1;
            if width == 1 {
                break;
            }
        }
        ReadySet { front: NO_NODE, words: vec![0; total as usize].into(), starts, levels }
    }

    #[inline]
    pub(crate) fn insert(&mut self, member: u32) {
        if self.front == NO_NODE {
            match self.has_bits() {
                false => self.front = member,
                true => self.set(member),
            }
        } else if member < self.front {
            let behind = std::mem::replace(&mut self.front, member);
            self.set(behind);
        } else {
            self.set(member);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, member: u32) {
        if self.front == member {
            self.front = NO_NODE;
        } else {
            self.clear(member);
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        if self.front == NO_NODE { self.first_bit() } else { Some(self.front) }
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// Looks at the top level, which is a single word.
    #[inline]
    fn has_bits(&self) -> bool {
        self.words[self.words.len() - 1] != 0
    }

    fn set(&mut self, mut member: u32) {
        for &start in &self.starts[..self.levels] {
            let word = &mut self.words[(start + member / 64) as usize];
            let was_empty = *word == 0;
            *word |= 1 << (member % 64);
            if !was_empty {
                return;
            }
            member /= 64;
        }
    }

    fn clear(&mut self, mut member: u32) {
        for &start in &self.starts[..self.levels] {
            let word = &mut self.words[(start + member / 64) as usize];
            *word &= !(1 << (member % 64));
            if *word != 0 {
                return;
            }
            member /= 64;
        }
    }

    fn first_bit(&self) -> Option<u32> {
        let mut at = 0;
        for level in (0..self.levels).rev() {
            let word = self.words[(self.starts[level] + at) as usize];
            if word == 0 {
                return None;
            }
            at = at * 64 + word.trailing_zeros();
        }
        Some(at)
    }
}
