//! The reads of a replay, answered from the recording.

use std::sync::Arc;

use super::masking::Masking;
use super::model::Model;
use super::replies::Replies;
use anabranch_plan::Plan;
use anabranch_plan::inspect::{ReadRequest, Recording};
use anabranch_plan::source::{Error, Keys, Reader, Reply};

/// Answers the reads of a replay.
pub(super) struct RecordedReplies {
    /// The ids of the endpoints, in the order of the registries.
    pub(super) endpoints: Arc<[Arc<str>]>,
    pub(super) from: RecordedFrom,
}

/// The way a reply is found.
#[derive(Clone)]
pub(super) enum RecordedFrom {
    /// The very read that was made: for the plan that was captured.
    Same(Arc<Replies>),
    /// Any reply that holds the values: for other plans.
    Any(Arc<Model>),
    /// Any reply that holds the values, with pseudonyms in it: for captures that may not hold some values.
    Masked(Arc<Masking>),
}

impl Recording for RecordedReplies {
    fn read(&self, request: &ReadRequest<'_>) -> Result<Reply, Error> {
        let ReadRequest { reader, keys, stale, .. } = request;
        let endpoint = &self.endpoints[reader.endpoint];
        match &self.from {
            RecordedFrom::Same(replies) => self.same(replies, reader, keys, *stale),
            RecordedFrom::Any(model) => model.read(endpoint, reader, keys),
            RecordedFrom::Masked(masking) => masking.read(endpoint, request),
        }
    }
}

impl RecordedReplies {
    /// The replies of a plan's endpoints, found this way.
    pub(super) fn new(plan: &Plan, from: RecordedFrom) -> RecordedReplies {
        let endpoints = plan.compiled().registries.endpoints.iter();
        RecordedReplies { endpoints: endpoints.map(|endpoint| endpoint.id.as_str().into()).collect(), from }
    }

    /// Of several equal reads, the last one counts, because the others were retried.
    fn same(&self, replies: &Replies, reader: &Reader, keys: &Keys, stale: bool) -> Result<Reply, Error> {
        let mut made = replies.exchanges.iter().rev();
        let found = made
            .find(|made| made.reader == reader.number && made.stale.is_some() == stale && made.keys == *keys);
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

/// The key at an index, in the form of the store; `None` for a row without a key.
pub(super) fn whole(affixes: Option<(&str, &str)>, keys: &Keys, at: usize) -> Option<String> {
    match keys {
        Keys::Ids(ids) => {
            let (prefix, suffix) = affixes.unwrap_or_default();
            ids.get(at).map(|id| format!("{prefix}{id}{suffix}"))
        }
        Keys::Whole(keys) => keys.get(at)?.as_ref().map(|key| key.to_string()),
    }
}
