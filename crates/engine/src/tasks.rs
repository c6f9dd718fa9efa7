//! Spawning futures as tasks: a trait that tests replace, and the implementation with tokio.

use std::pin::Pin;

/// Spawns futures as tasks.
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

/// Spawns tasks on the tokio runtime that polls the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTasks;

impl Tasks for TokioTasks {
    #[allow(clippy::disallowed_methods, reason = "the returned guard is the owner that the ban asks for")]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> AbortOnDrop {
        let task = tokio::spawn(future);
        AbortOnDrop::new(move || task.abort())
    }
}
