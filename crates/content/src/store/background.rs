//! The index thread: flushes recent entries to disk, merges, and removes files that no record names.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::heal::{RemainingWork, announce_damage, heal_if_damaged};
use super::{Core, Event, keeper};
use crate::files::Name;
use crate::index::Index;
use crate::log::Position;
use crate::{Error, Wait};

/// While the log is cleaned or collected, a damaged index is not rebuilt; this long until the next attempt.
const HEAL_PAUSE: Duration = Duration::from_millis(20);

/// The state shared by the writer and the index thread.
#[derive(Debug, Default)]
pub(crate) struct Background {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    due: bool,
    stop: bool,
    orphans: Vec<Name>,
    /// The error of the last attempt, if it failed.
    failure: Option<Error>,
    /// The number of the last full flush requested, and of the last one done.
    asked: u64,
    flushed: u64,
}

impl Background {
    /// Waits while too many recent entries are not flushed (backpressure); an error if the flush fails.
    pub(crate) fn wait_for_index(&self, index: &Index) -> Result<(), Error> {
        if !index.is_behind() {
            return Ok(());
        }
        let mut state = self.lock();
        // Cleared, so that a flush that failed (say, on a full disk) is retried.
        state.failure = None;
        while index.is_behind() {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            state.due = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Flushes the whole index to disk, and waits for it.
    pub(crate) fn flush_index(&self) -> Result<(), Error> {
        let mut state = self.lock();
        state.asked += 1;
        let ticket = state.asked;
        state.failure = None;
        state.due = true;
        self.changed.notify_all();
        while state.flushed < ticket {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.stop {
                return Err(Error::Closed);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Hands over files to remove.
    pub(crate) fn orphans(&self, orphans: Vec<Name>) {
        if !orphans.is_empty() {
            let mut state = self.lock();
            state.orphans.extend(orphans);
            state.due = true;
            self.changed.notify_all();
        }
    }

    pub(crate) fn wake_when_due(&self, core: &Core) {
        if core.catalogue.index().should_work() {
            self.lock().due = true;
            self.changed.notify_all();
        }
    }

    /// Wakes the index thread.
    pub(crate) fn wake(&self) {
        self.lock().due = true;
        self.changed.notify_all();
    }

    /// Whether the store closes.
    pub(super) fn is_stopping(&self) -> bool {
        self.lock().stop
    }

    fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index thread: works until the writer has ended, then flushes everything and marks the shutdown as clean.
    pub(crate) fn run(
        core: &Core,
        writer: JoinHandle<Result<(), Error>>,
        keeper: JoinHandle<()>,
    ) -> Result<(), Error> {
        let background = &core.background;
        let mut left = RemainingWork::Nothing;
        loop {
            let mut state = background.lock();
            while !state.due && !state.stop {
                state = background.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if left == RemainingWork::Rebuild && !state.stop {
                let waited = background.changed.wait_timeout_while(state, HEAL_PAUSE, |state| !state.stop);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.stop {
                break;
            }
            state.due = false;
            let orphans = std::mem::take(&mut state.orphans);
            let (asked, flush) = (state.asked, state.asked > state.flushed);
            drop(state);
            left = RemainingWork::Nothing;
            let done = caught(|| {
                remove(core, &orphans);
                left = heal_if_damaged(core);
                catch_up(core).and_then(|()| if flush { flush_all(core) } else { Ok(()) })
            });
            let mut state = background.lock();
            match done {
                Ok(()) => state.flushed = asked,
                Err(error) => state.failure = Some(error),
            }
            state.due |= left == RemainingWork::Rebuild;
            background.changed.notify_all();
        }
        core.catalogue.healing().end();
        keeper::stop(core, keeper);
        let written = writer.join().unwrap_or(Err(Error::Panicked));
        // The next open rebuilds an index that this process has no time for.
        announce_damage(core);
        let orphans = std::mem::take(&mut background.lock().orphans);
        written?;
        let closed = caught(|| {
            remove(core, &orphans);
            flush_all(core)?;
            if core.unsettled.load(Ordering::Relaxed) { Ok(()) } else { mark_closed(core) }
        });
        match closed {
            // The log is whole and synced: the next open replays what the index lacks.
            Err(error) if error.is_disk_full() => {
                core.tell(&Event::Failed { doing: "write the index at shutdown", error });
                Ok(())
            }
            closed => closed,
        }
    }

    /// Called by the writer's thread when it has ended.
    pub(crate) fn writer_ended(&self) {
        self.stop();
    }
}

/// Marks the shutdown as clean, and records where the log ends.
fn mark_closed(core: &Core) -> Result<(), Error> {
    let list = core.segments.list()?;
    let next = core.tail.load(Ordering::Acquire);
    let first = list.first_key_value().map_or(next, |(first, _)| *first);
    let end = list.last_key_value().map_or((next, 0), |(last, len)| (*last, *len));
    super::format::mark_closed(&*core.disk, first, Position { segment: end.0, offset: end.1 })
}

/// Turns a panic of the index thread's work into an error, so that callers do not wait for it for ever.
fn caught(work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(Err(Error::Panicked))
}

/// Flushes and merges until no more work is due.
fn catch_up(core: &Core) -> Result<(), Error> {
    let mut worked = false;
    while core.catalogue.index().should_work() {
        if core.catalogue.index().frozen() > 0 {
            // The oldest table was frozen before this sync of the log; tables frozen meanwhile wait for the next.
            sync_log(core)?;
            core.catalogue.index().write_frozen(1)
        } else if core.catalogue.healing().is_damaged() {
            // A merge would meet the damage.
            break;
        } else {
            core.catalogue.index().merge()
        }
        .map_err(|error| core.catalogue.error(error))?;
        worked = true;
        core.background.changed.notify_all();
    }
    if worked {
        core.tell(&Event::Indexed);
    }
    Ok(())
}

pub(super) fn flush_all(core: &Core) -> Result<(), Error> {
    {
        // The counts and the index change under this lock, so they belong together while it is held.
        let tally = core.tally();
        core.catalogue.index().freeze_all(|| tally.encode());
    }
    let frozen = core.catalogue.index().frozen();
    sync_log(core)?;
    core.catalogue.index().write_frozen(frozen).map_err(|error| core.catalogue.error(error))
}

/// Syncs the log before the index: after a power cut the index must not point to records that the log lost.
pub(super) fn sync_log(core: &Core) -> Result<(), Error> {
    core.segments.check()?;
    let segment = core.tail.load(Ordering::Acquire);
    match core.segments.file(segment, Wait::Yes) {
        Ok(file) => core.segments.sync(segment, &*file),
        // The segment is not created yet; the segments before it were synced when they were full.
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(Error::disk("open", Path::new("log"), cause)),
    }
}

fn remove(core: &Core, orphans: &[Name]) {
    for name in orphans {
        if let Err(error) = core.files.remove(name) {
            core.unsettled.store(true, Ordering::Relaxed);
            core.tell(&Event::LeftBehind { address: name.address, error: error.into() });
        }
    }
}
