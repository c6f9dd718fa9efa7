//! Collection (garbage collection): removes data that nothing holds.
//!
//! Pins, names and leases hold their own values, and everything needed to derive those again. Young data holds its
//! inputs in the same way. Intermediate values can be derived again, so they are removed once they are old.

use std::time::Duration;

use super::counters::Kind;
use super::sweep::Sweep;
use super::{Core, Event, Store, lock};
use crate::facts::RemovalReason;
use crate::{Address, Error};

/// Options of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// The grace period: younger items stay, held or not. Default 5 minutes.
    pub grace: Duration,
    /// The data that may be removed. Default all.
    pub scope: Scope,
    /// Whether to only report what would be removed. Default no.
    pub dry_run: DryRun,
    /// The most items to remove. Default a million.
    pub most: usize,
    /// Stop when the store uses no more than this many bytes; the items with the least cost per byte are removed first.
    pub until_bytes: Option<u64>,
    /// The most addresses to list. Default 1000.
    pub detail: usize,
}

/// Whether a collection removes anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It only reports what it would remove.
    Yes,
    /// It removes.
    #[default]
    No,
}

/// The data that a collection may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that nothing holds.
    All,
    /// Of that, only derivable data.
    Derivable,
    /// Blobs that are neither input nor output of a derivation: every derivation counts as held.
    KeepDerivations,
}

impl Default for Collect {
    fn default() -> Collect {
        Collect {
            grace: Duration::from_secs(300),
            scope: Scope::All,
            dry_run: DryRun::No,
            most: 1_000_000,
            until_bytes: None,
            detail: 1000,
        }
    }
}

/// The result of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Blobs removed.
    pub blobs: u64,
    /// Bytes of those blobs.
    pub bytes: u64,
    /// Memos removed.
    pub memos: u64,
    /// Derivations removed.
    pub derivations: u64,
    /// Items that are held, and stay.
    pub held: u64,
    /// Items that nothing holds and that are too young to be removed.
    pub young: u64,
    /// Items that stay only because of the limits of this collection.
    pub left: u64,
    /// The removed addresses, up to the limit.
    pub removed: Vec<Address>,
}

impl Store {
    /// Removes data that nothing holds. Safe beside all other calls: data that is put, remembered, pinned or named
    /// meanwhile stays. One collection runs at a time; another waits.
    pub async fn collect(&self, terms: Collect) -> Result<Collected, Error> {
        let result =
            self.in_turn(|turns| &turns.keeping, move |core| collect(core, &terms, RemovalReason::Collected));
        let result = result.await;
        self.inner.core.count(Kind::Collect, result, |collected| Some(collected.bytes))
    }
}

pub(crate) fn collect(core: &Core, terms: &Collect, why: RemovalReason) -> Result<Collected, Error> {
    let _only = lock(&core.keeping);
    let _collecting = core.guard.begin();
    let mut sweep = Sweep::new(core, terms, why)?;
    sweep.outputs()?;
    sweep.memos()?;
    if terms.scope == Scope::All {
        sweep.derivations()?;
    }
    let Collected { blobs, memos, derivations, .. } = sweep.result;
    let count = (blobs + memos + derivations) as usize;
    if count > 0 && terms.dry_run == DryRun::No {
        core.tell(&Event::Removed { count, why });
        core.keeper.wake();
    }
    Ok(sweep.result)
}
