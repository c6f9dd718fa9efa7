//! Memory for running calls.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;

/// Memory for calls, in two pools, so that small calls never wait behind a large one.
pub(crate) struct CallMemory {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// The largest grant from the pool for small calls.
    small_most: u64,
    /// The largest grant.
    large_most: u64,
}

/// One part in this many of the memory is reserved for small calls.
const SMALL_PART: u32 = 4;

/// A small call takes at most one part in this many of the memory. With the default settings this is 8 MiB, more than a
/// streaming call takes for an input of any size.
const SMALL_GRANT: u32 = 32;

impl CallMemory {
    pub(crate) fn new(bytes: u32) -> CallMemory {
        let small = bytes / SMALL_PART;
        let large = bytes - small;
        CallMemory {
            small: Arc::new(Semaphore::new(small as usize)),
            large: Arc::new(Semaphore::new(large as usize)),
            small_most: u64::from((bytes / SMALL_GRANT).min(small)),
            large_most: u64::from(large),
        }
    }

    /// The maximum number of bytes granted to one call.
    pub(crate) fn most(&self) -> u64 {
        self.large_most
    }

    /// Waits for memory. `bytes` must not exceed [`most`](CallMemory::most).
    pub(crate) async fn take(&self, bytes: u64) -> Result<OwnedSemaphorePermit, Error> {
        debug_assert!(bytes <= self.large_most);
        let pool = if bytes <= self.small_most { &self.small } else { &self.large };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(pool).acquire_many_owned(bytes).await.map_err(|_| Error::Stopped)
    }
}
