//! Rebuilds a damaged index from the log while the store is in use.
//!
//! The index thread does it, so that nothing else writes files of the index meanwhile. Until the new index has caught up
//! with the log, readers have the damaged one, whose other pages answer; a call that meets the damage waits for the
//! rebuild and asks again. The writer pauses for the last segment of the log alone.
//!
//! A crash in between is harmless: the mark that asks for a new index is removed last.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::catalogue::Catalogue;
use super::open::{REPLAYED_AT_ONCE, bring_in, plain};
use super::overlay::Overlay;
use super::tally::Tally;
use super::{Claim, Core, Event, background, format, lock};
use crate::Error;
use crate::log::{Position, Record, RecordPlace};

/// Whether the index is damaged, for the thread that rebuilds it and the calls that wait for that.
#[derive(Debug)]
pub(super) struct HealingState {
    /// The damage that was found first, until the index is rebuilt. Any thread may find damage, async workers too, so the
    /// index thread announces it, and never under this lock.
    damage: Mutex<Option<Damage>>,
    /// Counts attempts to rebuild the index, successful or not; [`HealingState::OVER`] once the index thread has ended.
    rounds: watch::Sender<u64>,
}

#[derive(Debug)]
struct Damage {
    what: String,
    is_announced: bool,
}

impl Default for HealingState {
    fn default() -> HealingState {
        HealingState { damage: Mutex::new(None), rounds: watch::Sender::new(0) }
    }
}

impl HealingState {
    const OVER: u64 = u64::MAX;

    /// Notes damage, if there is none yet. A slow reader may find it in a file that was replaced meanwhile: `still_counts`
    /// is false for that.
    pub(super) fn found_damage(&self, what: &str, still_counts: impl FnOnce() -> bool) {
        let mut damage = lock(&self.damage);
        if damage.is_none() && still_counts() {
            *damage = Some(Damage { what: what.to_owned(), is_announced: false });
        }
    }

    pub(super) fn is_damaged(&self) -> bool {
        lock(&self.damage).is_some()
    }

    /// The damage, if it is not announced yet; it is then.
    fn to_announce(&self) -> Option<String> {
        let mut damage = lock(&self.damage);
        let damage = damage.as_mut().filter(|damage| !damage.is_announced)?;
        damage.is_announced = true;
        Some(damage.what.clone())
    }

    fn is_rebuilt(&self) {
        *lock(&self.damage) = None;
    }

    fn end_round(&self) {
        self.rounds.send_modify(|rounds| *rounds += 1);
    }

    /// Called by the index thread when it ends: no call waits for it any more.
    pub(super) fn end(&self) {
        self.rounds.send_replace(Self::OVER);
    }
}

impl Core {
    /// Waits for one attempt to rebuild the index; returns whether the index is whole now. An attempt reads the log once,
    /// which bounds the wait.
    pub(super) async fn healed(&self) -> bool {
        let healing = self.catalogue.healing();
        let mut rounds = healing.rounds.subscribe();
        // Asked after the subscription, so that a round follows that this call hears of.
        self.background.wake();
        if healing.is_damaged() && *rounds.borrow() != HealingState::OVER {
            let _ = rounds.changed().await;
        }
        !healing.is_damaged()
    }
}

/// The work that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemainingWork {
    Nothing,
    /// The log is being cleaned or collected: the index is rebuilt after that.
    Rebuild,
}

/// Announces damage of the index that was found since the last time, and marks the store for a rebuild. Called by the
/// index thread alone, so that a rebuild is announced after the damage.
pub(super) fn announce_damage(core: &Core) {
    if let Some(what) = core.catalogue.healing().to_announce() {
        format::ask_for_new_index(&*core.disk);
        core.tell(&Event::IndexDamaged { what });
    }
}

/// Rebuilds the index if it is damaged. Called by the index thread.
pub(super) fn heal_if_damaged(core: &Core) -> RemainingWork {
    struct EndRound<'a>(&'a HealingState);
    impl Drop for EndRound<'_> {
        fn drop(&mut self) {
            self.0.end_round();
        }
    }
    announce_damage(core);
    let healing = core.catalogue.healing();
    if !healing.is_damaged() {
        return RemainingWork::Nothing;
    }
    let _round = EndRound(healing);
    // Cleaning moves records and waits for the index thread, so it is not waited for here.
    let keeping = match core.keeping.try_lock() {
        Ok(keeping) => keeping,
        Err(std::sync::TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        Err(std::sync::TryLockError::WouldBlock) => return RemainingWork::Rebuild,
    };
    let began = core.now();
    match rebuild(core) {
        Ok(replayed) => {
            let took = core.now().since(began);
            // First, so that a call that finds the index whole finds the rebuild counted.
            core.tell(&Event::IndexRebuilt { replayed, took });
            healing.is_rebuilt();
        }
        Err(Error::Closed) => {}
        Err(error) => core.tell(&Event::Failed { doing: "rebuild the index", error }),
    }
    drop(keeping);
    RemainingWork::Nothing
}

/// Rebuilds the index. Returns the number of records read for it.
fn rebuild(core: &Core) -> Result<u64, Error> {
    let index = core.catalogue.index();
    let mut rebuild = Rebuild {
        catalogue: core.catalogue.empty(index.beside().map_err(plain)?),
        tally: Tally::default(),
        overlay: Overlay::default(),
        records: Vec::new(),
        replayed: 0,
        unreadable: 0,
    };
    // Segments before the last one do not change while `keeping` is held, and were synced when they were full.
    let full = core.tail.load(Ordering::Acquire);
    for (segment, len) in core.segments.list()?.into_iter().filter(|(segment, _)| *segment < full) {
        rebuild.segment(core, Position { segment, offset: len })?;
        if core.background.is_stopping() {
            return Err(Error::Closed);
        }
    }
    let applying = lock(&core.applying);
    background::sync_log(core)?;
    let end = index.applied().unwrap_or_default();
    for (segment, len) in core.segments.list()?.range(full..=end.segment.max(full)) {
        rebuild.segment(core, Position { segment: *segment, offset: *len }.min(end))?;
    }
    let Rebuild { catalogue, tally: mut rebuilt, replayed, unreadable, .. } = rebuild;
    let mut tally = core.tally();
    rebuilt.next_file = rebuilt.next_file.max(tally.next_file);
    *tally = rebuilt;
    core.space.written(tally.used_bytes(), Claim::default());
    index.replace(catalogue.into_index());
    core.names.forget();
    drop((tally, applying));
    background::flush_all(core)?;
    format::index_is_new(&*core.disk)?;
    if unreadable > 0 {
        let what = "the index was rebuilt from a log with unreadable stretches".to_owned();
        core.tell(&Event::Lost { what, count: unreadable });
    }
    Ok(replayed)
}

/// An index in the making.
struct Rebuild {
    catalogue: Catalogue,
    tally: Tally,
    overlay: Overlay,
    records: Vec<(RecordPlace, Record)>,
    replayed: u64,
    /// Stretches of the log that hold no whole record.
    unreadable: u64,
}

impl Rebuild {
    /// Reads a segment, up to an offset.
    fn segment(&mut self, core: &Core, end: Position) -> Result<(), Error> {
        let Rebuild { catalogue, tally, overlay, records, replayed, .. } = self;
        let mut each = |place: RecordPlace, mut record: Record| {
            // A batch whose write failed is not in the index.
            if u64::from(place.offset) >= end.offset {
                return Ok(());
            }
            *replayed += 1;
            record.fact.drop_bytes();
            records.push((place, record));
            match records.len() {
                REPLAYED_AT_ONCE.. => bring_in(catalogue, tally, overlay, records),
                _ => Ok(()),
            }
        };
        let damage = core.segments.scan(end.segment, 0, &mut each)?;
        bring_in(catalogue, tally, overlay, records)?;
        catalogue.index().apply(std::iter::empty(), end, || tally.encode());
        self.unreadable += damage.iter().filter(|damage| damage.from < end.offset).count() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_announced_once() {
        let state = HealingState::default();
        (0..3).for_each(|number| state.found_damage(&format!("damage {number}"), || true));
        assert_eq!((state.to_announce().as_deref(), state.to_announce()), (Some("damage 0"), None));
        state.found_damage("more", || true);
        assert_eq!((state.to_announce(), state.is_damaged()), (None, true));
        state.is_rebuilt();
        state.found_damage("in a file that was replaced", || false);
        assert_eq!((state.to_announce(), state.is_damaged()), (None, false));
        state.found_damage("new", || true);
        assert_eq!(state.to_announce().as_deref(), Some("new"));
    }
}
