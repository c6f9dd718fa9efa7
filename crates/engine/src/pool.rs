//! Thread pools, for work that would block an async worker: a trait that tests replace, and the real pool.

use std::collections::VecDeque;
use std::io;

use super::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Runs tasks on other threads.
pub trait Pool: Send + Sync + 'static {
    /// Queues `task` without blocking. The pool runs it, or drops it on shutdown.
    fn submit(&self, task: Task);
}

/// A task for a pool. It must catch its own panics.
pub type Task = Box<dyn FnOnce() + Send>;

/// Threads that take tasks first in, first out. A thread is started when there is a task and no thread is idle.
///
/// The engine bounds the queue: at most its number of runs times the nodes that each may have in flight.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
}

/// Starts a thread with a name and a body.
pub(crate) type StartThread = fn(String, Box<dyn FnOnce() + Send>) -> io::Result<()>;

struct Shared {
    name: &'static str,
    max_threads: usize,
    start_thread: StartThread,
    state: Mutex<State>,
    work_or_close: Condvar,
}

struct State {
    queue: VecDeque<Task>,
    threads: usize,
    /// Threads that wait and were not notified.
    idle: usize,
    /// Threads that were notified and have not woken up yet.
    notified: usize,
    closed: bool,
}

impl ThreadPool {
    /// A pool of at most `max_threads`, each started by `start_thread`.
    pub(crate) fn new(name: &'static str, max_threads: usize, start_thread: StartThread) -> ThreadPool {
        let state = State { queue: VecDeque::new(), threads: 0, idle: 0, notified: 0, closed: false };
        let (state, work_or_close) = (Mutex::new(state), Condvar::new());
        ThreadPool { shared: Arc::new(Shared { name, max_threads, start_thread, state, work_or_close }) }
    }

    /// Queues `task`, or drops it when the pool is closed.
    pub(crate) fn push(&self, task: Task) {
        let mut state = self.shared.lock();
        if state.closed {
            drop(state);
            drop(task);
            return;
        }
        state.queue.push_back(task);
        if state.may_notify() {
            drop(state);
            self.shared.work_or_close.notify_one();
            return;
        }
        let waiting_for_a_thread = state.queue.len() > state.notified;
        if state.idle > 0 || state.threads == self.shared.max_threads || !waiting_for_a_thread {
            return;
        }
        state.threads += 1;
        let name = format!("{}-{}", self.shared.name, state.threads);
        drop(state);
        let shared = Arc::clone(&self.shared);
        if (self.shared.start_thread)(name, Box::new(move || shared.work())).is_err() {
            self.shared.thread_refused();
        }
    }
}

impl Pool for ThreadPool {
    fn submit(&self, task: Task) {
        self.push(task);
    }
}

/// Drops the queued tasks. Each thread ends after its current task, which its run has asked to stop.
impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let leftover = std::mem::take(&mut state.queue);
        drop(state);
        self.shared.work_or_close.notify_all();
        drop(leftover);
    }
}

impl State {
    /// Whether to notify an idle thread now. Only one thread wakes up at a time, and notifies the next if there are more
    /// tasks. So the threads wake each other, and the caller continues with its own work.
    fn may_notify(&mut self) -> bool {
        let notify = self.idle > 0 && self.notified == 0;
        if notify {
            self.idle -= 1;
            self.notified += 1;
        }
        notify
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.queue.pop_front() {
                let notify = !state.queue.is_empty() && state.may_notify();
                drop(state);
                if notify {
                    self.work_or_close.notify_one();
                }
                // Tasks catch their own panics. If one does not, the pool must not lose a thread.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
                state = self.lock();
            } else if state.closed {
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.idle += 1;
        while state.notified == 0 && !state.closed {
            state = self.work_or_close.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.notified {
            0 => state.idle -= 1,
            _ => state.notified -= 1,
        }
        state
    }

    /// The operating system refused a thread. The other threads serve the queue. If there are none, the queued tasks are
    /// dropped, and their runs see that.
    fn thread_refused(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        let stranded = if state.threads == 0 { std::mem::take(&mut state.queue) } else { VecDeque::new() };
        drop(state);
        drop(stranded);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
