//! Finds out, for most keys that a run does not have, that it does not have them, without reading the run.
//!
//! A split-block Bloom filter: a key chooses one block of 32 bytes, one cache line, and sets one bit in each of its
//! eight words.

use super::error::DecodeFailure;
use super::key::bits;

const BITS_PER_KEY: u64 = 10;
const BLOCK: usize = 32;

/// The length of a part of a file is 32 bits. The filter of a run with more points has more false positives.
const BLOCKS_MOST: u64 = u32::MAX as u64 / BLOCK as u64;

/// The points that a run may have; none if the filter has no bytes.
#[derive(Default)]
pub(super) struct Filter {
    blocks: Vec<[u8; BLOCK]>,
}

impl Filter {
    /// An empty filter with room for `points` points.
    pub(super) fn with_room(points: u64) -> Filter {
        let blocks = points.saturating_mul(BITS_PER_KEY).div_ceil(8 * BLOCK as u64);
        Filter { blocks: vec![[0; BLOCK]; blocks.min(BLOCKS_MOST) as usize] }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Filter, DecodeFailure> {
        match bytes.as_chunks() {
            (blocks, []) => Ok(Filter { blocks: blocks.to_vec() }),
            _ => Err(DecodeFailure("a filter is not a whole number of blocks")),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.blocks.as_flattened()
    }

    /// Adds a point.
    pub(super) fn add(&mut self, key: &[u8]) {
        let (block, masks) = self.choose(key);
        let Some(block) = self.blocks.get_mut(block) else { return };
        for (word, mask) in block.as_chunks_mut().0.iter_mut().zip(masks) {
            *word = (u32::from_le_bytes(*word) | mask).to_le_bytes();
        }
    }

    /// False if this point was certainly not added.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        let (block, masks) = self.choose(key);
        let Some(block) = self.blocks.get(block) else { return false };
        let words = block.as_chunks().0.iter().zip(masks);
        words.fold(0, |unset, (word, mask)| unset | mask & !u32::from_le_bytes(*word)) == 0
    }

    /// A key's block, and its bit in each word of that.
    fn choose(&self, key: &[u8]) -> (usize, [u32; 8]) {
        let bits = bits(key);
        let block = (u128::from(bits) * self.blocks.len() as u128) >> 64;
        (block as usize, SALTS.map(|salt| 1 << ((bits as u32).wrapping_mul(salt) >> 27)))
    }
}

/// Odd numbers, one per word, that choose eight bits from the same 32.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];
