//! Work on the parts of a large file: on several of the store's threads at a time, with the results in order.

use std::collections::VecDeque;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::Error;
use crate::io::{Job, ParkedValue, Pool};

/// The number of parts of one file that are worked on at a time: one per core, at most 16. The store's threads bound all
/// files together.
pub(super) static LANES: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get).min(16));

/// The length of a part: whole pieces, so few that a thread is free for other work again after some milliseconds.
pub(super) const PART_LEN: u64 = 8 << 20;

/// The parts of a file, with the work that is done on each. Dropping it skips the parts that no thread has begun.
pub(super) struct FileParts<W: Send + Sync + 'static, T: Send + 'static> {
    pool: Arc<Pool>,
    worker: ParkedValue<Arc<W>>,
    work: fn(&W, Range<u64>) -> Result<T, Error>,
    /// The range that no thread has begun.
    rest: Range<u64>,
    begun: VecDeque<Job<Result<T, Error>>>,
}

impl<W: Send + Sync + 'static, T: Send + 'static> FileParts<W, T> {
    pub(super) fn new(
        pool: &Arc<Pool>,
        worker: W,
        rest: Range<u64>,
        work: fn(&W, Range<u64>) -> Result<T, Error>,
    ) -> FileParts<W, T> {
        let (pool, worker) = (Arc::clone(pool), pool.park(Arc::new(worker)));
        FileParts { pool, worker, work, rest, begun: VecDeque::new() }
    }

    /// The result of the next part; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<T>, Error> {
        while self.begun.len() < *LANES && !self.rest.is_empty() {
            let place = self.pool.place().await?;
            let part = self.rest.start..self.rest.end.min(self.rest.start + PART_LEN);
            self.rest.start = part.end;
            let (worker, work) = (Arc::clone(self.worker.get()), self.work);
            self.begun.push_back(place.start(move || work(&worker, part)));
        }
        match self.begun.pop_front() {
            Some(job) => Ok(Some(job.await??)),
            None => Ok(None),
        }
    }

    /// The worker, to end the work with.
    pub(super) fn worker(&self) -> &Arc<W> {
        self.worker.get()
    }
}
