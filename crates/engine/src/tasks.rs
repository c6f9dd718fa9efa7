//! Futures that run as tasks of their own, beside their run: a seam, and tokio behind it.

use std::pin::Pin;

/// Spawns futures.
pub trait Tasks: Send + Sync + 'static {
    /// Starts `future`. Dropping the returned guard aborts it.
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> AbortOnDrop;
}

/// Aborts a spawned future when dropped.
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

/// Spawns tasks of the tokio runtime that polls the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTasks;

impl Tasks for TokioTasks {
    #[allow(clippy::disallowed_methods, reason = "the returned guard is the owner that the ban asks for")]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> AbortOnDrop {
        let task = tokio::spawn(future);
        AbortOnDrop::new(move || task.abort())
    }
}
