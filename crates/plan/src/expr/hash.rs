//! `hash(seed, x)`: the upper 53 bits of XXH64, so that the result is exact as a float too.
//!
//! Plans assign users to experiments by it, so that it must never change: an integer is hashed as its eight bytes, lowest
//! first, a string as its UTF-8, a float that is a whole number as that integer, and any other float as its eight bytes.

use super::scalar::exact_int;

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// The hash of an integer.
#[inline(always)]
pub(super) fn int(seed: i64, value: i64) -> i64 {
    let hash = (seed as u64).wrapping_add(PRIMES[4]).wrapping_add(8);
    upper(finish(word(hash, value as u64)))
}

/// The hash of a float.
#[inline(always)]
pub(super) fn float(seed: i64, value: f64) -> i64 {
    int(seed, exact_int(value).unwrap_or_else(|| value.to_bits() as i64))
}

/// The hash of a string.
pub(super) fn text(seed: i64, value: &str) -> i64 {
    upper(bytes(seed as u64, value.as_bytes()))
}

fn upper(hash: u64) -> i64 {
    (hash >> 11) as i64
}

/// XXH64.
fn bytes(seed: u64, bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut hash = if blocks.is_empty() { seed.wrapping_add(PRIMES[4]) } else { lanes(seed, blocks) };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for eight in words {
        hash = word(hash, u64::from_le_bytes(*eight));
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for four in halves {
        hash ^= u64::from(u32::from_le_bytes(*four)).wrapping_mul(PRIMES[0]);
        hash = hash.rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2]);
    }
    for byte in rest {
        hash ^= u64::from(*byte).wrapping_mul(PRIMES[4]);
        hash = hash.rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    finish(hash)
}

fn lanes(seed: u64, blocks: &[[u8; 32]]) -> u64 {
    let mut lanes = [
        seed.wrapping_add(PRIMES[0]).wrapping_add(PRIMES[1]),
        seed.wrapping_add(PRIMES[1]),
        seed,
        seed.wrapping_sub(PRIMES[0]),
    ];
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    let turns = lanes.iter().zip([1, 7, 12, 18]);
    let hash = turns.fold(0_u64, |hash, (lane, turn)| hash.wrapping_add(lane.rotate_left(turn)));
    lanes
        .iter()
        .fold(hash, |hash, lane| (hash ^ round(0, *lane)).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]))
}

#[inline(always)]
fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

#[inline(always)]
fn word(hash: u64, word: u64) -> u64 {
    (hash ^ round(0, word)).rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3])
}

#[inline(always)]
fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(PRIMES[1]);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIMES[2]);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the reference implementation of XXH64.
    #[test]
    fn the_hash_is_xxh64() {
        assert_eq!(bytes(0, b""), 0xef46_db37_51d8_e999);
        assert_eq!(bytes(0, b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(bytes(0, b"abc"), 0x44bc_2cf5_ad77_0999);
        assert_eq!(bytes(0, b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
    }

    #[test]
    fn equal_values_have_equal_hashes_whatever_they_are_written_as() {
        for value in [0, 1, -1, 1 << 53, i64::MAX, i64::MIN] {
            let whole = bytes(7, &value.to_le_bytes()) >> 11;
            assert_eq!(int(7, value) as u64, whole);
            assert!((0..1 << 53).contains(&int(7, value)));
        }
        assert_eq!(float(7, 3.0), int(7, 3));
        assert_eq!(float(7, -0.0), int(7, 0));
        assert_ne!(float(7, 0.5), int(7, 0));
        assert_ne!(int(7, 3), int(8, 3));
    }
}
