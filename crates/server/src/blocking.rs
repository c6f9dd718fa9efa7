//! Blocking work on files, for requests and jobs. It has threads of its own, so that a response does not wait behind the
//! recipes that are being computed on the engine's pools.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tonic::Code;

use crate::failure::Failure;

/// Runs blocking work, a few pieces at a time. A handle: clones share the bound.
#[derive(Clone)]
pub(crate) struct Blocking(Arc<Semaphore>);

impl Blocking {
    /// At most `most` concurrent pieces of work. Further ones wait in order of arrival.
    pub(crate) fn new(most: usize) -> Blocking {
        Blocking(Arc::new(Semaphore::new(most)))
    }

    /// Runs `work`. Once it has begun, it ends even if the caller is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let shutting_down = || Failure::new(Code::Unavailable, "the server shuts down");
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|_| shutting_down())?;
        let work = move || {
            let _permit = permit;
            work()
        };
        #[allow(clippy::disallowed_methods, reason = "the permit bounds the threads")]
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| match error.is_panic() {
            true => Failure::new(Code::Internal, "the server panicked on this request"),
            false => shutting_down(),
        })
    }
}
