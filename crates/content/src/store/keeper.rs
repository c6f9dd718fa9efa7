//! The thread that keeps a store in bounds: collects for the quota, and cleans the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::{Collect, Core, Event, Scope, clean, collect, lock};
use crate::Error;
use crate::facts::{RemovalReason, Time};

/// What the keeper's thread is told.
#[derive(Debug)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    /// Counts rounds, for those who wait for room.
    rounds: watch::Sender<u64>,
    /// The most bytes that a put waits for.
    asked: AtomicU64,
    /// How many bytes were in use when a round failed to make room, and when.
    in_vain: Mutex<Option<(u64, Time)>>,
}

/// A round that made no room is not repeated before this, unless more bytes are in use.
const RESPITE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct State {
    due: bool,
    stop: bool,
}

impl Default for Keeper {
    fn default() -> Keeper {
        Keeper {
            state: Mutex::default(),
            changed: Condvar::new(),
            rounds: watch::Sender::new(0),
            asked: AtomicU64::new(0),
            in_vain: Mutex::default(),
        }
    }
}

impl Keeper {
    /// Has it look; false once it has stopped.
    pub(crate) fn wake(&self) -> bool {
        let mut state = self.lock();
        state.due = true;
        self.changed.notify_all();
        !state.stop
    }

    /// Waits so long, or until the store closes; says whether it does.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| !state.stop);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works whenever it is woken, until it is stopped.
pub(crate) fn run(core: &Core) {
    loop {
        let keeper = &core.keeper;
        let mut state = keeper.lock();
        while !state.due && !state.stop {
            state = keeper.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stop {
            break;
        }
        state.due = false;
        drop(state);
        let report = |doing, done: Result<(), Error>| match done {
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => core.tell(&Event::Failed { doing, error }),
        };
        report("collect for the quota", make_room(core));
        report("clean the log", clean::clean_when_due(core));
        keeper.rounds.send_modify(|rounds| *rounds += 1);
    }
    // Whoever waits for room learns that there will be none.
    core.keeper.lock().stop = true;
    core.keeper.rounds.send_modify(|rounds| *rounds += 1);
}

pub(crate) fn stop(core: &Core, thread: JoinHandle<()>) {
    core.keeper.lock().stop = true;
    core.keeper.changed.notify_all();
    // A panic there has been told by the panic hook; closing goes on.
    let _ = thread.join();
}

/// Nine tenths of a quota: from there on room is made, down to eight.
fn make_room(core: &Core) -> Result<(), Error> {
    let Some(quota) = core.config.quota_bytes else { return Ok(()) };
    let asked = core.keeper.asked.swap(0, Ordering::Relaxed).min(quota);
    let used = core.tally().used_bytes();
    if used <= quota / 10 * 9 && used + asked <= quota {
        return Ok(());
    }
    // What was too young when the round began may be old when it ends.
    let began = core.now();
    let terms = Collect {
        grace: core.config.quota_grace,
        scope: Scope::Derivable,
        until_bytes: Some((quota / 10 * 8).min(quota - asked)),
        ..Collect::default()
    };
    collect::collect(core, &terms, RemovalReason::Quota)?;
    let used = core.tally().used_bytes();
    let is_over = used > quota / 10 * 9 || used + asked > quota;
    *lock(&core.keeper.in_vain) = is_over.then_some((used, began));
    if is_over {
        core.tell(&Event::OverQuota { used });
    }
    Ok(())
}

/// Wakes a thread that waits for a future.
struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Core {
    /// Wakes the keeper if the quota calls for it.
    pub(super) fn watch_quota(&self) {
        if let Some(quota) = self.config.quota_bytes
            && self.tally().used_bytes() > quota / 10 * 9
            && !self.is_in_vain(quota / 100)
        {
            self.keeper.wake();
        }
    }

    /// Has a round just failed to make room, and has the store hardly grown since?
    fn is_in_vain(&self, growth: u64) -> bool {
        let in_vain = *lock(&self.keeper.in_vain);
        in_vain.is_some_and(|(used, at)| {
            let now = self.now();
            now >= at && now.since(at) < RESPITE && self.tally().used_bytes() <= used + growth
        })
    }

    /// The same as [`Core::room_for`] on a thread that may wait.
    pub(super) fn room_for_blocking(&self, bytes: u64) -> Result<(), Error> {
        let mut room = std::pin::pin!(self.room_for(bytes));
        let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match room.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
                std::task::Poll::Ready(done) => return done,
                std::task::Poll::Pending => std::thread::park(),
            }
        }
    }

    /// Waits until so many more bytes fit the quota; an error if room cannot be made.
    pub(super) async fn room_for(&self, bytes: u64) -> Result<(), Error> {
        let Some(quota) = self.config.quota_bytes else { return Ok(()) };
        let fits = || self.used.load(Ordering::Relaxed).saturating_add(bytes) <= quota;
        if fits() {
            return Ok(());
        }
        // The first round may have been going on already, and have looked before this put was there.
        for _ in 0..2 {
            if self.is_in_vain(0) {
                break;
            }
            self.keeper.asked.fetch_max(bytes, Ordering::Relaxed);
            let mut rounds = self.keeper.rounds.subscribe();
            if !self.keeper.wake() {
                return Err(Error::Closed);
            }
            // An error means that the store is closing, which the put will find out.
            let _ = rounds.changed().await;
            if fits() {
                return Ok(());
            }
        }
        let used = self.tally().used_bytes();
        Err(Error::Quota { used, quota })
    }
}
