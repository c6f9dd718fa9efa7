//! Facts about runs, for whoever listens. A slow listener loses the oldest; it never slows a run.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use crate::graph::NodeId;
use crate::limit::{LimitKey, Moved};

/// One fact about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The run.
    pub run: RunId,
    /// When, by the run's clock.
    pub at: Instant,
    /// The fact.
    pub what: What,
}

/// Names a run of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// A fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A run of this many nodes was admitted.
    RunStarted(u32),
    /// A node could start but for this; it starts, or starts again, when it is over.
    Waiting(NodeId, Wait),
    /// A node started.
    Started(NodeId, Place),
    /// A pool's thread took up a node that had started: until then it stood in the pool's queue.
    Running(NodeId),
    /// A node finished.
    Finished(NodeId),
    /// A node failed, and a stand-in value took its place.
    FellBack(NodeId, Reason),
    /// A node failed.
    Failed(NodeId, Reason),
    /// A node was dropped.
    Dropped(NodeId),
    /// A call's end moved a limit.
    Limit(LimitKey, Moved),
    /// The run ended: every node ended, or it was stopped early.
    RunEnded(Ending),
}

impl What {
    /// The node it is about, if it is about one.
    pub fn node(self) -> Option<NodeId> {
        match self {
            What::RunStarted(_) | What::RunEnded(_) | What::Limit(..) => None,
            What::Waiting(node, _)
            | What::Started(node, _)
            | What::Running(node)
            | What::Finished(node)
            | What::FellBack(node, _)
            | What::Failed(node, _)
            | What::Dropped(node) => Some(node),
        }
    }
}

/// What a node that could start waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A slot of a limit.
    Limit,
    /// The pause before another attempt.
    Retry,
}

/// Where a node is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the run's own task.
    Inline,
    /// As a future polled by the run.
    Future,
    /// As a task of its own.
    Spawned,
    /// On a CPU pool.
    Pool,
    /// On the blocking pool.
    Blocking,
}

/// Why a node did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its own error.
    Error,
    /// A panic.
    Panic,
    /// Its timeout.
    Timeout,
    /// The run's deadline.
    Deadline,
    /// A pool that shut down.
    Abandoned,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every node ended.
    Complete,
    /// A node's failure ended it.
    Failed,
    /// Its deadline passed.
    Deadline,
    /// The engine cut it while draining.
    Cut,
    /// Its owner dropped it.
    Dropped,
}

/// Where events of an engine can be heard.
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
    /// Hears events from now on, keeping at most `bound` that were not yet taken.
    pub fn listen(&self, bound: NonZeroUsize) -> Listener {
        let queue = Arc::new(Queue { bound: bound.get(), state: Mutex::default() });
        self.shared.change(|listeners| listeners.push(Arc::clone(&queue)));
        Listener { queue, shared: Arc::clone(&self.shared) }
    }

    /// Whether anybody listens.
    pub(crate) fn heard(&self) -> bool {
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

/// Hears the events of an engine until dropped.
pub struct Listener {
    queue: Arc<Queue>,
    shared: Arc<Shared>,
}

/// What a listener hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An event.
    Event(Event),
    /// So many events came and went before they were taken.
    Lost(u64),
}

impl Listener {
    /// The next event, if one is there.
    pub fn try_next(&mut self) -> Option<Heard> {
        lock(&self.queue.state).pop()
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Heard {
        std::future::poll_fn(|cx| {
            let mut state = lock(&self.queue.state);
            match state.pop() {
                Some(heard) => Poll::Ready(heard),
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
    state: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
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

impl Pending {
    fn pop(&mut self) -> Option<Heard> {
        match std::mem::take(&mut self.lost) {
            0 => self.events.pop_front().map(Heard::Event),
            lost => Some(Heard::Lost(lost)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
