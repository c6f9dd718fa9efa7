//! The signals that ask a process to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Hears Ctrl-C (SIGINT) and SIGTERM. From the first one made on, they do not end the process by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen. Called inside of a runtime.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::of(format!("signals cannot be heard: {error}")));
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
