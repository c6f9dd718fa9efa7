//! Rows from masks.

use smallvec::SmallVec;

use super::kernels::View;

/// Words with more bits than this are listed without branches, the others bit by bit.
const MANY: u32 = 12;

/// The active rows that pass, one bit each.
pub(super) struct Selection {
    words: SmallVec<[u64; 16]>,
    count: usize,
}

impl Selection {
    pub(super) fn new(rows: usize) -> Selection {
        Selection { words: SmallVec::with_capacity(rows.div_ceil(64)), count: 0 }
    }

    /// The next `len` rows. All but the last chunk are whole words.
    pub(super) fn add(&mut self, truth: View<'_, u64>, len: usize) {
        let words = len.div_ceil(64);
        match truth {
            View::All(word) => self.words.extend(std::iter::repeat_n(word, words)),
            View::Each(truth) => self.words.extend_from_slice(&truth[..words]),
        }
        if !len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (len % 64)) - 1;
        }
        self.count += self.words[self.words.len() - words..]
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum::<usize>();
    }

    /// The rows that pass, in order, of `list` or of the first ones.
    pub(super) fn rows(&self, list: Option<&[u32]>) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.count);
        for (at, word) in self.words.iter().enumerate() {
            let start = at * 64;
            match *word {
                0 => {}
                u64::MAX => match list {
                    Some(list) => rows.extend_from_slice(&list[start..start + 64]),
                    None => rows.extend(start as u32..start as u32 + 64),
                },
                word => some(word, start, list, &mut rows),
            }
        }
        rows
    }
}

fn some(word: u64, start: usize, list: Option<&[u32]>, rows: &mut Vec<u32>) {
    if word.count_ones() <= MANY {
        let mut left = word;
        while left != 0 {
            let position = start + left.trailing_zeros() as usize;
            rows.push(list.map_or(position as u32, |list| list[position]));
            left &= left - 1;
        }
        return;
    }
    // Every row is written, and the next one over it unless its bit was set.
    let mut buffer = [0u32; 64];
    let mut count = 0usize;
    match list.map(|list| &list[start..list.len().min(start + 64)]) {
        None => {
            for bit in 0..64 {
                buffer[count & 63] = (start + bit) as u32;
                count += (word >> bit & 1) as usize;
            }
        }
        Some(list) => {
            for (bit, row) in list.iter().enumerate() {
                buffer[count & 63] = *row;
                count += (word >> bit & 1) as usize;
            }
        }
    }
    rows.extend_from_slice(&buffer[..count]);
}
