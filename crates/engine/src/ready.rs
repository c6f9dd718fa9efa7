//! A set of node numbers whose lowest member is found at once.

/// A bit a node, with a summary bit for each word below, up to a single word.
///
/// Insert, remove and `pop_first` touch one word a level: six levels cover every `u32`. A lone member stays in front
/// and touches none, which is the rule in a chain.
pub(crate) struct ReadySet {
    /// A member lower than all that have a bit, or [`NOBODY`].
    front: u32,
    words: Box<[u64]>,
    /// Where each level starts in `words`; level 0 holds the members.
    starts: [u32; LEVELS],
    levels: usize,
}

const LEVELS: usize = 6;
/// No node has this number: graphs are smaller.
const NOBODY: u32 = u32::MAX;

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
        ReadySet { front: NOBODY, words: vec![0; total as usize].into(), starts, levels }
    }

    #[inline]
    pub(crate) fn insert(&mut self, member: u32) {
        if self.front == NOBODY {
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
            self.front = NOBODY;
        } else {
            self.clear(member);
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        if self.front == NOBODY { self.first_bit() } else { Some(self.front) }
    }

    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// The single word at the top sums up all.
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
