//! The memory budget for unfinished requests, shared by all connections.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A share of the budget, returned on drop.
pub(crate) type Share = OwnedSemaphorePermit;

/// The bytes that messages and bodies may take until their calls are answered.
#[derive(Clone)]
pub(crate) struct ByteBudget {
    bytes: Arc<Semaphore>,
    most: usize,
    wait: Duration,
    clock: Arc<dyn Clock>,
}

impl ByteBudget {
    /// A budget of `most` bytes. A call waits at most `wait` for its share.
    pub(crate) fn new(most: usize, wait: Duration, clock: Arc<dyn Clock>) -> ByteBudget {
        // A semaphore permit counts up to `u32::MAX`.
        let most = most.min(u32::MAX as usize);
        ByteBudget { bytes: Arc::new(Semaphore::new(most)), most, wait, clock }
    }

    /// The bytes that calls hold.
    pub(crate) fn taken(&self) -> usize {
        self.most - self.bytes.available_permits()
    }

    /// Takes bytes if they are available now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Share> {
        Arc::clone(&self.bytes).try_acquire_many_owned(self.count(bytes)).ok()
    }

    /// Takes bytes as soon as they are available, in order of arrival; `None` if that takes longer than the budget's
    /// `wait`.
    pub(crate) async fn take(self, bytes: usize) -> Option<Share> {
        let share = Arc::clone(&self.bytes).acquire_many_owned(self.count(bytes));
        let late = self.clock.sleep_until(self.clock.now() + self.wait);
        tokio::select! {
            share = share => share.ok(),
            () = late => None,
        }
    }

    /// A call that is larger than the budget takes all of it, so that it does not wait forever.
    fn count(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.most)).unwrap_or(u32::MAX)
    }
}
