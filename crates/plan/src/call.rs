//! One request, as its nodes see it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_engine::clock::Clock;
use anabranch_rows::Rows;

use crate::bounds::Budget;
use crate::document::StaleTerms;
use crate::inspect::{Observer, Recording};
use crate::request::{Request, RequestValues, UserId};
use crate::source::{self, MalformedValues, ReadContext, Reply, Shared, StaleReads, StaleUse, TraceContext};
use crate::value::Values;

/// One request, as its nodes see it.
pub struct Call {
    /// The user that the request is for.
    pub user: UserId,
    /// The parameters, by their place in the registry.
    pub params: Values,
    /// The rows that the request brings, if it brings any.
    pub candidates: Option<Rows>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The trips made so far.
    pub tally: Tally,
    /// The remaining budget of its nodes.
    pub budget: Arc<Budget>,
    /// The distributed trace of the request, if there is one.
    pub(crate) trace: Option<TraceContext>,
    pub(crate) shared: Box<[Shared]>,
    /// The layer that answers its reads.
    pub(crate) answers: Answers,
    /// The observer of an inspected request.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// By node, the values that could not be read.
    pub(crate) malformed: Mutex<BTreeMap<usize, MalformedValues>>,
}

/// The layer that answers the reads of a request.
#[derive(Default)]
pub(crate) enum Answers {
    /// The sources.
    #[default]
    Live,
    /// The memory of earlier replies, for one node that falls back to it.
    Stale(StaleReads),
    /// The recording of a request that is replayed.
    Recorded {
        recording: Arc<dyn Recording>,
        /// True if the recorded read was a cache hit in the stale store.
        stale: bool,
    },
}

/// The trips of a request to its sources.
#[derive(Debug, Default)]
pub struct Tally {
    /// Trips.
    pub trips: AtomicU32,
    /// Commands.
    pub commands: AtomicU32,
}

impl Tally {
    /// Adds the trips of a reply.
    pub(crate) fn count(&self, reply: &Result<Reply, source::Error>) {
        match reply {
            Ok(reply) => {
                self.trips.fetch_add(reply.trips, Ordering::Relaxed);
                self.commands.fetch_add(reply.commands, Ordering::Relaxed);
            }
            Err(error) => _ = self.trips.fetch_add(error.trips(), Ordering::Relaxed),
        }
    }
}

impl Call {
    /// A request that reads from the sources and is not inspected.
    pub fn of(request: Request, clock: Arc<dyn Clock>) -> Call {
        Call::with(request.values, clock)
    }

    fn with(values: RequestValues, clock: Arc<dyn Clock>) -> Call {
        let RequestValues { user, params, candidates } = values;
        Call {
            user,
            params,
            candidates,
            clock,
            tally: Tally::default(),
            budget: Arc::default(),
            trace: None,
            shared: Box::default(),
            answers: Answers::Live,
            observer: None,
            malformed: Mutex::default(),
        }
    }

    /// The same request, with its reads answered by earlier replies.
    pub(crate) fn stale(&self, terms: StaleTerms) -> Call {
        let answers = match &self.answers {
            Answers::Recorded { recording, .. } => {
                Answers::Recorded { recording: Arc::clone(recording), stale: true }
            }
            Answers::Live | Answers::Stale(_) => Answers::Stale(StaleReads::new(terms)),
        };
        let values = RequestValues {
            user: self.user.clone(),
            params: self.params.clone(),
            candidates: self.candidates.clone(),
        };
        let call = Call::with(values, Arc::clone(&self.clock));
        Call { answers, observer: self.observer.clone(), budget: Arc::new(self.budget.rest()), ..call }
    }

    /// The request as sources see it.
    pub(crate) fn read_context(&self) -> ReadContext<'_> {
        ReadContext { budget: &self.budget, trace: self.trace.as_ref() }
    }

    /// Records values that could not be read for a node.
    pub(crate) fn add_malformed(&self, node: usize, malformed: &MalformedValues) {
        if malformed.count > 0 {
            self.lock_malformed().entry(node).or_default().add(malformed.clone());
        }
    }

    /// The values that could not be read, by node.
    pub(crate) fn take_malformed(&self) -> BTreeMap<usize, MalformedValues> {
        std::mem::take(&mut *self.lock_malformed())
    }

    fn lock_malformed(&self) -> MutexGuard<'_, BTreeMap<usize, MalformedValues>> {
        self.malformed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The use of earlier replies, if reads are answered by them.
    pub(crate) fn stale_use(&self) -> Option<StaleUse> {
        match &self.answers {
            Answers::Stale(reads) => Some(reads.used()),
            Answers::Live | Answers::Recorded { .. } => None,
        }
    }
}
