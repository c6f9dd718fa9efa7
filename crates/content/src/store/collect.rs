//! Collection (garbage collection): removes data that nothing holds.
//!
//! Pins, names and leases hold their own values, and everything needed to derive those again. Young data holds its
//! inputs in the same way. Intermediate values can be derived again, so they are removed once they are old.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

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
pub struct CollectReport {
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
    /// meanwhile stays, and so does the content of an import under way. One collection runs at a time. Calls with the
    /// same options that wait for their turn share one collection, and its result.
    pub async fn collect(&self, terms: Collect) -> Result<CollectReport, Error> {
        let result = self.collect_in_turn(terms).await;
        self.inner.core.count(Kind::Collect, result, |collected| Some(collected.bytes))
    }

    async fn collect_in_turn(&self, terms: Collect) -> Result<CollectReport, Error> {
        let waiting = &self.inner.turns.waiting;
        loop {
            let joined = {
                let mut waiting = lock(waiting);
                let shared = waiting.iter().find(|it| it.terms == terms).map(|it| it.result.subscribe());
                if shared.is_none() {
                    waiting
                        .push(WaitingCollection { terms: terms.clone(), result: watch::Sender::new(None) });
                }
                shared
            };
            let Some(mut joined) = joined else { break };
            // An error means that the caller which would have collected stopped waiting; another takes its place.
            if let Ok(result) = joined.wait_for(|result| result.is_some()).await
                && let Some(result) = result.clone()
            {
                return result;
            }
        }
        let mut leave = LeaveOnDrop { waiting: Arc::clone(waiting), terms: terms.clone(), is_taken: false };
        let turn = Arc::clone(&self.inner.turns.keeping).acquire_owned().await.map_err(|_| Error::Closed)?;
        // Calls from now on need a collection that begins after them.
        let entry = leave.take();
        let collected =
            self.in_given_turn(turn, move |core| collect(core, &terms, RemovalReason::Collected)).await;
        if let Some(entry) = entry {
            // The callers that joined may have stopped waiting.
            let _ = entry.result.send(Some(collected.clone()));
        }
        collected
    }
}

/// A collection that waits for its turn.
#[derive(Debug)]
pub(super) struct WaitingCollection {
    terms: Collect,
    /// The result, for the callers that joined.
    result: watch::Sender<Option<Result<CollectReport, Error>>>,
}

/// Removes a waiting collection when its caller stops waiting.
struct LeaveOnDrop {
    waiting: Arc<Mutex<Vec<WaitingCollection>>>,
    terms: Collect,
    is_taken: bool,
}

impl LeaveOnDrop {
    /// Removes the entry; `None` if that is done. Another caller may wait with the same options since then.
    fn take(&mut self) -> Option<WaitingCollection> {
        if std::mem::replace(&mut self.is_taken, true) {
            return None;
        }
        let mut waiting = lock(&self.waiting);
        let place = waiting.iter().position(|it| it.terms == self.terms)?;
        Some(waiting.swap_remove(place))
    }
}

impl Drop for LeaveOnDrop {
    fn drop(&mut self) {
        self.take();
    }
}

pub(crate) fn collect(core: &Core, terms: &Collect, why: RemovalReason) -> Result<CollectReport, Error> {
    core.with_reserve(|| collect_once(core, terms, why))
}

fn collect_once(core: &Core, terms: &Collect, why: RemovalReason) -> Result<CollectReport, Error> {
    let _only = lock(&core.keeping);
    let _collecting = core.guard.begin();
    let mut terms = terms.clone();
    // Imports write acknowledged data only.
    if terms.scope != Scope::Derivable {
        terms.grace = core.imports.spare(terms.grace, core.now(), core.config.touch_after);
    }
    let mut sweep = Sweep::new(core, &terms, why)?;
    sweep.outputs()?;
    sweep.memos()?;
    if terms.scope == Scope::All {
        sweep.derivations()?;
    }
    let CollectReport { blobs, memos, derivations, .. } = sweep.result;
    let count = (blobs + memos + derivations) as usize;
    if count > 0 && terms.dry_run == DryRun::No {
        core.tell(&Event::Removed { count, why });
        core.keeper.wake();
    }
    Ok(sweep.result)
}
