//! Events of runs, for listeners. A slow listener loses the oldest events; it never slows a run down.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use crate::graph::NodeId;
use crate::limit::{LimitChange, LimitKey};

/// One event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub run: RunId,
    /// The time of the event, by the engine's clock.
    pub at: Instant,
    pub kind: EventKind,
}

/// Names a run of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A run with this many nodes was admitted.
    RunStarted(u32),
    /// A node is ready and waits for this before it starts, or starts again.
    Waiting(NodeId, WaitReason),
    Started(NodeId, Placement),
    /// A pool thread took the started node from the pool's queue.
    Running(NodeId),
    Finished(NodeId),
    /// A node failed, and its fallback value was used.
    FellBack(NodeId, FailureReason),
    Failed(NodeId, FailureReason),
    Dropped(NodeId),
    /// The end of a call changed a limit.
    Limit(LimitKey, LimitChange),
    /// The run ended: every node ended, or it was stopped early.
    RunEnded(RunEnding),
}

impl EventKind {
    /// The node that the event is about, if any.
    pub fn node(self) -> Option<NodeId> {
        match self {
            EventKind::RunStarted(_) | EventKind::RunEnded(_) | EventKind::Limit(..) => None,
            EventKind::Waiting(node, _)
            | EventKind::Started(node, _)
            | EventKind::Running(node)
            | EventKind::Finished(node)
            | EventKind::FellBack(node, _)
            | EventKind::Failed(node, _)
            | EventKind::Dropped(node) => Some(node),
        }
    }
}

/// The reason why a ready node does not start yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// It waits for a slot of a limit.
    Limit,
    /// It pauses before a retry.
    Retry,
}

/// The place where a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the run's own task.
    Inline,
    /// As a future polled by the run.
    Future,
    /// As a spawned task.
    Spawned,
    /// On a CPU pool.
    Pool,
    /// On the blocking pool.
    Blocking,
}

/// The reason why a node failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The node returned an error.
    Error,
    /// The node panicked.
    Panic,
    /// The node's own timeout passed.
    Timeout,
    /// The run's deadline passed.
    Deadline,
    /// The pool shut down before it ran the job.
    Abandoned,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// Every node ended.
    Complete,
    /// The failure of a node ended it.
    Failed,
    /// The deadline passed.
    Deadline,
    /// The engine shut down ([`Engine::drain`](crate::Engine::drain)) and its grace period was over.
    Cut,
    /// It was drained ([`Options::drain`](crate::Options::drain)): its work in flight ended, other nodes did not.
    Drained,
    /// The future of the run was dropped.
    Dropped,
}

/// The events of an engine. A handle: clones share the listeners.
#[derive(Clone, Default)]
pub struct Events {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    /// Replaced as a whole, so that it is read without holding the lock.
    listeners: Mutex<Arc<[Arc<Queue>]>>,
}

impl Events {
    /// Adds a listener. It receives the events from now on and buffers at most `bound` of them.
    pub fn listen(&self, bound: NonZeroUsize) -> Listener {
        let queue = Arc::new(Queue { bound: bound.get(), state: Mutex::default() });
        self.shared.change(|listeners| listeners.push(Arc::clone(&queue)));
        Listener { queue, shared: Arc::clone(&self.shared), spare: VecDeque::new() }
    }

    /// Whether there is a listener.
    pub(crate) fn has_listeners(&self) -> bool {
        self.shared.count.load(Ordering::Acquire) > 0
    }

    pub(crate) fn publish(&self, events: &[Event]) {
        let listeners = Arc::clone(&lock(&self.shared.listeners));
        for queue in listeners.iter() {
            queue.push(events);
        }
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Queue>>)) {
        let mut listeners = lock(&self.listeners);
        let mut changed = listeners.to_vec();
        change(&mut changed);
        self.count.store(changed.len(), Ordering::Release);
        *listeners = changed.into();
    }
}

/// Receives the events of an engine until it is dropped.
pub struct Listener {
    queue: Arc<Queue>,
    shared: Arc<Shared>,
    /// The empty buffer that [`take_all`](Self::take_all) exchanges for the full one.
    spare: VecDeque<Event>,
}

/// An item that a [`Listener`] receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerItem {
    Event(Event),
    /// This many events were lost here, because the buffer was full.
    Lost(u64),
}

impl Listener {
    /// The next item, if there is one.
    pub fn try_next(&mut self) -> Option<ListenerItem> {
        lock(&self.queue.state).pop()
    }

    /// Calls `take` with every item so far. The buffer is locked once for all of them.
    pub fn take_all(&mut self, mut take: impl FnMut(&ListenerItem)) {
        let lost = {
            let mut state = lock(&self.queue.state);
            std::mem::swap(&mut state.events, &mut self.spare);
            std::mem::take(&mut state.lost)
        };
        if lost > 0 {
            take(&ListenerItem::Lost(lost));
        }
        self.spare.drain(..).for_each(|event| take(&ListenerItem::Event(event)));
    }

    /// Waits for the next item.
    pub async fn next(&mut self) -> ListenerItem {
        std::future::poll_fn(|cx| {
            let mut state = lock(&self.queue.state);
            match state.pop() {
                Some(item) => Poll::Ready(item),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.change(|listeners| listeners.retain(|queue| !Arc::ptr_eq(queue, &self.queue)));
    }
}

struct Queue {
    bound: usize,
    state: Mutex<PendingEvents>,
}

#[derive(Default)]
struct PendingEvents {
    events: VecDeque<Event>,
    lost: u64,
    waker: Option<Waker>,
}

impl Queue {
    fn push(&self, new: &[Event]) {
        let mut state = lock(&self.state);
        let kept = &new[new.len().saturating_sub(self.bound)..];
        let over = (state.events.len() + kept.len()).saturating_sub(self.bound);
        state.events.drain(..over);
        state.lost += (over + new.len() - kept.len()) as u64;
        state.events.extend(kept);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl PendingEvents {
    fn pop(&mut self) -> Option<ListenerItem> {
        match std::mem::take(&mut self.lost) {
            0 => self.events.pop_front().map(ListenerItem::Event),
            lost => Some(ListenerItem::Lost(lost)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
