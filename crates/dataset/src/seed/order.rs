//! The order in which seed rows are taken.

/// A permutation of `0..len` that is computed by index: a Feistel network on the next power of four, walked until it
/// lands inside. Nothing is stored, so any row is found immediately, also after a resume.
pub(super) struct Shuffle {
    len: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

const ROUNDS: usize = 10;

impl Shuffle {
    /// The permutation of this run and cycle.
    pub(super) fn new(len: u64, run_seed: u64, cycle: u64) -> Shuffle {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let mut state =
            mix(run_seed ^ 0x5eed_0f00_d5e7_7135).wrapping_add(mix(cycle ^ 0xc7c1_e000_0000_0000));
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        Shuffle { len, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// The element at `index`, which is below the length.
    pub(super) fn at(&self, index: u64) -> u64 {
        let mut at = index;
        // Every walk ends: the network is a permutation, so the path from an index inside comes back inside.
        loop {
            at = self.network(at);
            if at < self.len {
                return at;
            }
        }
    }

    fn network(&self, at: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (at >> self.half_bits, at & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

/// SplitMix64's finalizer.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::Shuffle;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_element_comes_once(len in 1u64..2000, seed: u64, cycle: u64) {
            let shuffle = Shuffle::new(len, seed, cycle);
            let mut seen: Vec<u64> = (0..len).map(|index| shuffle.at(index)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..len));
        }
    }

    #[test]
    fn small_seeds_get_all_orders() {
        let orders: std::collections::BTreeSet<Vec<u64>> = (0..200)
            .map(|cycle| {
                let shuffle = Shuffle::new(3, 7, cycle);
                (0..3).map(|index| shuffle.at(index)).collect()
            })
            .collect();
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn a_huge_seed_is_shuffled_without_a_table() {
        let shuffle = Shuffle::new(u64::MAX / 2, 1, 0);
        assert_ne!(shuffle.at(0), 0);
        assert!(shuffle.at(12_345) < u64::MAX / 2);
    }
}
