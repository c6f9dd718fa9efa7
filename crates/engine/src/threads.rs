//! The threads behind the real pools, and the tasks behind spawned steps.

use std::io;
use std::pin::Pin;

use crate::pool::ThreadPool;

/// Work of the latency class: somebody waits for the answer.
pub(crate) fn latency_pool(threads: usize) -> ThreadPool {
    ThreadPool::new("cpu", threads, start)
}

/// Work of the batch class: same cores, but the operating system lets latency work go first.
pub(crate) fn batch_pool(threads: usize) -> ThreadPool {
    ThreadPool::new("batch", threads, |name, body| {
        start(
            name,
            Box::new(move || {
                // Linux keeps niceness per thread. Being refused it costs latency under load, not correctness.
                let _ = rustix::process::setpriority_process(None, 10);
                body();
            }),
        )
    })
}

/// Calls that wait, kept away from compute so that neither holds up the other.
pub(crate) fn blocking_pool(threads: usize) -> ThreadPool {
    ThreadPool::new("blocking", threads, start)
}

fn start(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    std::thread::Builder::new().name(name).spawn(body).map(drop)
}

/// Takes futures that run beside their run: a seam.
pub trait Tasks: Send + Sync + 'static {
    /// Starts `future`; dropping the guard stops it.
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> AbortOnDrop;
}

/// Stops a spawned future when dropped.
pub struct AbortOnDrop(Option<Box<dyn FnOnce() + Send>>);

impl AbortOnDrop {
    /// A guard that calls `abort` when dropped.
    pub fn new(abort: impl FnOnce() + Send + 'static) -> AbortOnDrop {
        AbortOnDrop(Some(Box::new(abort)))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(abort) = self.0.take() {
            abort();
        }
    }
}

/// Tasks of the tokio runtime that polls the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTasks;

impl Tasks for TokioTasks {
    #[allow(clippy::disallowed_methods, reason = "the returned guard is the owner that the ban asks for")]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> AbortOnDrop {
        let task = tokio::spawn(future);
        AbortOnDrop::new(move || task.abort())
    }
}
