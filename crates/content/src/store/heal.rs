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
use crate::index::Position;
use crate::log::{Place, Record};

/// Whether the index is damaged, for the thread that rebuilds it and the calls that wait for that.
#[derive(Debug)]
pub(super) struct HealingState {
    /// Held while a change is announced, so that no thread acts on a change before its announcement, and announcements
    /// keep the order of the changes.
    is_damaged: Mutex<bool>,
    /// Counts attempts to rebuild the index, successful or not; [`HealingState::OVER`] once the index thread has ended.
    rounds: watch::Sender<u64>,
}

impl Default for HealingState {
    fn default() -> HealingState {
        HealingState { is_damaged: Mutex::new(false), rounds: watch::Sender::new(0) }
    }
}

impl HealingState {
    const OVER: u64 = u64::MAX;

    /// Notes damage, and announces it if it is new. A slow reader may find it in a file that was replaced meanwhile:
    /// `still_counts` is false for that.
    pub(super) fn found_damage(&self, still_counts: impl FnOnce() -> bool, announce: impl FnOnce()) {
        self.change_to(true, still_counts, announce);
    }

    pub(super) fn is_damaged(&self) -> bool {
        *lock(&self.is_damaged)
    }

    fn is_rebuilt(&self, announce: impl FnOnce()) {
        self.change_to(false, || true, announce);
    }

    fn change_to(&self, damaged: bool, is_true: impl FnOnce() -> bool, announce: impl FnOnce()) {
        let mut is_damaged = lock(&self.is_damaged);
        if *is_damaged != damaged && is_true() {
            *is_damaged = damaged;
            announce();
        }
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

/// Rebuilds the index if it is damaged. Called by the index thread.
pub(super) fn heal_if_damaged(core: &Core) -> RemainingWork {
    struct EndRound<'a>(&'a HealingState);
    impl Drop for EndRound<'_> {
        fn drop(&mut self) {
            self.0.end_round();
        }
    }
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
            healing.is_rebuilt(|| core.tell(&Event::IndexRebuilt { replayed, took }));
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
        rebuild.segment(core, (segment, len))?;
        if core.background.is_stopping() {
            return Err(Error::Closed);
        }
    }
    let applying = lock(&core.applying);
    background::sync_log(core)?;
    let end = index.applied().unwrap_or_default();
    for (segment, len) in core.segments.list()?.range(full..=end.0.max(full)) {
        rebuild.segment(core, (*segment, *len).min(end))?;
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
    records: Vec<(Place, Record)>,
    replayed: u64,
    /// Stretches of the log that hold no whole record.
    unreadable: u64,
}

impl Rebuild {
    /// Reads a segment, up to an offset.
    fn segment(&mut self, core: &Core, end: Position) -> Result<(), Error> {
        let Rebuild { catalogue, tally, overlay, records, replayed, .. } = self;
        let mut each = |place: Place, mut record: Record| {
            // A batch whose write failed is not in the index.
            if u64::from(place.offset) >= end.1 {
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
        let damage = core.segments.scan(end.0, 0, &mut each)?;
        bring_in(catalogue, tally, overlay, records)?;
        catalogue.index().apply(std::iter::empty(), end, || tally.encode());
        self.unreadable += damage.iter().filter(|damage| damage.from < end.1).count() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Whoever sees that the index is whole again finds the rebuild counted.
    #[test]
    fn a_change_is_seen_after_its_announcement() {
        let (state, announced) = (HealingState::default(), AtomicU64::new(0));
        let (asking, asked) = mpsc::channel();
        thread::scope(|scope| {
            for round in 1..=100 {
                state.found_damage(|| true, || ());
                state.is_rebuilt(|| {
                    let asking = asking.clone();
                    let (state, announced) = (&state, &announced);
                    scope.spawn(move || {
                        asking.send(()).unwrap();
                        if !state.is_damaged() {
                            assert!(announced.load(Ordering::Acquire) >= round);
                        }
                    });
                    asked.recv().unwrap();
                    (0..20).for_each(|_| thread::yield_now());
                    announced.store(round, Ordering::Release);
                });
            }
        });
    }

    #[test]
    fn damage_is_announced_once() {
        let (state, mut announced) = (HealingState::default(), 0);
        (0..3).for_each(|_| state.found_damage(|| true, || announced += 1));
        state.is_rebuilt(|| ());
        state.found_damage(|| true, || announced += 1);
        state.is_rebuilt(|| ());
        state.found_damage(|| false, || announced += 1);
        assert_eq!((announced, state.is_damaged()), (2, false));
    }
}
