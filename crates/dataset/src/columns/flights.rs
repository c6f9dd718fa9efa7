//! Calls in flight by their key (single flight): of two equal requests, the second waits for the first and finds its reply.
//! Without it, the files would hold two replies where the journal keeps one.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_content::Address;
use tokio::sync::Notify;

/// The keys of the calls in flight. The limit of the model bounds their number.
#[derive(Default)]
pub(super) struct Flights {
    keys: Mutex<HashSet<Address>>,
    ended: Notify,
}

/// A call in flight.
pub(super) struct Flight<'f> {
    flights: &'f Flights,
    key: Address,
}

impl Flights {
    /// Waits until no call with this key is in flight.
    pub(super) async fn enter(&self, key: Address) -> Flight<'_> {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // From here on it hears of an end.
            ended.as_mut().enable();
            if self.lock().insert(key) {
                return Flight { flights: self, key };
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
        self.flights.ended.notify_waiters();
    }
}
