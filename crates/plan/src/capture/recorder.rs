//! Keeps what a request reads, while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::replies::Exchange;
use crate::call::Call;
use crate::source::{Error, Fetch, Keys, Reads, Reply};

/// Keeps what one request reads, up to a bound. Past it all is forgotten: half a capture is none.
#[derive(Debug)]
pub(crate) struct Recorder {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    exchanges: Vec<Exchange>,
    bytes: usize,
}

/// A read under way.
pub(crate) struct Watch {
    recorder: Arc<Recorder>,
    call: Arc<Call>,
    reader: u32,
    keys: Keys,
    began: Instant,
}

impl Recorder {
    /// One that keeps at most so many bytes.
    pub(super) fn new(most: usize) -> Arc<Recorder> {
        Arc::new(Recorder { most, kept: Mutex::default() })
    }

    /// Looks on while a reader reads.
    pub(crate) fn watch(self: &Arc<Recorder>, reader: u32, keys: &Keys, call: &Arc<Call>) -> Watch {
        let (recorder, call, began) = (Arc::clone(self), Arc::clone(call), call.clock.now());
        Watch { recorder, call, reader, keys: keys.clone(), began }
    }

    /// What was kept, in the order in which replies came; how many bytes it would have been if that is too much.
    pub(super) fn take(&self) -> Result<Vec<Exchange>, usize> {
        let kept = std::mem::take(&mut *self.lock());
        if kept.bytes > self.most { Err(kept.bytes) } else { Ok(kept.exchanges) }
    }

    fn keep(&self, exchange: Exchange) {
        let mut kept = self.lock();
        kept.bytes = kept.bytes.saturating_add(weight(&exchange));
        if kept.bytes <= self.most {
            kept.exchanges.push(exchange);
        } else {
            kept.exchanges = Vec::new();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// The same fetch; what comes of it is kept. One that is given up is not.
    pub(crate) fn over(self, fetch: Fetch) -> Fetch {
        match fetch {
            Fetch::Ready(reply) => {
                self.end(&reply);
                Fetch::Ready(reply)
            }
            Fetch::Later(reply) => Fetch::Later(Box::pin(async move {
                let reply = reply.await;
                self.end(&reply);
                reply
            })),
        }
    }

    fn end(self, reply: &Result<Reply, Error>) {
        let took = self.call.clock.now().saturating_duration_since(self.began);
        let stale = match &self.call.reads {
            Reads::Stale(stale) => Some(stale.oldest()),
            _ => None,
        };
        let Watch { recorder, reader, keys, .. } = self;
        recorder.keep(Exchange { reader, keys, reply: reply.clone(), took, stale });
    }
}

/// About how many bytes an exchange takes, in memory and in the store.
fn weight(exchange: &Exchange) -> usize {
    const EACH: usize = 64;
    let reply = match &exchange.reply {
        Ok(reply) => reply.data.weight(),
        Err(error) => error.to_string().len(),
    };
    EACH + exchange.keys.weight() + reply
}

/// What a request may take by default: far more than ranking requests read.
pub(super) const MOST_BYTES: usize = 64 << 20;
