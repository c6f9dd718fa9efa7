//! A thread pool for work that waits for the disk, so that it never blocks an async worker.
//!
//! A caller awaits a place in the queue, starts work from it and awaits the answer, on any executor.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};

use anabranch_text::panic_message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A few threads, started when there is work and none is idle. Dropping the pool abandons work
/// that has not begun and waits for work that has.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

/// The reason why work returned no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JobFailure {
    #[error("work on the disk panicked: {0}")]
    Panicked(String),
    #[error("the store's threads have ended")]
    Closed,
}

/// A place in the queue, which the caller may fill at once with [`QueueSlot::start`].
#[derive(Debug)]
pub(crate) struct QueueSlot {
    shared: Arc<Shared>,
    permit: OwnedSemaphorePermit,
}

/// The future answer of work that was started. Dropping it skips the work, unless that has begun. An answer that is
/// never taken is dropped on one of the pool's threads.
#[derive(Debug)]
pub(crate) struct Job<T: Send + 'static> {
    shared: Arc<Shared>,
    answer: oneshot::Receiver<Result<T, JobFailure>>,
}

/// A value between two pieces of work. It is dropped on one of the pool's threads, because its drop waits for the
/// disk.
#[derive(Debug)]
pub(crate) struct ParkedValue<T: Send + 'static> {
    shared: Arc<Shared>,
    value: Option<T>,
}

#[derive(Debug)]
struct Shared {
    max_threads: usize,
    places: Arc<Semaphore>,
    state: Mutex<State>,
    work_or_close: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Task>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    closed: bool,
}

/// The permit is released when the task leaves the queue. A task that only drops a value has none: a drop cannot wait
/// for a permit, and there is at most one such task per parked value or answer.
struct Task {
    run: Box<dyn FnOnce() + Send>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    /// The number of tasks that may wait for a thread. Further callers wait for a place.
    const PLACES: usize = 64;

    pub(crate) fn new(max_threads: usize) -> Pool {
        assert!(max_threads > 0, "a pool without threads would never answer");
        let places = Arc::new(Semaphore::new(Pool::PLACES));
        let (state, work_or_close) = (Mutex::default(), Condvar::new());
        Pool { shared: Arc::new(Shared { max_threads, places, state, work_or_close }) }
    }

    /// Does `work` on one of the threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobFailure> {
        self.place().await?.start(work).await
    }

    /// Waits for a place in the queue.
    pub(crate) async fn place(&self) -> Result<QueueSlot, JobFailure> {
        let permit = Arc::clone(&self.shared.places).acquire_owned().await;
        let permit = permit.map_err(|_| JobFailure::Closed)?;
        Ok(QueueSlot { shared: Arc::clone(&self.shared), permit })
    }

    /// A place in the queue, if there is one now.
    pub(crate) fn try_place(&self) -> Option<QueueSlot> {
        let permit = Arc::clone(&self.shared.places).try_acquire_owned().ok()?;
        Some(QueueSlot { shared: Arc::clone(&self.shared), permit })
    }

    /// Keeps `value` until it is taken, or drops it on one of the threads.
    pub(crate) fn park<T: Send + 'static>(&self, value: T) -> ParkedValue<T> {
        ParkedValue { shared: Arc::clone(&self.shared), value: Some(value) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.places.close();
        let mut state = self.shared.lock();
        state.closed = true;
        let (queue, threads) = (std::mem::take(&mut state.queue), std::mem::take(&mut state.threads));
        drop(state);
        self.shared.work_or_close.notify_all();
        drop(queue);
        // Inside an async runtime nothing may block: the threads end when their work does.
        if tokio::runtime::Handle::try_current().is_ok() {
            return;
        }
        for thread in threads {
            // A task may own the pool: its thread cannot wait for itself, and ends right after.
            if thread.thread().id() != thread::current().id() {
                // A thread catches the panics of its work, so this is never an error.
                let _ = thread.join();
            }
        }
    }
}

impl QueueSlot {
    /// Queues `work`.
    pub(crate) fn start<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Job<T> {
        let (sender, answer) = oneshot::channel::<Result<T, JobFailure>>();
        let run = move || {
            if !sender.is_closed() {
                let done = catch_unwind(AssertUnwindSafe(work));
                // If no caller waits any more, the answer is dropped here.
                let _ = sender.send(done.map_err(|panic| JobFailure::Panicked(panic_message(&*panic))));
            }
        };
        self.shared.push(Task { run: Box::new(run), permit: Some(self.permit) });
        Job { shared: self.shared, answer }
    }
}

impl<T: Send + 'static> Future for Job<T> {
    type Output = Result<T, JobFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(context));
        Poll::Ready(answer.unwrap_or(Err(JobFailure::Closed)))
    }
}

impl<T: Send + 'static> Drop for Job<T> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(answer) = self.answer.try_recv() {
            self.shared.discard(answer);
        }
    }
}

impl<T: Send + 'static> ParkedValue<T> {
    pub(crate) fn get(&self) -> &T {
        self.value.as_ref().expect("a parked value is there until it is taken")
    }

    pub(crate) fn take(mut self) -> T {
        self.value.take().expect("a parked value is there until it is taken")
    }
}

impl<T: Send + 'static> Drop for ParkedValue<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.shared.discard(value);
        }
    }
}

impl Shared {
    fn discard(self: &Arc<Shared>, value: impl Send + 'static) {
        self.push(Task { run: Box::new(move || drop(value)), permit: None });
    }

    /// Queues `task`, or drops it when the pool is closed.
    fn push(self: &Arc<Shared>, task: Task) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            drop(task);
            return;
        }
        state.queue.push_back(task);
        if state.queue.len() > state.idle && state.threads.len() < self.max_threads {
            self.start_thread(state);
        } else if state.idle > 0 {
            drop(state);
            self.work_or_close.notify_one();
        }
    }

    fn start_thread(self: &Arc<Shared>, mut state: MutexGuard<'_, State>) {
        let name = format!("content-io-{}", state.threads.len() + 1);
        let shared = Arc::clone(self);
        match thread::Builder::new().name(name).spawn(move || shared.work()) {
            Ok(thread) => state.threads.push(thread),
            Err(_) if !state.threads.is_empty() => self.work_or_close.notify_one(),
            // The system refuses even one thread: dropping the tasks tells their callers.
            Err(_) => {
                let stranded = std::mem::take(&mut state.queue);
                drop(state);
                drop(stranded);
            }
        }
    }

    fn work(&self) {
        while let Some(Task { run, permit }) = self.next() {
            drop(permit);
            // Work catches its own panics; a panic in the drop of a value must not end the thread.
            let _ = catch_unwind(AssertUnwindSafe(run));
        }
    }

    /// The next task, or nothing when the pool is closed.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        while !state.closed && state.queue.is_empty() {
            state.idle += 1;
            state = self.work_or_close.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
        state.queue.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Task").field("permit", &self.permit).finish_non_exhaustive()
    }
}
