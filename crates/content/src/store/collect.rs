//! Collection: removes what nothing holds.
//!
//! What holds is what pins, names and leases lead to: their own values, and all that it takes to derive them again.
//! What is young holds in the same way. Values in between can be derived again, so they go once they are old.

use std::time::Duration;

use super::counters::Kind;
use super::sweep::Sweep;
use super::{Core, Event, Store, lock};
use crate::facts::RemovalReason;
use crate::{Address, Error};

/// How to collect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// Younger things stay, held or not. Default 5 minutes.
    pub grace: Duration,
    /// What may go. Default all.
    pub scope: Scope,
    /// Just find out what would go. Default no.
    pub dry_run: DryRun,
    /// Remove at most so many things. Default a million.
    pub most: usize,
    /// Stop when the store uses no more than so many bytes; the things that cost least for their size go first.
    pub until_bytes: Option<u64>,
    /// List at most so many addresses. Default 1000.
    pub detail: usize,
}

/// Whether a collection removes anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It just says what it would remove.
    Yes,
    /// It removes.
    #[default]
    No,
}

/// What a collection may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that nothing holds.
    All,
    /// Of that, what was put as derivable.
    Derivable,
    /// Blobs that no derivation reads and none came to: every derivation counts as held.
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

/// What a collection came to.
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
    /// Things that were held, and stay.
    pub held: u64,
    /// Things that nothing holds and are too young to go.
    pub young: u64,
    /// Things that could have gone, but for the limits of this collection.
    pub left: u64,
    /// What was removed, as far as it is listed.
    pub removed: Vec<Address>,
}

impl Store {
    /// Removes what nothing holds. Safe beside everything else; what is put, remembered, pinned or named meanwhile
    /// stays. One collection goes on at a time; another waits.
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
