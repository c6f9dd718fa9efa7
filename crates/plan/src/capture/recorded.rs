//! Reads of a replay, answered from what was recorded.

use std::sync::Arc;

use anabranch_rows::Rows;

use super::masked::{Asking, Masking};
use super::model::Model;
use super::replies::Replies;
use crate::call::Call;
use crate::source::{self, Error, Fetch, Keys, Reader, Reply};

/// What answers the reads of a replay.
pub(crate) struct Recorded {
    /// The ids of the endpoints, in the order of the registries.
    pub(super) endpoints: Arc<[Arc<str>]>,
    pub(super) from: From,
    /// Whether it stands for a source that did not make it.
    pub(super) stale: bool,
}

/// How a reply is found.
#[derive(Clone)]
pub(super) enum From {
    /// The very read that was made: for the plan that was captured.
    Same(Arc<Replies>),
    /// Whatever holds the answer: for other plans.
    Any(Arc<Model>),
    /// Whatever holds the answer, with pseudonyms in it: for captures that may not hold some values.
    Masked(Arc<Masking>),
}

impl Recorded {
    /// The same, for reads that stand for some which did not make it.
    pub(crate) fn stale(&self) -> Recorded {
        Recorded { endpoints: Arc::clone(&self.endpoints), from: self.from.clone(), stale: true }
    }

    /// The reply to a reader.
    pub(crate) fn read(&self, reader: &Reader, rows: &Rows, keys: &Keys, call: &Arc<Call>) -> Fetch {
        let endpoint = &self.endpoints[reader.endpoint];
        let reply = match &self.from {
            From::Same(replies) => self.same(replies, reader, keys),
            From::Any(model) => model.read(endpoint, reader, keys),
            From::Masked(masking) => {
                masking.read(&Asking { endpoint, reader, rows, keys, call, stale: self.stale })
            }
        };
        source::count(call, &reply);
        Fetch::Ready(reply)
    }

    /// Of several that were made, the last: the others were tried again.
    fn same(&self, replies: &Replies, reader: &Reader, keys: &Keys) -> Result<Reply, Error> {
        let mut made = replies.exchanges.iter().rev();
        let found = made.find(|made| {
            made.reader == reader.number && made.stale.is_some() == self.stale && made.keys == *keys
        });
        match found {
            Some(made) => made.reply.clone(),
            None => Err(not_captured(&self.endpoints[reader.endpoint], reader, keys, 0)),
        }
    }
}

/// The error for keys that were not read, of which this is the first.
pub(super) fn not_captured(endpoint: &Arc<str>, reader: &Reader, keys: &Keys, first: usize) -> Error {
    let key = whole(reader.pattern.affixes(), keys, first).unwrap_or_default();
    let command = format!("{} {key}", reader.read.command());
    Error::NotCaptured { endpoint: Arc::clone(endpoint), command }
}

/// The key at a place as the store has it; nothing where a row has none.
pub(super) fn whole(affixes: Option<(&str, &str)>, keys: &Keys, at: usize) -> Option<String> {
    match keys {
        Keys::Ids(ids) => {
            let (prefix, suffix) = affixes.unwrap_or_default();
            ids.get(at).map(|id| format!("{prefix}{id}{suffix}"))
        }
        Keys::Whole(keys) => keys.get(at)?.as_ref().map(|key| key.to_string()),
    }
}
