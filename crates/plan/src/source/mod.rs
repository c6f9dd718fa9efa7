//! Sources of rows.
//!
//! A [`Source`] is bound at load to the reads of a node: a key pattern and fields, or a list. A request then makes one
//! trip for all its rows.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::retry::{Classified, Severity};
use anabranch_rows::{Column, Key, Kind};

use crate::bounds::OverBudget;

mod pattern;
mod context;
mod layers;
mod observe;
mod share;
mod remember;
mod hedge;
mod times;
mod merge;
mod weight;
mod values;
mod memory;
mod redis;
mod http;
pub mod decoders;

pub use context::{ReadContext, TraceContext};
pub(crate) use hedge::Hedging;
pub use hedge::{Hedge, HedgeCounts};
pub use http::{Http, HttpConfig};
pub use layers::{Reader, Sources};
pub use memory::{Fault, Memory, MemoryData};
pub use pattern::{Part, Pattern};
pub use redis::{Redis, RedisConfig, RedisCounts, RedisTls, seed};
pub(crate) use remember::{StaleReads, StaleStore, StaleUse};
pub use share::Shared;
pub use times::ReadLatency;
pub(crate) use times::ReadTimes;

/// A source of rows: a store behind an endpoint.
pub trait Source: Send + Sync + 'static {
    /// Prepares a read for requests, with keys of this pattern.
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound>;

    /// Trips in flight at a time, if that is bounded.
    fn max_inflight(&self) -> Option<u32> {
        None
    }

    /// The hedging of late reads, if enabled.
    fn hedge(&self) -> Option<Hedge> {
        None
    }
}

/// The values to read of each key.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// These fields of a hash, each as a column. A missing key or field is null.
    Fields(Arc<[Field]>),
    /// The first ids of a list. A missing key is an empty list.
    List {
        /// The most ids.
        limit: u32,
    },
    /// The ids of a sorted set with the highest scores, and the scores.
    Scored {
        /// The most ids.
        limit: u32,
    },
}

impl Read {
    /// The command of a Redis that it is. A lone field comes without a list around it, which is cheaper to take apart.
    pub fn command(&self) -> &'static str {
        match self {
            Read::Fields(fields) if fields.len() == 1 => "HGET",
            Read::Fields(_) => "HMGET",
            Read::List { .. } => "LRANGE",
            Read::Scored { .. } => "ZRANGE",
        }
    }

    /// The reply to keys that need no trip: there are none, or nothing is asked of them.
    pub fn without_trip(&self, keys: &Keys) -> Option<Reply> {
        let asks_nothing = match self {
            Read::Fields(fields) => fields.is_empty(),
            Read::List { limit } | Read::Scored { limit } => *limit == 0,
        };
        if !asks_nothing && keys.commands() > 0 {
            return None;
        }
        let data = match self {
            Read::Fields(fields) => {
                let nulls = |field: &Field| {
                    let mut values = values::Values::new(field.kind, keys.len());
                    (0..keys.len()).for_each(|_| values.push_null());
                    values.finish()
                };
                Data::Columns(fields.iter().map(nulls).collect())
            }
            Read::List { .. } => Data::Lists(Lists { lens: vec![0; keys.len()], ..Lists::default() }),
            Read::Scored { .. } => {
                Data::Lists(Lists { lens: vec![0; keys.len()], ids: Vec::new(), scores: Some(Vec::new()) })
            }
        };
        Some(Reply::whole(data, 0, 0))
    }
}

/// A field of a hash and the column it becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name in the store.
    pub name: Arc<str>,
    /// The column.
    pub key: Key,
    /// The kind of its values. A value that cannot be read as that kind is an error.
    pub kind: Kind,
}

/// A prepared read.
pub trait Bound: Send + Sync {
    /// Reads all `keys` in one trip. Dropping the returned future cancels the trip. The reply is counted in the budget
    /// of the request ([`Budget::reply`](crate::bounds::Budget::reply)) before memory is allocated for it. If it does
    /// not fit, the error is [`Error::TooLong`].
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch;

    /// The error of every fetch, if the source knows already that it cannot make this read. Loading a plan warns of it.
    fn refusal(&self) -> Option<&Error> {
        None
    }
}

/// The keys of one trip, in order; they may repeat.
#[derive(Clone, Debug, PartialEq)]
pub enum Keys {
    /// The value of the one placeholder of the pattern, an integer
    /// (see [`Pattern::affixes`]).
    Ids(Vec<i64>),
    /// Whole keys; `None` for a row that lacks a value of its key, for which nothing is read. Also used with a pattern
    /// that has affixes, if a string is between them: the id of a string user.
    Whole(Vec<Option<Box<str>>>),
}

impl Keys {
    /// The number of them.
    pub fn len(&self) -> usize {
        match self {
            Keys::Ids(ids) => ids.len(),
            Keys::Whole(keys) => keys.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of keys that are read.
    pub fn commands(&self) -> u32 {
        match self {
            Keys::Ids(ids) => ids.len() as u32,
            Keys::Whole(keys) => keys.iter().flatten().count() as u32,
        }
    }
}

/// A reply, now or later.
pub enum Fetch {
    /// It is here.
    Ready(Result<Reply, Error>),
    /// It is here when this future is done.
    Later(Later),
}

/// A reply in progress.
pub type Later = std::pin::Pin<Box<dyn Future<Output = Result<Reply, Error>> + Send>>;

/// The reply to a trip.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The values.
    pub data: Data,
    /// Trips it took: 1, or more where a pipeline was too long for one or went to several servers.
    pub trips: u32,
    /// Commands it sent.
    pub commands: u32,
    /// Values that could not be read and are null, or left out of their list.
    pub malformed: MalformedValues,
}

impl Reply {
    /// A reply of which every value could be read.
    pub fn whole(data: Data, trips: u32, commands: u32) -> Reply {
        Reply { data, trips, commands, malformed: MalformedValues::default() }
    }
}

/// The values of a reply that could not be read: malformed ones, and keys of another type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MalformedValues {
    /// The number of them.
    pub count: u32,
    /// A sentence about the first: its key, its field and the value found.
    pub first: Option<Arc<str>>,
}

impl MalformedValues {
    /// Adds those of another reply.
    pub fn add(&mut self, other: MalformedValues) {
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.take().or(other.first);
    }
}

impl Reply {
    /// A reply that took no trip.
    pub fn of(data: Data) -> Reply {
        Reply::whole(data, 0, 0)
    }

    /// The values, and the reply without them.
    pub(crate) fn split(self) -> (Data, Reply) {
        (self.data, Reply { data: Data::Columns(Vec::new()), ..self })
    }

    /// The trips and malformed values of both, and the values of the second.
    pub(crate) fn and(mut self, other: Reply) -> Reply {
        self.malformed.add(other.malformed);
        let (trips, commands) = (self.trips + other.trips, self.commands + other.commands);
        Reply { data: other.data, trips, commands, malformed: self.malformed }
    }
}

/// The values of a reply.
#[derive(Clone, Debug)]
pub enum Data {
    /// For [`Read::Fields`]: one column per field, one row per key.
    Columns(Vec<Column>),
    /// For [`Read::List`] and [`Read::Scored`].
    Lists(Lists),
}

impl Data {
    /// Checks that there are this many rows, and that the lengths of lists are consistent.
    fn assert_rows(&self, rows: usize) {
        match self {
            Data::Columns(columns) => assert!(columns.iter().all(|column| column.len() == rows)),
            Data::Lists(lists) => {
                assert_eq!(lists.lens.len(), rows);
                assert_eq!(lists.lens.iter().map(|len| *len as usize).sum::<usize>(), lists.ids.len());
                assert!(lists.scores.as_ref().is_none_or(|scores| scores.len() == lists.ids.len()));
            }
        }
    }
}

/// Lists of ids, one per key, in the order of the keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// The length of each list.
    pub lens: Vec<u32>,
    /// The ids of all lists.
    pub ids: Vec<i64>,
    /// Their scores, for [`Read::Scored`].
    pub scores: Option<Vec<f64>>,
}

/// The reason why a trip failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// There is no connection.
    #[error("no connection to {endpoint}: {cause}")]
    Connect {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The cause.
        cause: Arc<str>,
    },
    /// The reply did not come in time.
    #[error("{endpoint} did not answer within {after:?}")]
    Timeout {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The timeout.
        after: Duration,
    },
    /// The connection ended before the reply was complete.
    #[error("the connection to {endpoint} broke before its reply was complete: {cause}")]
    Broken {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The cause.
        cause: Arc<str>,
    },
    /// The server cannot answer now: it is overloaded, still loading, or without its leader.
    #[error("{endpoint} cannot answer now: {message}")]
    Busy {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The server's message.
        message: String,
        /// The pause that it requests, if any.
        retry_after: Option<Duration>,
    },
    /// The server answered with an error.
    #[error("{endpoint} refused `{command}`: {message}")]
    Refused {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The command and its key.
        command: String,
        /// Its message.
        message: String,
    },
    /// The server answered with something other than requested.
    #[error("{endpoint} answered `{command}` with {found}, not {expected}")]
    Malformed {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The command and its key.
        command: String,
        /// The value that came.
        found: String,
        /// The value that was expected.
        expected: &'static str,
    },
    /// The reply holds more than a request may make.
    #[error("the reply to `{command}` of {endpoint} is too long: {cause}")]
    TooLong {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The command and its key, or the pattern of its keys.
        command: String,
        /// The bound that it would exceed.
        #[source]
        cause: OverBudget,
    },
    /// There are too few remembered values, or they are too old.
    #[error("of `{command}`, {known} of {asked} keys are remembered from the last {max_age:?}: too few")]
    Forgotten {
        /// The command and the pattern of its keys.
        command: String,
        /// The maximum age.
        max_age: Duration,
        /// The number of keys with a remembered value.
        known: u32,
        /// The number of requested keys.
        asked: u32,
    },
    /// An error from a capture.
    #[error("{message}")]
    Recorded {
        /// Its message.
        message: Arc<str>,
        /// Whether a retry might have succeeded.
        severity: Severity,
    },
    /// A replay makes a read that its capture does not have.
    #[error("the capture has no reply of {endpoint} to `{command}`")]
    NotCaptured {
        /// The endpoint.
        endpoint: Arc<str>,
        /// The command and its key.
        command: String,
    },
}

impl Error {
    /// True if no fallback may cover it, because the replayed request's real reply is unknown.
    pub(crate) fn forbids_fallbacks(&self) -> bool {
        matches!(self, Error::NotCaptured { .. })
    }

    /// The number of trips that failed with this error: 1 if a request was sent, 0 if none left.
    pub fn trips(&self) -> u32 {
        match self {
            Error::Timeout { .. } | Error::Broken { .. } | Error::Busy { .. } => 1,
            Error::Refused { .. } | Error::Malformed { .. } | Error::TooLong { .. } => 1,
            Error::Connect { .. } | Error::Forgotten { .. } => 0,
            Error::Recorded { .. } | Error::NotCaptured { .. } => 0,
        }
    }
}

impl Classified for Error {
    fn severity(&self) -> Severity {
        match self {
            Error::Connect { .. } | Error::Timeout { .. } | Error::Broken { .. } => Severity::Transient,
            Error::Busy { retry_after, .. } => Severity::Throttled { retry_after: *retry_after },
            Error::Refused { .. } | Error::Malformed { .. } => Severity::Permanent,
            Error::TooLong { .. } | Error::Forgotten { .. } | Error::NotCaptured { .. } => {
                Severity::Permanent
            }
            Error::Recorded { severity, .. } => *severity,
        }
    }
}
