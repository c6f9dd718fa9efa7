//! Threads for work that would hold up an async worker: a seam, and the real pool behind it.

use std::collections::VecDeque;
use std::io;

use super::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Takes work for other threads.
pub trait Pool: Send + Sync + 'static {
    /// Queues `task`; the pool runs it, or drops it when it shuts down. Never blocks.
    fn submit(&self, task: Task);
}

/// Work for a pool. It catches its own panics.
pub type Task = Box<dyn FnOnce() + Send>;

/// Threads that take tasks in the order they came, started when there is work and none is idle.
///
/// The queue is bounded by the engine: at most its number of runs times what each may have in flight.
pub(crate) struct ThreadPool {
    shared: Arc<Shared>,
}

/// Starts a thread of this name with this body.
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
    /// Threads that wait and were not called.
    idle: usize,
    /// Threads that were called and have not woken up yet.
    called: usize,
    closed: bool,
}

impl ThreadPool {
    /// A pool of at most `max_threads`, each started by `start_thread`.
    pub(crate) fn new(name: &'static str, max_threads: usize, start_thread: StartThread) -> ThreadPool {
        let state = State { queue: VecDeque::new(), threads: 0, idle: 0, called: 0, closed: false };
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
        if state.call() {
            drop(state);
            self.shared.work_or_close.notify_one();
            return;
        }
        let waiting_for_a_thread = state.queue.len() > state.called;
        if state.idle > 0 || state.threads == self.shared.max_threads || !waiting_for_a_thread {
            return;
        }
        state.threads += 1;
        let name = format!("{}-{}", self.shared.name, state.threads);
        drop(state);
        let shared = Arc::clone(&self.shared);
        if (self.shared.start_thread)(name, Box::new(move || shared.work())).is_err() {
            self.shared.lost_a_thread();
        }
    }
}

impl Pool for ThreadPool {
    fn submit(&self, task: Task) {
        self.push(task);
    }
}

/// Queued tasks are dropped; threads end after the task in hand, which its run has told to stop.
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
    /// Decides to wake a waiting thread. One at a time: whoever wakes up calls the next if there is more, which wakes
    /// threads away from the caller's core and leaves the caller to its own work.
    fn call(&mut self) -> bool {
        let calls = self.idle > 0 && self.called == 0;
        if calls {
            self.idle -= 1;
            self.called += 1;
        }
        calls
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.queue.pop_front() {
                let calls = !state.queue.is_empty() && state.call();
                drop(state);
                if calls {
                    self.work_or_close.notify_one();
                }
                // A task catches its own panics; one that slips through must not cost the pool a thread.
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
        while state.called == 0 && !state.closed {
            state = self.work_or_close.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match state.called {
            0 => state.idle -= 1,
            _ => state.called -= 1,
        }
        state
    }

    /// The system refused a thread: the others serve the queue, and without any its tasks are dropped, which tells
    /// their runs.
    fn lost_a_thread(&self) {
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
