//! The random numbers of one cell.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The source of a column's streams, made once per column.
#[derive(Clone)]
pub struct ColumnKey([u8; 32]);

impl ColumnKey {
    /// The key of a column in a run.
    pub fn new(seed: u64, column: &str) -> ColumnKey {
        let mut hasher = blake3::Hasher::new_derive_key("anabranch 2026 sampler column stream");
        hasher.update(&seed.to_le_bytes());
        hasher.update(column.as_bytes());
        ColumnKey(hasher.finalize().into())
    }

    /// The stream of a row. Rounds count the values that a constraint rejected, from 0.
    pub fn stream(&self, row: u64, round: u32) -> Stream {
        let mut rng = ChaCha8Rng::from_seed(self.0);
        rng.set_stream(row);
        if round > 0 {
            // Each round has 2^32 blocks of 16 words.
            rng.set_word_pos(u128::from(round) << 36);
        }
        Stream(rng)
    }
}

/// The random numbers of one (seed, column, row, round).
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in (0, 1).
    pub fn open_unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A whole number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's method: the low half decides in the rare case that a value would be too frequent.
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound.max(1) {
                return (product >> 64) as u64;
            }
        }
    }

    /// An element of a list that is not empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}
