//! Records the reads of a request while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_plan::inspect::{ObservedRead, Observer};
use anabranch_rows::Rows;

use super::replies::Exchange;

/// The bytes that a request may read and be captured, if nothing else is said: far more than ranking requests read.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Keeps the reads of one request, up to a bound. Past it nothing is kept: half a capture is of no use.
#[derive(Debug)]
pub(super) struct Recorder {
    most: usize,
    recording: Mutex<Exchanges>,
}

#[derive(Debug, Default)]
struct Exchanges {
    list: Vec<Exchange>,
    bytes: usize,
}

impl Recorder {
    /// A recorder that keeps at most `most` bytes.
    pub(super) fn new(most: usize) -> Arc<Recorder> {
        Arc::new(Recorder { most, recording: Mutex::default() })
    }

    /// The reads, in the order in which replies came; their bytes, if these are too many.
    pub(super) fn take(&self) -> Result<Vec<Exchange>, usize> {
        let recorded = std::mem::take(&mut *self.lock());
        if recorded.bytes > self.most { Err(recorded.bytes) } else { Ok(recorded.list) }
    }

    fn lock(&self) -> MutexGuard<'_, Exchanges> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Recorder {
    fn read(&self, read: &ObservedRead<'_>) {
        let mut recording = self.lock();
        recording.bytes = recording.bytes.saturating_add(weight(read));
        if recording.bytes <= self.most {
            recording.list.push(Exchange {
                reader: read.reader.number,
                keys: read.keys.clone(),
                reply: read.reply.clone(),
                took: read.took,
                stale: read.stale,
            });
        } else {
            recording.list = Vec::new();
        }
    }

    fn node(&self, _: usize, _: &Rows) {}
}

/// About how many bytes a read takes, in memory and in the store.
fn weight(read: &ObservedRead<'_>) -> usize {
    const EACH: usize = 64;
    let reply = match read.reply {
        Ok(reply) => reply.data.weight(),
        Err(error) => error.to_string().len(),
    };
    EACH + read.keys.weight() + reply
}
