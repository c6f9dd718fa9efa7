//! Reads a blob as a stream: on the store's threads, ahead of the consumer.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{BlobReader, Error, Files, Name, PIECE_LEN};
use crate::io::{Job, ParkedValue, Pool, QueueSlot};

/// Verified pieces of a blob, in order. Holds two pieces that are read ahead, besides those the consumer holds, and the
/// values of one span: under 1.1 MiB, and 32 bytes for each 64 MiB of the blob.
#[derive(Debug)]
pub(crate) struct Stream {
    pool: Arc<Pool>,
    reading: ParkedValue<Arc<BlobReader>>,
    /// The range that no thread has begun to read.
    rest: Range<u64>,
    ahead: VecDeque<Job<Result<Bytes, Error>>>,
}

/// The number of pieces read ahead: while the consumer wakes up for one, a thread reads the other.
const AHEAD: usize = 2;

impl Stream {
    /// Opens a blob of `len` bytes, to stream a range of it, as far as it goes.
    pub(crate) async fn open(
        pool: &Arc<Pool>,
        files: &Arc<Files>,
        name: Name,
        len: u64,
        range: Range<u64>,
    ) -> Result<Stream, Error> {
        let files = Arc::clone(files);
        let reading = pool.run(move || BlobReader::open(&files, name, len)).await??;
        let (pool, reading) = (Arc::clone(pool), pool.park(Arc::new(reading)));
        let rest = range.start.min(len)..range.end.min(len);
        let mut stream = Stream { pool, reading, rest, ahead: VecDeque::new() };
        stream.read_ahead();
        Ok(stream)
    }

    /// The next piece; `None` at the end and after an error. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let piece = self.wait().await.transpose();
        match piece {
            Some(Ok(_)) => self.read_ahead(),
            _ => self.end(),
        }
        piece
    }

    async fn wait(&mut self) -> Result<Option<Bytes>, Error> {
        if self.ahead.is_empty() && !self.rest.is_empty() {
            let place = self.pool.place().await?;
            self.start(place);
        }
        let Some(job) = self.ahead.front_mut() else { return Ok(None) };
        let piece = job.await;
        self.ahead.pop_front();
        Ok(Some(piece??))
    }

    fn end(&mut self) {
        self.rest = 0..0;
        self.ahead.clear();
    }

    /// Starts to read the next pieces, unless the pool's queue is full.
    fn read_ahead(&mut self) {
        while self.ahead.len() < AHEAD
            && !self.rest.is_empty()
            && let Some(place) = self.pool.try_place()
        {
            self.start(place);
        }
    }

    /// Pieces end at multiples of their length, so that each group is read once.
    fn start(&mut self, place: QueueSlot) {
        let piece = PIECE_LEN as u64;
        let end = (self.rest.start / piece + 1).saturating_mul(piece).min(self.rest.end);
        let range = self.rest.start..end;
        self.rest.start = end;
        let reading = Arc::clone(self.reading.get());
        self.ahead.push_back(place.start(move || reading.read(range)));
    }
}
