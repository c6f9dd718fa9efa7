//! What a store knows about addresses, besides their bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Address;

// The names under which the crate's root exports them.
pub use self::{NameChange as Named, RemovalReason as Why};

/// How much a store promises for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Can be made again: written without waiting for the disk, verified when read, gone after a power cut perhaps.
    Derivable,
    /// Durable before the answer.
    Acknowledged,
}

/// A point in time: milliseconds since 1970 began, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// How long ago `earlier` was; nothing when it is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Time {
        Time(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }
}

/// What it cost to make something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cost {
    /// CPU time.
    pub cpu: Duration,
    /// Tokens of a metered service.
    pub tokens: u64,
    /// Money, in millionths of the currency.
    pub micros: u64,
}

impl Cost {
    /// The cost as one number, in nanoseconds of CPU time: what eviction weighs. A token counts as 10 microseconds, a
    /// millionth of money as 1 millisecond (so a cent is ten seconds).
    pub fn worth(&self) -> u64 {
        let cpu = u64::try_from(self.cpu.as_nanos()).unwrap_or(u64::MAX);
        cpu.saturating_add(self.tokens.saturating_mul(10_000))
            .saturating_add(self.micros.saturating_mul(1_000_000))
    }
}

/// What a derivation came to, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    /// Of which derivation.
    pub derivation: Address,
    /// The blob it came to.
    pub output: Address,
    /// That blob's length in bytes.
    pub size: u64,
    /// What it cost.
    pub cost: Cost,
    /// When.
    pub at: Time,
}

/// A description of work: canonical bytes, whose address in their context is the derivation's, and what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Derivation {
    /// Its address.
    pub address: Address,
    /// The other address that leads to it.
    pub alias: Option<Address>,
    /// The context its address was derived in.
    pub context: String,
    /// The canonical encoding.
    pub bytes: bytes::Bytes,
    /// The addresses in the encoding, in order: blobs and derivations (by their addresses or aliases) that it reads.
    pub inputs: Vec<Address>,
}

/// One step in the history of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// What it named from then on; nothing: the name was dropped.
    pub address: Option<Address>,
    /// Since when.
    pub at: Time,
}

/// That something was there and why it is not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// When it went.
    pub at: Time,
    /// Why.
    pub why: RemovalReason,
}

/// Why something was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// Nothing held it when the store was collected.
    Collected,
    /// The store was over its quota.
    Quota,
    /// Its bytes were damaged; what is left of them is in quarantine.
    Damaged,
    /// A caller said that it no longer holds.
    Invalidated,
}

impl RemovalReason {
    /// All reasons; a reason's place is its number on disk.
    pub(crate) const ALL: [RemovalReason; 4] =
        [RemovalReason::Collected, RemovalReason::Quota, RemovalReason::Damaged, RemovalReason::Invalidated];

    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<RemovalReason> {
        RemovalReason::ALL.get(usize::from(number)).copied()
    }
}

impl Class {
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<Class> {
        [Class::Derivable, Class::Acknowledged].get(usize::from(number)).copied()
    }
}
