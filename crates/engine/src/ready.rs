//! A set of node numbers whose lowest member is found at once.

/// A bit a node, with a summary bit for each word below, up to a single word.
///
/// Insert, remove and `pop_first` touch one word a level: six levels cover every `u32`.
pub(crate) struct ReadySet {
    words: Box<[u64]>,
    /// Where each level starts in `words`; level 0 holds the members.
    starts: [u32; LEVELS],
    levels: usize,
}

const LEVELS: usize = 6;

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
        ReadySet { words: vec![0; total as usize].into(), starts, levels }
    }

    #[inline]
    pub(crate) fn insert(&mut self, mut member: u32) {
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

    #[inline]
    pub(crate) fn remove(&mut self, mut member: u32) {
        for &start in &self.starts[..self.levels] {
            let word = &mut self.words[(start + member / 64) as usize];
            *word &= !(1 << (member % 64));
            if *word != 0 {
                return;
            }
            member /= 64;
        }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
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

    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }
}
