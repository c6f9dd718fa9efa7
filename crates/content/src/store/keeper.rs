//! The keeper: a thread that collects when the store nears its quota, and cleans the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use super::{Claim, Collect, Core, Event, Scope, clean, collect, lock};
use crate::Error;
use crate::facts::{RemovalReason, Time};

/// The state shared with the keeper's thread.
#[derive(Debug)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    /// Counts rounds, for callers that wait for room.
    rounds: watch::Sender<u64>,
    /// The largest number of bytes that a put waits for.
    asked: AtomicU64,
    /// The last round, if it failed to make room: the bytes in use after it, and when it began.
    failed_round: Mutex<Option<(u64, Time)>>,
}

/// After a round that failed to make room, the next one waits this long, unless more bytes are in use.
const RETRY_AFTER: Duration = Duration::from_secs(1);

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
            failed_round: Mutex::default(),
        }
    }
}

impl Keeper {
    /// Wakes the keeper's thread; returns false once it has stopped.
    pub(crate) fn wake(&self) -> bool {
        let mut state = self.lock();
        state.due = true;
        self.changed.notify_all();
        !state.stop
    }

    /// Waits for this long, or until the store closes; returns whether the store closes.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| !state.stop);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keeper's thread: runs one round per wake-up, until it is stopped.
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
        report("clean the log", core.with_reserve(|| clean::clean_when_due(core)));
        core.make_reserve();
        keeper.rounds.send_modify(|rounds| *rounds += 1);
    }
    // Callers that wait for room wake up and learn that the store closes.
    core.keeper.lock().stop = true;
    core.keeper.rounds.send_modify(|rounds| *rounds += 1);
}

pub(crate) fn stop(core: &Core, thread: JoinHandle<()>) {
    core.keeper.lock().stop = true;
    core.keeper.changed.notify_all();
    // The panic hook has reported a panic of that thread; closing goes on.
    let _ = thread.join();
}

/// Collects when more than 9/10 of the quota is used, down to 8/10.
fn make_room(core: &Core) -> Result<(), Error> {
    let Some(quota) = core.config.quota_bytes else { return Ok(()) };
    let asked = core.keeper.asked.swap(0, Ordering::Relaxed);
    let used = core.tally().used_bytes();
    // Writes that are not finished need their room, too.
    let asked = asked.saturating_add(core.space.taken().unfinished).min(quota);
    if used <= quota / 10 * 9 && used + asked <= quota {
        return Ok(());
    }
    // Items that were too young when the round began may be old enough when it ends.
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
    *lock(&core.keeper.failed_round) = is_over.then_some((used, began));
    if is_over {
        core.tell(&Event::OverQuota { used });
    }
    Ok(())
}

/// Wakes a thread that waits for a future.
struct ThreadWaker(std::thread::Thread);

impl std::task::Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Core {
    /// Wakes the keeper if the store nears its quota.
    pub(super) fn watch_quota(&self) {
        if let Some(quota) = self.config.quota_bytes
            && self.tally().used_bytes() > quota / 10 * 9
            && !self.has_just_failed(quota / 100)
        {
            self.keeper.wake();
        }
    }

    /// Whether a round has just failed to make room, and the store has hardly grown since.
    fn has_just_failed(&self, growth: u64) -> bool {
        let failed_round = *lock(&self.keeper.failed_round);
        failed_round.is_some_and(|(used, at)| {
            let now = self.now();
            now >= at && now.since(at) < RETRY_AFTER && self.tally().used_bytes() <= used + growth
        })
    }

    /// [`Core::claim`] for a thread that may block.
    pub(super) fn claim_blocking(&self, bytes: u64) -> Result<Claim, Error> {
        let mut room = std::pin::pin!(self.claim(bytes));
        let waker = std::task::Waker::from(Arc::new(ThreadWaker(std::thread::current())));
        loop {
            match room.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
                std::task::Poll::Ready(done) => return done,
                std::task::Poll::Pending => std::thread::park(),
            }
        }
    }

    /// Claims room for this many more bytes, once they fit the quota; an error if the keeper cannot make room. Bytes that
    /// can never fit are refused before anything is evicted for them.
    pub(super) async fn claim(&self, bytes: u64) -> Result<Claim, Error> {
        if self.reserve.is_in_use() {
            let cause = std::io::ErrorKind::StorageFull.into();
            return Err(Error::disk("write", std::path::Path::new("log"), cause));
        }
        match self.space.claim(bytes) {
            Some(claim) => Ok(claim),
            // Boxed, so that the futures of callers, which seldom come here, stay small.
            None => Box::pin(self.claim_after_rounds(bytes)).await,
        }
    }

    async fn claim_after_rounds(&self, bytes: u64) -> Result<Claim, Error> {
        if self.config.quota_bytes.is_some_and(|quota| bytes > quota) {
            return Err(self.over_quota());
        }
        // Two rounds: the first may have begun before it could see this put's request.
        for _ in 0..2 {
            if self.has_just_failed(0) {
                break;
            }
            self.keeper.asked.fetch_max(bytes, Ordering::Relaxed);
            let mut rounds = self.keeper.rounds.subscribe();
            if !self.keeper.wake() {
                return Err(Error::Closed);
            }
            // An error means that the store is closing, which the put will find out.
            let _ = rounds.changed().await;
            if let Some(claim) = self.space.claim(bytes) {
                return Ok(claim);
            }
        }
        Err(self.over_quota())
    }

    /// Extends a claim to this many bytes, if they fit the quota now.
    pub(super) fn extend_claim(&self, claim: &mut Claim, bytes: u64) -> Result<(), Error> {
        let more = bytes.saturating_sub(claim.bytes());
        claim.add(self.space.claim(more).ok_or_else(|| self.over_quota())?);
        Ok(())
    }

    fn over_quota(&self) -> Error {
        let quota = self.config.quota_bytes.unwrap_or(u64::MAX);
        Error::Quota { used: self.space.taken().all(), quota }
    }
}
