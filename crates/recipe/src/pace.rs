//! Makes long loops that rarely wait yield to other tasks.

/// The number of steps between two yields: less than a millisecond of lookups in a store.
const STEPS: u32 = 256;

/// Counts the steps of a loop.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    steps: u32,
}

impl Pace {
    /// Counts one step. Every [`STEPS`] steps it yields to other tasks and returns true, so that the caller can check
    /// its deadline.
    pub(crate) async fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps < STEPS {
            return false;
        }
        self.steps = 0;
        tokio::task::yield_now().await;
        true
    }
}
