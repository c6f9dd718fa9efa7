//! What the nodes of one request share.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use anabranch_engine::Clock;

use crate::capture::Recorder;
use crate::source::{Reads, Shared};
use crate::value::Values;

/// One request, as its nodes see it.
pub struct Call {
    /// Who asks.
    pub user: i64,
    /// The parameters, by their place in the registry.
    pub params: Values,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What was read.
    pub tally: Tally,
    pub(crate) shared: Box<[Shared]>,
    /// Who answers its reads.
    pub(crate) reads: Reads,
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
