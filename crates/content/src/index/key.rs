//! Keys of the index: a table and one or two addresses.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::Address;

/// The longest key: a table's byte and two addresses.
pub(crate) const KEY_MOST: usize = 65;

/// The longest key that names one item: a table's byte and one address.
pub(super) const POINT_MOST: usize = 33;

/// A key: 1 to 65 bytes, of which the first names a table and the rest are as even as a hash. Ordered as its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    len: u8,
    /// Zero behind the key.
    bytes: [u8; KEY_MOST],
}

impl Key {
    /// The key with these bytes; none when they are too few or too many.
    pub(crate) fn new(from: &[u8]) -> Option<Key> {
        let mut bytes = [0; KEY_MOST];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        (!from.is_empty()).then_some(Key { len: from.len() as u8, bytes })
    }

    /// The key of an address in a table.
    pub(crate) fn of(table: u8, address: &Address) -> Key {
        let mut bytes = [0; KEY_MOST];
        bytes[0] = table;
        bytes[1..33].copy_from_slice(address.as_bytes());
        Key { len: 33, bytes }
    }

    /// The key of two addresses in a table: in order, those of one first address stand together.
    pub(crate) fn pair(table: u8, first: &Address, second: &Address) -> Key {
        let mut key = Key::of(table, first);
        key.len = KEY_MOST as u8;
        key.bytes[33..].copy_from_slice(second.as_bytes());
        key
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The sixteenth of a table's keys that contains this key. It is the same for all keys with the same first two
    /// bytes.
    pub(super) fn sixteenth(&self) -> usize {
        usize::from(self.bytes[1] >> 4)
    }
}

/// Whether this key identifies a single item and is therefore in the filters. Longer keys are mostly looked up by
/// prefix.
pub(super) fn is_point(key: &[u8]) -> bool {
    key.len() <= POINT_MOST
}

/// A point's 64 bits, as even as the address in it. Keys that stand near each other have near bits, so that a filter
/// filled in key order is filled from one end to the other.
pub(super) fn bits(key: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (table, rest) = key.split_first().unwrap_or((&0, &[]));
    leading(rest) ^ u64::from(*table).wrapping_mul(ODD)
}

/// The first eight bytes as a number, with zeros behind what is shorter: ordered as the bytes where it differs.
pub(super) fn leading(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    first[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(first)
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Key {
    /// For maps with [`BuildAddress`](crate::BuildAddress), which take these bits as they are. A map tells its entries
    /// apart by the highest bits, but those chose the shard: others take their place.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(bits(self.as_bytes()).rotate_left(24));
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}
