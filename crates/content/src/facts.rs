//! The facts that a store keeps about addresses, besides their bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Address;

/// The durability that a store promises for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Can be derived again: written without waiting for fsync, verified when read, possibly lost in a power cut.
    Derivable,
    /// Durable (written and synced) before the call returns.
    Acknowledged,
}

/// A point in time: milliseconds since 1970 began, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The time from `earlier` until this time; zero if `earlier` is the later one.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Time {
        Time(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
    }
}

/// The cost of computing a value.
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
    /// The cost as one number, in nanoseconds of CPU time, as used by eviction. A token counts as 10 microseconds, a
    /// millionth of money as 1 millisecond (so a cent is ten seconds).
    pub fn worth(&self) -> u64 {
        let cpu = u64::try_from(self.cpu.as_nanos()).unwrap_or(u64::MAX);
        cpu.saturating_add(self.tokens.saturating_mul(10_000))
            .saturating_add(self.micros.saturating_mul(1_000_000))
    }
}

/// The remembered output of a derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    /// The derivation.
    pub derivation: Address,
    /// The blob that is its output.
    pub output: Address,
    /// That blob's length in bytes.
    pub size: u64,
    /// The cost of computing it.
    pub cost: Cost,
    /// When it was computed.
    pub at: Time,
}

/// A description of work: canonical bytes, whose address in their context is the derivation's, and its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Derivation {
    /// Its address.
    pub address: Address,
    /// Another address that leads to it.
    pub alias: Option<Address>,
    /// The context its address was derived in.
    pub context: String,
    /// The canonical encoding.
    pub bytes: bytes::Bytes,
    /// The addresses in the encoding, in order: blobs and derivations (by their addresses or aliases) that it reads.
    pub inputs: Vec<Address>,
}

/// One change in the history of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameChange {
    /// The address that the name points to from then on; `None`: the name was dropped.
    pub address: Option<Address>,
    /// When it changed.
    pub at: Time,
}

/// When and why an item was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovalRecord {
    /// When it was removed.
    pub at: Time,
    /// The reason.
    pub why: RemovalReason,
}

/// The reason for which an item was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemovalReason {
    /// A collection found that nothing holds it.
    Collected,
    /// A collection removed it because the store was over its quota.
    Quota,
    /// Its bytes were damaged; the remains are in quarantine.
    Damaged,
    /// A caller said that it is no longer valid.
    Invalidated,
}

impl RemovalReason {
    /// All reasons; a reason's index in this list is its number on disk.
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
