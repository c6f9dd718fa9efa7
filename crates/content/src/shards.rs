//! Shards by address, so that callers with different addresses seldom wait for the same lock.

use std::array;

use crate::Address;

/// The number of shards.
pub(crate) const SHARDS: usize = 64;

/// 64 of something (usually a lock over a map), chosen by address.
#[derive(Debug)]
pub(crate) struct Shards<T>([T; SHARDS]);

impl<T: Default> Default for Shards<T> {
    fn default() -> Shards<T> {
        Shards(array::from_fn(|_| T::default()))
    }
}

impl<T> Shards<T> {
    /// The shard of an address.
    pub(crate) fn of(&self, address: &Address) -> &T {
        &self.0[usize::from(CHOICE[address.bits() as usize % CHOICE.len()])]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

/// The slot of an address in a shard of `slots` slots; `None` if there are none. It does not depend on the choice of the
/// shard, so that all slots are used alike.
pub(crate) fn slot(address: &Address, slots: usize) -> Option<usize> {
    (address.bits() as usize / CHOICE.len()).checked_rem(slots)
}

/// The shard of each remainder of [`Address::bits`].
static CHOICE: [u8; 1024] = {
    let mut choice = [0; 1024];
    let (mut next, mut shard) = (0, 0);
    while shard < SHARDS {
        let end = next + SHARES[shard % SHARES.len()];
        while next < end {
            choice[next] = shard as u8;
            next += 1;
        }
        shard += 1;
    }
    assert!(next == choice.len());
    choice
};

/// The share of each shard, out of 1024 addresses. The shares rise by equal factors from 1 to almost 2. A map doubles
/// its capacity when it is full: with equal shares, all shards would do so at about the same number of entries, and the
/// memory per entry would jump to twice its value. With these shares they double one after another, and the memory per
/// entry stays about the same.
const SHARES: [usize; 8] = [12, 13, 14, 15, 16, 18, 19, 21];
