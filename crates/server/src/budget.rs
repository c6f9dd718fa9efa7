//! The bytes of unfinished requests: one budget for all connections.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A share of the budget, given back when it is dropped.
pub(crate) type Share = OwnedSemaphorePermit;

/// Bytes that messages and bodies may take before their calls are answered.
#[derive(Clone)]
pub(crate) struct ByteBudget {
    bytes: Arc<Semaphore>,
    most: usize,
    wait: Duration,
    clock: Arc<dyn Clock>,
}

impl ByteBudget {
    /// A budget of so many bytes, for which a call waits so long.
    pub(crate) fn new(most: usize, wait: Duration, clock: Arc<dyn Clock>) -> ByteBudget {
        // The semaphore counts no further, nor is there so much memory.
        let most = most.min(u32::MAX as usize);
        ByteBudget { bytes: Arc::new(Semaphore::new(most)), most, wait, clock }
    }

    /// The bytes that calls hold.
    pub(crate) fn taken(&self) -> usize {
        self.most - self.bytes.available_permits()
    }

    /// Takes bytes if they are there at once.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Share> {
        Arc::clone(&self.bytes).try_acquire_many_owned(self.count(bytes)).ok()
    }

    /// Takes bytes as soon as others gave them back; nothing if that takes too long. First come, first served.
    pub(crate) async fn take(self, bytes: usize) -> Option<Share> {
        let share = Arc::clone(&self.bytes).acquire_many_owned(self.count(bytes));
        let late = self.clock.sleep_until(self.clock.now() + self.wait);
        tokio::select! {
            share = share => share.ok(),
            () = late => None,
        }
    }

    /// More than all there is, is all there is: a call that is let in alone must not wait for ever.
    fn count(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.most)).unwrap_or(u32::MAX)
    }
}
