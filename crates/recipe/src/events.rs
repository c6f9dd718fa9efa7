//! The events of an executor, sent to listeners as they happen.

use anabranch_content::Address;
use tokio::sync::broadcast;

/// An event of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A new recipe was added.
    Added {
        /// Its address.
        address: Address,
    },
    /// A value was requested that must be computed.
    Begun {
        /// The address of its recipe.
        address: Address,
        /// The number of recipes to compute, including its own.
        recipes: u64,
    },
    /// A recipe is being computed. A long call reports its progress at most ten times per second.
    Progress {
        /// Its address; for fused recipes, the address of the last one.
        address: Address,
        /// Bytes of its inputs that its function has received.
        read: u64,
        /// Total bytes of its inputs. A function may not read all of them.
        total: u64,
        /// Bytes of its output so far.
        written: u64,
        /// The number of times its function checked whether to stop. A function of whole inputs keeps working after it
        /// has read everything, and this number keeps growing.
        steps: u64,
    },
    /// A recipe was computed.
    Computed {
        /// Its address.
        address: Address,
        /// The address of the output blob.
        output: Address,
        /// The size of that blob in bytes.
        size: u64,
        /// The time that its function worked, in microseconds.
        micros: u64,
    },
    /// A recipe could not be computed.
    Failed {
        /// Its address.
        address: Address,
        /// The error message.
        error: String,
    },
    /// The values of recipes were forgotten.
    Invalidated {
        /// The recipe at which the invalidation began.
        address: Address,
        /// The number of forgotten values.
        count: u64,
    },
}

/// An item that a listener receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An event.
    Event(Event),
    /// The listener was too slow and missed this many events.
    Lost(u64),
}

/// The number of events buffered for a slow listener.
const KEPT: usize = 4096;

/// The sender of events.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Event>,
}

impl Default for Events {
    fn default() -> Events {
        Events { sender: broadcast::Sender::new(KEPT) }
    }
}

impl Events {
    /// Sends an event. The event is built only if there is a listener.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.sender.receiver_count() > 0 {
            // The last listener may be gone by now.
            let _ = self.sender.send(event());
        }
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener { receiver: self.sender.subscribe() }
    }
}

/// Receives events.
#[derive(Debug)]
pub struct Listener {
    receiver: broadcast::Receiver<Event>,
}

impl Listener {
    /// The next event; `None` once the executor is gone.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.receiver.recv().await {
            Ok(event) => Some(Notice::Event(event)),
            Err(broadcast::error::RecvError::Lagged(lost)) => Some(Notice::Lost(lost)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
