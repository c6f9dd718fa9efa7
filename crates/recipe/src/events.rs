//! What happens in an executor, told as it happens.

use anabranch_content::Address;
use tokio::sync::broadcast;

/// One fact about an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A recipe was added that was not known.
    Added {
        /// Its address.
        address: Address,
    },
    /// A value was asked for that must be computed.
    Begun {
        /// Of which recipe.
        address: Address,
        /// How many recipes it takes, itself included.
        recipes: u64,
    },
    /// A recipe is being computed. A call that takes long says how far it is, ten times per second at most.
    Progress {
        /// Its address; of fused recipes, that of the last one.
        address: Address,
        /// Bytes of its inputs that its function was given.
        read: u64,
        /// Bytes of all its inputs. A function may need fewer.
        total: u64,
        /// Bytes of its output so far.
        written: u64,
        /// How often its function came to a point where it could be stopped. A function of whole inputs works on when
        /// it has read everything, and this number grows.
        steps: u64,
    },
    /// A recipe was computed.
    Computed {
        /// Its address.
        address: Address,
        /// The blob that it came to.
        output: Address,
        /// That blob's bytes.
        size: u64,
        /// How long its function worked, in microseconds.
        micros: u64,
    },
    /// A recipe could not be computed.
    Failed {
        /// Its address.
        address: Address,
        /// Why.
        error: String,
    },
    /// What recipes came to was forgotten.
    Invalidated {
        /// Where it began.
        address: Address,
        /// How many were forgotten.
        count: u64,
    },
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A fact.
    Event(Event),
    /// So many were missed, for the listener was too slow.
    Lost(u64),
}

/// So many events wait for a slow listener.
const KEPT: usize = 4096;

/// Where events come from.
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
    /// Tells an event that is made only if somebody listens.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.sender.receiver_count() > 0 {
            // Nobody may be left by now.
            let _ = self.sender.send(event());
        }
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener { receiver: self.sender.subscribe() }
    }
}

/// Hears what happens.
#[derive(Debug)]
pub struct Listener {
    receiver: broadcast::Receiver<Event>,
}

impl Listener {
    /// What happened next; nothing once the executor is gone.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.receiver.recv().await {
            Ok(event) => Some(Heard::Event(event)),
            Err(broadcast::error::RecvError::Lagged(lost)) => Some(Heard::Lost(lost)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
