//! The layer that reports reads to an observer.

use std::sync::Arc;
use std::time::Instant;

use super::layers::Reader;
use super::{Error, Fetch, Keys, Reply};
use crate::call::{Answers, Call};
use crate::inspect::{ObservedRead, Observer};

/// A read in progress that is reported to an observer when it is done. A cancelled one is not reported.
pub(super) struct Watch {
    observer: Arc<dyn Observer>,
    reader: Reader,
    keys: Keys,
    call: Arc<Call>,
    began: Instant,
}

impl Watch {
    pub(super) fn new(observer: Arc<dyn Observer>, reader: &Reader, keys: &Keys, call: &Arc<Call>) -> Watch {
        let (reader, keys, call, began) = (reader.clone(), keys.clone(), Arc::clone(call), call.clock.now());
        Watch { observer, reader, keys, call, began }
    }

    /// The same fetch, shown when it is back.
    pub(super) fn over(self, fetch: Fetch) -> Fetch {
        match fetch {
            Fetch::Ready(reply) => {
                self.show(&reply);
                Fetch::Ready(reply)
            }
            Fetch::Later(reply) => Fetch::Later(Box::pin(async move {
                let reply = reply.await;
                self.show(&reply);
                reply
            })),
        }
    }

    fn show(&self, reply: &Result<Reply, Error>) {
        let stale = match &self.call.answers {
            Answers::Stale(stale) => Some(stale.used().age),
            Answers::Live | Answers::Recorded { .. } => None,
        };
        let took = self.call.clock.now().saturating_duration_since(self.began);
        self.observer.read(&ObservedRead { reader: &self.reader, keys: &self.keys, reply, took, stale });
    }
}
