//! Connections and their calls: which connections are idle, and which one is closed to make room for another.
//!
//! Each client has a share of the connections and of the bytes that requests and responses take, so that a client with
//! many slow calls leaves room for the others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::access::Peer;
use crate::budget::{ByteBudget, ByteShare, Taker, WaitBounds};

/// The numbers of open connections and calls of a server, and the limits that they share.
pub(crate) struct Traffic {
    pub(crate) connections: AtomicUsize,
    /// Connections that were closed at once, because their client had its share of connections.
    pub(crate) refused: AtomicUsize,
    pub(crate) calls: AtomicUsize,
    /// The bytes of requests that are not answered.
    pub(crate) unfinished: ByteBudget,
    /// The bytes of responses that are not read.
    pub(crate) unread: ByteBudget,
    /// The time for which a response waits for its client to read.
    pub(crate) stall_timeout: Duration,
}

impl Traffic {
    pub(crate) fn new(unfinished: ByteBudget, unread: ByteBudget, stall_timeout: Duration) -> Traffic {
        let [connections, refused, calls] = [0; 3].map(AtomicUsize::new);
        Traffic { connections, refused, calls, unfinished, unread, stall_timeout }
    }
}

/// The calls of one connection.
pub(crate) struct Activity {
    clock: Arc<dyn Clock>,
    traffic: Arc<Traffic>,
    peer: Peer,
    state: Mutex<ActivityState>,
}

struct ActivityState {
    calls: usize,
    /// Calls that the server does not work for.
    waiting: usize,
    /// Those of them that are [`Wait::Idle`].
    idle: usize,
    /// The responses that wait for the client to read, by the address of their call, and the start of each wait.
    unread: Vec<(usize, Instant)>,
    /// The time at which the client last sent or read something.
    last: Instant,
}

impl Activity {
    pub(crate) fn new(clock: Arc<dyn Clock>, traffic: Arc<Traffic>, peer: Peer) -> Activity {
        traffic.connections.fetch_add(1, Ordering::Relaxed);
        let last = clock.now();
        let state = ActivityState { calls: 0, waiting: 0, idle: 0, unread: Vec::new(), last };
        Activity { clock, traffic, peer, state: Mutex::new(state) }
    }

    /// The client.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call.
    pub(crate) fn begin(self: &Arc<Self>) -> Arc<Call> {
        self.traffic.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        state.calls += 1;
        state.last = self.clock.now();
        Arc::new(Call {
            activity: Arc::clone(self),
            client: OnceLock::new(),
            waiting: AtomicU8::new(Wait::Nothing as u8),
            share: Mutex::default(),
            until: OnceLock::new(),
            wait_most: OnceLock::new(),
        })
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.lock().calls > 0
    }

    /// Whether the connection makes room only after others, and the time at which its client last sent or read something;
    /// `None` while the server works for it.
    fn idle_since(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        let is_new = state.last + JUST_USED > self.clock.now();
        (state.calls == state.waiting).then_some((state.idle > 0 || is_new, state.last))
    }

    /// Waits until the connection has had no call for `timeout`, or until a response has waited for its client for the
    /// stall timeout.
    pub(crate) async fn unused(&self, timeout: Duration) {
        let stall = self.traffic.stall_timeout;
        loop {
            let now = self.clock.now();
            let due = {
                let state = self.lock();
                let idle = (state.calls == 0).then(|| state.last + timeout);
                // The reader of a socket is a program of the same user, such as a pager.
                let unread = state.unread.iter().filter(|_| self.peer != Peer::Socket);
                idle.into_iter().chain(unread.map(|(_, since)| *since + stall)).min()
            };
            if due.is_some_and(|due| due <= now) {
                return;
            }
            // A response may begin to wait at any time.
            let next = now + timeout.min(stall);
            self.clock.sleep_until(due.map_or(next, |due| due.min(next))).await;
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.traffic.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One call, from its headers until its response is sent or cancelled.
pub(crate) struct Call {
    activity: Arc<Activity>,
    /// The client by name, once it is known.
    client: OnceLock<Arc<str>>,
    waiting: AtomicU8,
    share: Mutex<Option<ByteShare>>,
    /// The deadline of its client.
    until: OnceLock<Instant>,
    /// The longest time that it may wait for memory at a time.
    wait_most: OnceLock<Duration>,
}

/// The action of a client that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Wait {
    /// None: the server works.
    Nothing,
    /// The client sends more of the request, or reads an event.
    Client,
    /// None that is due: it listens to events and none happens, or it has no further request for its stream yet.
    Idle,
    /// The client reads a response that is not a subscription.
    Reader,
}

tokio::task_local! {
    static CURRENT: Arc<Call>;
}

impl Call {
    /// Runs the handler of the call, which then knows its call.
    pub(crate) fn scope<F: Future>(self: &Arc<Self>, handler: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(Arc::clone(self), handler)
    }

    /// The call that the current task handles; `None` if a program calls the router itself.
    pub(crate) fn current() -> Option<Arc<Call>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Names the client. Before, the client is known by its address.
    pub(crate) fn set_client(&self, name: &Arc<str>) {
        // A call has one caller.
        let _ = self.client.set(Arc::clone(name));
    }

    /// The client of the call, and the bytes of the request that the call holds.
    pub(crate) fn taker(&self) -> Taker {
        let client = self.client.get_or_init(|| self.activity.peer.name());
        let bounds = WaitBounds { until: self.until.get().copied(), longest: self.wait_most.get().copied() };
        Taker { client: Arc::clone(client), held: self.share().as_ref().map_or(0, ByteShare::bytes), bounds }
    }

    /// Sets the deadline of its client.
    pub(crate) fn set_deadline(&self, until: Instant) {
        // A call has one deadline.
        let _ = self.until.set(until);
    }

    /// Bounds each of its waits for memory.
    pub(crate) fn set_wait_most(&self, most: Duration) {
        // A call is answered once.
        let _ = self.wait_most.set(most);
    }

    /// Whether the deadline of its client has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.until.get().is_some_and(|until| *until <= self.activity.clock.now())
    }

    /// Returns some of the bytes that the call holds.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.share().iter_mut().for_each(|share| share.give_back(bytes));
    }

    /// Sets the action of the client that the call waits for.
    pub(crate) fn set_waiting(&self, wait: Wait) {
        if self.waiting.load(Ordering::Relaxed) == wait as u8 {
            return;
        }
        let mut state = self.activity.lock();
        // Under the lock, so that the counts of two tasks of the call change in the order of its states.
        let before = self.waiting.swap(wait as u8, Ordering::Relaxed);
        state.last = self.activity.clock.now();
        state.waiting += usize::from(wait != Wait::Nothing);
        state.waiting -= usize::from(before != Wait::Nothing as u8);
        state.idle += usize::from(wait == Wait::Idle);
        state.idle -= usize::from(before == Wait::Idle as u8);
        let own = std::ptr::from_ref(self).addr();
        if before == Wait::Reader as u8 {
            state.unread.retain(|(call, _)| *call != own);
        }
        if wait == Wait::Reader {
            let since = state.last;
            state.unread.push((own, since));
        }
    }

    /// Takes bytes of the budget of unfinished requests now; `false` if they are not available.
    pub(crate) fn try_charge(&self, bytes: usize) -> bool {
        let share = self.activity.traffic.unfinished.try_take(&self.taker(), bytes);
        share.map(|share| self.hold(share)).is_some()
    }

    /// Takes bytes of the budget of unread responses now.
    pub(crate) fn try_take_unread(&self, bytes: usize) -> Option<ByteShare> {
        self.activity.traffic.unread.try_take(&Taker { held: 0, ..self.taker() }, bytes)
    }

    /// Adds a share of the byte budget to those that the call holds.
    pub(crate) fn hold(&self, share: ByteShare) {
        match &mut *self.share() {
            Some(held) => held.merge(share),
            none => *none = Some(share),
        }
    }

    /// Returns the call's share of the byte budget.
    pub(crate) fn release(&self) {
        drop(self.share().take());
    }

    fn share(&self) -> MutexGuard<'_, Option<ByteShare>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.set_waiting(Wait::Nothing);
        let mut state = self.activity.lock();
        state.calls -= 1;
        state.last = self.activity.clock.now();
        self.activity.traffic.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The open connections of a listener.
#[derive(Default)]
pub(crate) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, (Arc<Activity>, AbortHandle)>,
}

impl Connections {
    /// The number of connections, including those that are being closed.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// The number of connections with calls.
    pub(crate) fn with_calls(&self) -> usize {
        self.open.values().filter(|(activity, _)| activity.has_calls()).count()
    }

    pub(crate) fn spawn(
        &mut self,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), (activity, task));
    }

    /// Makes room for another connection, of at most `most`. False if its client has all connections that it may have, and
    /// the server works for each of them.
    pub(crate) fn make_room(&mut self, peer: Peer, most: usize) -> bool {
        let share = most - most / RESERVED_PART;
        let own = |other: Peer| other.site() == peer.site();
        if share < most && self.open.values().filter(|(activity, _)| own(activity.peer())).count() >= share {
            return self.close_idle_of(own);
        }
        if self.len() >= most {
            self.close_idle();
        }
        true
    }

    /// Waits for a connection to end; `None` if there is none.
    pub(crate) async fn join_next(&mut self) -> Option<()> {
        let ended = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&ended);
        Some(())
    }

    /// Closes the connection that has been idle longest. Those with a call that is [`Wait::Idle`] and those that have just
    /// been used come last. Connections that the server works for stay.
    pub(crate) fn close_idle(&mut self) {
        self.close_idle_of(|_| true);
    }

    fn close_idle_of(&mut self, is_wanted: impl Fn(Peer) -> bool) -> bool {
        let wanted = self.open.iter().filter(|(_, (activity, _))| is_wanted(activity.peer()));
        let idle = wanted.filter_map(|(id, (activity, _))| Some((activity.idle_since()?, *id)));
        let longest = idle.min_by_key(|(since, _)| *since);
        let closed = longest.and_then(|(_, id)| self.open.remove(&id));
        closed.map(|(_, task)| task.abort()).is_some()
    }

    pub(crate) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}

/// A client that has sent or read something in this time is about to send its next request, or the first one.
const JUST_USED: Duration = Duration::from_secs(1);

/// One of so many connections is reserved: a client may not have them all.
const RESERVED_PART: usize = 8;

#[cfg(test)]
mod tests {
    use std::future::pending;

    use anabranch_testkit::Sim;

    use super::*;

    #[tokio::test]
    async fn connections_in_use_make_room_last() {
        let sim = Sim::new(1);
        let (clock, second) = (sim.clock(), Duration::from_secs(1));
        let [unfinished, unread] = [(), ()].map(|()| ByteBudget::new(0, second, Arc::clone(&clock)));
        let traffic = Arc::new(Traffic::new(unfinished, unread, second));
        let mut connections = Connections::default();
        let mut open = |waits: &[Wait]| {
            let activity = Arc::new(Activity::new(Arc::clone(&clock), Arc::clone(&traffic), Peer::Socket));
            connections.spawn(Arc::clone(&activity), pending());
            let calls: Vec<_> = waits.iter().map(|_| activity.begin()).collect();
            calls.iter().zip(waits).for_each(|(call, wait)| call.set_waiting(*wait));
            sim.block_on(clock.sleep_until(clock.now() + second));
            (activity, calls)
        };
        let listener = open(&[Wait::Idle]);
        let worked_for = open(&[Wait::Idle, Wait::Nothing]);
        let mixed = open(&[Wait::Client, Wait::Idle]);
        let unused = open(&[]);
        let stalled = open(&[Wait::Client]);
        let unread = open(&[Wait::Reader]);
        sim.block_on(clock.sleep_until(clock.now() + second));
        let new = open(&[]);
        new.0.begin();
        for gone in [unused, stalled, unread, listener, mixed, new] {
            connections.close_idle();
            let is_open = |(known, _): &(Arc<Activity>, _)| Arc::ptr_eq(known, &gone.0);
            assert!(!connections.open.values().any(is_open));
        }
        connections.close_idle();
        assert_eq!(connections.open.len(), 1, "the server works for it");
        drop(worked_for);
    }
}
