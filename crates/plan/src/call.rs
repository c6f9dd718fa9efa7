//! What the nodes of one request share.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_rows::Rows;

use crate::capture::Recorder;
use crate::request::UserId;
use crate::source::{Reads, Shared, StaleReads};
use crate::value::Values;
use crate::why::Seen;

/// One request, as its nodes see it.
pub struct Call {
    /// The user.
    pub user: UserId,
    /// The parameters, by their place in the registry.
    pub params: Values,
    /// The rows that the request brings, if it does.
    pub candidates: Option<Rows>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What was read.
    pub tally: Tally,
    pub(crate) shared: Box<[Shared]>,
    /// Who answers its reads.
    pub(crate) reads: Reads,
    /// What its nodes make, if somebody will ask why.
    pub(crate) seen: Option<Arc<Seen>>,
    /// Who keeps what it reads, if it is being captured.
    pub(crate) recorder: Option<Arc<Recorder>>,
}

/// What a request asked of its sources.
#[derive(Debug, Default)]
pub struct Tally {
    /// Trips.
    pub trips: AtomicU32,
    /// Commands.
    pub commands: AtomicU32,
}

impl Call {
    /// The same request, with its reads answered by what was read before, at most so long ago.
    pub(crate) fn stale(&self, max_age: Duration) -> Call {
        Call {
            user: self.user.clone(),
            params: self.params.clone(),
            candidates: self.candidates.clone(),
            clock: Arc::clone(&self.clock),
            tally: Tally::default(),
            shared: Box::default(),
            reads: match &self.reads {
                Reads::Recorded(recorded) => Reads::Recorded(recorded.stale()),
                Reads::Live | Reads::Stale(_) => Reads::Stale(StaleReads::new(max_age)),
            },
            seen: self.seen.clone(),
            recorder: self.recorder.clone(),
        }
    }

    /// The age of the oldest value used, if reads are answered by what was read before.
    pub(crate) fn stale_age(&self) -> Option<Duration> {
        match &self.reads {
            Reads::Stale(reads) => Some(reads.oldest()),
            Reads::Live | Reads::Recorded(_) => None,
        }
    }
}
