//! Waits for asynchronous work. The work is boxed, so that tokio's event loop is compiled once and not per command.

use std::pin::Pin;

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

/// The runtime of a builder.
pub(crate) fn runtime(builder: &mut Builder) -> Result<Runtime, Failure> {
    builder.enable_all().build().map_err(|error| Failure::of(format!("no event loop: {error}")))
}
