//! Waits for asynchronous work. The work is boxed, so that tokio's event loop is compiled once and not per command.

use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// The work of a command.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Does work on this thread.
pub(crate) fn here<T>(work: Work<'_, Result<T, Failure>>) -> Result<T, Failure> {
    on(&runtime(&mut Builder::new_current_thread())?, work)
}

/// Does work on a runtime.
pub(crate) fn on<T>(runtime: &Runtime, work: Work<'_, T>) -> T {
    runtime.block_on(work)
}

/// The time that the threads of a server have to finish their work after its end. The store is closed before.
const THREADS_WAIT: Duration = Duration::from_secs(2);

/// Does work on a runtime, and ends its threads. Dropping a runtime waits for them for as long as they take.
pub(crate) fn and_end<T>(runtime: Runtime, work: Work<'_, T>) -> T {
    let done = on(&runtime, work);
    runtime.shutdown_timeout(THREADS_WAIT);
    done
}

/// The runtime of a builder.
pub(crate) fn runtime(builder: &mut Builder) -> Result<Runtime, Failure> {
    builder.enable_all().build().map_err(|error| Failure::of(format!("no event loop: {error}")))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A process ends although one of its threads is stuck.
    #[test]
    fn stuck_threads_do_not_keep_a_process() {
        let (release, released) = mpsc::channel::<()>();
        let (enter, entered) = mpsc::channel();
        let runtime = runtime(Builder::new_multi_thread().worker_threads(1)).unwrap();
        let stuck = move || {
            enter.send(()).unwrap();
            released.recv().unwrap_err()
        };
        #[allow(clippy::disallowed_methods, reason = "it stands for any task of a server")]
        let task = runtime.spawn(async move { stuck() });
        entered.recv().unwrap();
        assert_eq!(and_end(runtime, Box::pin(async { 7 })), 7);
        assert!(!task.is_finished());
        drop(release);
    }
}
