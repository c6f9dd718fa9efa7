//! Captures of some requests of a service, taken as they come.
//!
//! A request that was chosen is recorded in memory, and its capture waits in a queue until [`Sampler::write`] gets to it.
//! No request waits for a capture: captures that are too many or too large are dropped, and counted.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anabranch_content::Store;
use anabranch_text::Problem;
use tokio::sync::Notify;

use super::error::Error;
use super::mask::Masks;
use super::replay::Replayer;
use super::sets;
use super::take::{SharedParts, UnsavedCapture, run_recorded};
use anabranch_plan::Answer;
use anabranch_plan::Error as PlanError;
use anabranch_plan::Registries;
use anabranch_plan::Request;
use anabranch_plan::inspect::Compiled;
use anabranch_plan::op::Ops;
use anabranch_plan::{Plan, RunOptions};

/// The captures of an engine's requests, and their limits.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// The destination of captures.
    pub store: Store,
    set: String,
    /// One request in this many is captured.
    pub one_in: NonZeroU64,
    /// The most captures per second.
    pub per_second: NonZeroU32,
    /// The most bytes that a captured request may read.
    pub most_bytes: usize,
    /// The most bytes of all captures of the engine. Parts that captures share count once, with the first.
    pub total_bytes: u64,
    /// The most captures that wait to be written.
    pub most_waiting: NonZeroUsize,
    masks: Arc<Masks>,
}

impl Sampling {
    /// One request in a thousand, at most ten per second, 1 MiB each and 1 GiB together, 16 waiting, nothing masked.
    pub fn new(store: Store, set: &str) -> Result<Sampling, Error> {
        sets::check_name(set)?;
        Ok(Sampling {
            store,
            set: set.to_owned(),
            one_in: NonZeroU64::MIN.saturating_add(999),
            per_second: NonZeroU32::MIN.saturating_add(9),
            most_bytes: 1 << 20,
            total_bytes: 1 << 30,
            most_waiting: NonZeroUsize::MIN.saturating_add(15),
            masks: Arc::default(),
        })
    }

    /// The same with pseudonyms for the values of these keys, as they are read, and of these parameters. Equal values
    /// have equal pseudonyms, and the key that creates them is not stored anywhere. The error names the ones that
    /// cannot be masked.
    pub fn masking(
        self,
        keys: &[String],
        params: &[String],
        registries: &Registries,
    ) -> Result<Sampling, Problem> {
        let masks = Masks::new(keys, params, registries);
        let masks = masks.map_err(|what| Problem::new("masked captures", what))?;
        Ok(Sampling { masks: Arc::new(masks), ..self })
    }
}

/// The counters of requests that were chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Captures written.
    pub written: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Chosen, but there were enough in that second.
    pub dropped_rate: u64,
    /// They read too much.
    pub dropped_size: u64,
    /// Too many captures were waiting.
    pub dropped_queue: u64,
    /// All that captures may be was used up.
    pub dropped_total: u64,
    /// The request runs differently with pseudonyms for the masked values.
    pub dropped_masked: u64,
    /// The store failed.
    pub dropped_store: u64,
}

/// Answers requests, captures some of them, and keeps the captures until they are written.
///
/// The service answers with [`run`](Sampler::run) in place of [`Plan::run_with`], and polls [`write`](Sampler::write)
/// beside its requests.
pub struct Sampler {
    sampling: Sampling,
    replayer: Replayer,
    seed: u64,
    requests: AtomicU64,
    second: Mutex<(Option<Instant>, u32)>,
    /// At most `most_waiting` captures.
    waiting: Mutex<VecDeque<UnsavedCapture>>,
    more: Notify,
    counts: [AtomicU64; 8],
    /// The addressed parts of the plans that captures were taken of; those of plans that are gone go with the next new one.
    fixed: Mutex<Vec<(Weak<Compiled>, Arc<SharedParts>)>>,
}

#[derive(Clone, Copy)]
enum Count {
    Written,
    Bytes,
    Rate,
    Size,
    Queue,
    Total,
    Masked,
    Store,
}

impl Sampler {
    /// A sampler for plans with these ops. The seed decides which requests are chosen.
    pub fn new(sampling: Sampling, ops: Ops, seed: u64) -> Sampler {
        Sampler {
            sampling,
            replayer: Replayer::new(ops),
            seed,
            requests: AtomicU64::new(0),
            second: Mutex::default(),
            waiting: Mutex::default(),
            more: Notify::new(),
            counts: Default::default(),
            fixed: Mutex::default(),
        }
    }

    /// Answers a request, and captures it if it is chosen.
    pub async fn run(
        &self,
        plan: &Plan,
        request: Request,
        options: &RunOptions,
    ) -> Result<Answer, PlanError> {
        match self.chooses(plan.engine().runs().clock().now()) {
            true => self.capture(plan, request, options).await,
            false => plan.run_with(request, options).await,
        }
    }

    /// Answers a request and captures it: one that [`chooses`](Sampler::chooses) chose.
    pub async fn capture(
        &self,
        plan: &Plan,
        request: Request,
        options: &RunOptions,
    ) -> Result<Answer, PlanError> {
        let (answer, taken) = run_recorded(plan, request, options, self.sampling.most_bytes).await;
        match taken {
            Ok(taken) => self.wait(taken),
            Err(_) => self.count(Count::Size, 1),
        }
        answer
    }

    /// Whether the next request is captured. This depends on the seed and not on the time.
    pub fn chooses(&self, now: Instant) -> bool {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        (self.seed, number).hash(&mut hasher);
        if !hasher.finish().is_multiple_of(self.sampling.one_in.get()) {
            return false;
        }
        let mut second = lock(&self.second);
        let is_over = |start: Instant| now.saturating_duration_since(start) >= Duration::from_secs(1);
        if second.0.is_none_or(is_over) {
            *second = (Some(now), 0);
        }
        second.1 += 1;
        let fits = second.1 <= self.sampling.per_second.get();
        if !fits {
            self.count(Count::Rate, 1);
        }
        fits
    }

    fn wait(&self, taken: UnsavedCapture) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= self.sampling.most_waiting.get() {
            self.count(Count::Queue, 1);
            return;
        }
        waiting.push_back(taken);
        drop(waiting);
        self.more.notify_one();
    }

    /// Writes captures forever as they are taken. The owner polls it beside its requests, and drops it to stop.
    pub async fn write(&self) {
        loop {
            self.flush().await;
            self.more.notified().await;
        }
    }

    /// Writes the waiting captures. Failed writes are counted.
    pub async fn flush(&self) {
        loop {
            let taken = lock(&self.waiting).pop_front();
            let Some(taken) = taken else { return };
            let fixed = self.fixed(taken.plan());
            let taken = taken.sharing(fixed);
            let mut writing = CaptureWrite { sampler: self, taken: Some(taken) };
            let taken = writing.taken.as_ref().expect("it was put there");
            match self.write_one(taken).await {
                Ok(bytes) => {
                    self.count(Count::Written, 1);
                    self.count(Count::Bytes, bytes);
                }
                Err(count) => self.count(count, 1),
            }
            writing.taken = None;
        }
    }

    /// Writes a capture; the bytes by which the store has grown.
    async fn write_one(&self, taken: &UnsavedCapture) -> Result<u64, Count> {
        let masks = &self.sampling.masks;
        let masked = match masks.is_empty() {
            true => None,
            false => {
                let made = taken.masked(masks, &self.replayer).await;
                Some(made.ok().flatten().ok_or(Count::Masked)?)
            }
        };
        let taken = masked.as_ref().unwrap_or(taken);
        let encoded = taken.encode();
        let bytes = encoded.bytes();
        if self.counts[Count::Bytes as usize].load(Ordering::Relaxed) + bytes > self.sampling.total_bytes {
            return Err(Count::Total);
        }
        let written = taken.put(encoded, &self.sampling.store, Some(&self.sampling.set)).await;
        written.map(|(_, shared)| bytes + shared).map_err(|_| Count::Store)
    }

    fn count(&self, what: Count, by: u64) {
        self.counts[what as usize].fetch_add(by, Ordering::Relaxed);
    }

    /// The addressed parts that captures of a plan share.
    fn fixed(&self, plan: &Plan) -> Arc<SharedParts> {
        let compiled = plan.compiled();
        let mut known = lock(&self.fixed);
        if let Some((_, fixed)) = known.iter().find(|(plan, _)| plan.as_ptr() == Arc::as_ptr(compiled)) {
            return Arc::clone(fixed);
        }
        known.retain(|(plan, _)| plan.strong_count() > 0);
        let fixed = Arc::new(SharedParts::new(compiled));
        known.push((Arc::downgrade(compiled), Arc::clone(&fixed)));
        fixed
    }

    /// The fates of the requests that were chosen.
    pub fn counts(&self) -> SampleCounts {
        let of = |what: Count| self.counts[what as usize].load(Ordering::Relaxed);
        SampleCounts {
            written: of(Count::Written),
            bytes: of(Count::Bytes),
            dropped_rate: of(Count::Rate),
            dropped_size: of(Count::Size),
            dropped_queue: of(Count::Queue),
            dropped_total: of(Count::Total),
            dropped_masked: of(Count::Masked),
            dropped_store: of(Count::Store),
        }
    }
}

/// A capture that is being written. If the writer stops, the capture waits again, before all others. The parts that
/// were already written are found then.
struct CaptureWrite<'a> {
    sampler: &'a Sampler,
    taken: Option<UnsavedCapture>,
}

impl Drop for CaptureWrite<'_> {
    fn drop(&mut self) {
        let Some(taken) = self.taken.take() else { return };
        let mut waiting = lock(&self.sampler.waiting);
        if waiting.len() >= self.sampler.sampling.most_waiting.get() {
            self.sampler.count(Count::Queue, 1);
        } else {
            waiting.push_front(taken);
        }
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler").field("sampling", &self.sampling).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
