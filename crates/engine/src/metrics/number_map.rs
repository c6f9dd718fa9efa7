//! Tables by numbers that the engine itself gives out, of runs and nodes. Events are counted beside the requests that they
//! are about, and the default hash, which withstands chosen keys, would take most of that time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by ids of runs or nodes.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Spreads one number over all bits.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

/// 2^64 by the golden ratio: products with it differ in their high and low bits for numbers that follow each other.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("ids of runs and nodes are numbers")
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(FACTOR);
    }
}
