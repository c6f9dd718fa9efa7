//! Reads of a replay, answered from what was recorded.

use std::sync::Arc;

use super::replies::Replies;
use crate::call::Call;
use crate::source::{self, Error, Fetch, Keys, Reader, Reply};

/// What answers the reads of a replay.
pub(crate) struct Recorded {
    /// The ids of the endpoints, in the order of the registries.
    pub(super) endpoints: Arc<[Arc<str>]>,
    pub(super) replies: Arc<Replies>,
    /// Whether it stands for a source that did not make it.
    pub(super) stale: bool,
}

impl Recorded {
    /// The reply to a reader.
    pub(crate) fn read(&self, reader: &Reader, keys: &Keys, call: &Arc<Call>) -> Fetch {
        let reply = self.same(reader, keys);
        source::count(call, &reply);
        Fetch::Ready(reply)
    }

    /// Of several that were made, the last: the others were tried again.
    fn same(&self, reader: &Reader, keys: &Keys) -> Result<Reply, Error> {
        let mut made = self.replies.exchanges.iter().rev();
        let found = made.find(|made| {
            made.reader == reader.number && made.stale.is_some() == self.stale && made.keys == *keys
        });
        match found {
            Some(made) => made.reply.clone(),
            None => Err(not_captured(&self.endpoints[reader.endpoint], reader, keys)),
        }
    }
}

/// The error for keys that were not read.
pub(super) fn not_captured(endpoint: &Arc<str>, reader: &Reader, keys: &Keys) -> Error {
    let first = match (keys, reader.pattern.affixes()) {
        (Keys::Ids(ids), Some((prefix, suffix))) => ids.first().map(|id| format!("{prefix}{id}{suffix}")),
        (Keys::Whole(keys), _) => keys.iter().flatten().next().map(|key| key.to_string()),
        (Keys::Ids(ids), None) => ids.first().map(i64::to_string),
    };
    let more = match keys.commands() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let command = format!("{} {}{more}", reader.read.command(), first.unwrap_or_default());
    Error::NotCaptured { endpoint: Arc::clone(endpoint), command }
}
