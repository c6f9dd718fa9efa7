//! Gets: requests for values.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_content::{Address, Error as StoreError, Lease, Memo, Reader};
use bytes::Bytes;
use futures_util::Stream;

use crate::closure::{Closure, LookupOutcome};
use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;
use crate::function::Chunks;
use crate::run::{Counts, materialise};
use crate::trace::Trace;
use crate::value::{StoredValue, ValueBody, ValueChunks};

/// The requested bytes of a value, and the deadline.
#[derive(Clone, Debug)]
pub struct Get {
    /// The requested range of bytes. Default all.
    pub range: Range<u64>,
    /// The time by which the value must be available. Default none.
    pub deadline: Option<Instant>,
}

impl Default for Get {
    fn default() -> Get {
        Get { range: 0..u64::MAX, deadline: None }
    }
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The address is that of a blob.
    Blob,
    /// It was computed before.
    Memo,
    /// It was computed now, from this many recipes, including fused ones.
    Computed(u32),
}

/// A value.
#[derive(Debug)]
pub struct FetchedValue {
    /// The address of the value's bytes; the requested address itself if it is a blob's.
    pub output: Address,
    /// The size of the whole value in bytes.
    pub size: u64,
    /// The origin of the value.
    pub source: Source,
    /// The number of recipes that did not run, because their function had already run on equal inputs (early cut-off).
    pub cut_off: u32,
    body: Body,
    /// Protects the value from collection while it is read.
    _lease: Option<Arc<Lease>>,
}

#[derive(Debug)]
enum Body {
    Bytes(Option<Bytes>),
    /// The chunks, and the number of those already returned.
    Chunks(Arc<ValueChunks>, usize),
    Reader(Box<Reader>),
}

impl FetchedValue {
    /// The next piece, verified; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        match &mut self.body {
            Body::Bytes(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Body::Chunks(kept, given) => {
                let chunk = kept.chunks.get(*given)?;
                *given += 1;
                Some(Ok(chunk.clone()))
            }
            Body::Reader(reader) => reader.next().await.map(|piece| piece.map_err(Error::from)),
        }
    }

    /// All requested bytes, if they are in memory in one piece.
    pub fn whole(&mut self) -> Option<Bytes> {
        match &mut self.body {
            Body::Bytes(bytes) => Some(bytes.take().unwrap_or_default()),
            Body::Chunks(..) | Body::Reader(_) => None,
        }
    }

    /// All pieces joined together.
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        if let Some(whole) = self.whole() {
            return Ok(whole);
        }
        let mut pieces = Chunks::new();
        while let Some(piece) = self.next().await {
            pieces.push(piece?);
        }
        Ok(crate::registry::join(pieces))
    }

    /// The pieces as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, Error>> + Send {
        futures_util::stream::unfold(self, |mut got| async move {
            let piece = got.next().await?;
            Some((piece, got))
        })
    }
}

/// Values up to this size are returned in one piece.
const WHOLE_MOST: u64 = 64 << 10;

/// Values that took less time to compute are returned before they are written. Waiting for the write would take longer
/// than computing the value again after a crash.
const WAIT_FROM: Duration = Duration::from_millis(1);

impl Executor {
    /// The value of an address: the bytes of a blob, or the output of a recipe, which is computed unless it is
    /// remembered.
    ///
    /// A value that took a millisecond or longer is written before this returns, so a crash of the process does not
    /// lose it. A cheaper value is written shortly afterwards. Concurrent gets of the same value share one computation,
    /// which stops when the last of them is dropped. Poll this future whenever it is woken: until it is dropped, others
    /// may wait for its results.
    pub async fn get(&self, address: &Address, terms: &Get) -> Result<FetchedValue, Error> {
        self.get_noting(address, terms, None).await
    }

    /// Like [`get`](Executor::get), with a trace of the computation. A trace reads the clock twice per recipe.
    pub async fn get_traced(
        &self,
        address: &Address,
        terms: &Get,
        trace: &mut Trace,
    ) -> Result<FetchedValue, Error> {
        self.get_noting(address, terms, Some(trace)).await
    }

    async fn get_noting(
        &self,
        address: &Address,
        terms: &Get,
        mut trace: Option<&mut Trace>,
    ) -> Result<FetchedValue, Error> {
        let inner = &self.inner;
        inner.count(&inner.counters.gets, 1);
        if let Some(got) = self.hit(address, terms).await? {
            return Ok(got);
        }
        let began = inner.engine.clock().now();
        // An alias is computed and remembered under the recipe's own address.
        let address = &inner.store.alias(address).await?.unwrap_or(*address);
        let mut losses = Losses::new(inner.config.rounds);
        loop {
            let (value, source, cut_off) = match Closure::find(inner, address, terms.deadline).await? {
                LookupOutcome::Blob(value) => (value, Source::Blob, 0),
                LookupOutcome::Memo(value) => (value, Source::Memo, 0),
                LookupOutcome::Closure(closure) => {
                    let trace = trace.as_deref_mut();
                    match self.compute(address, *closure, terms.deadline, trace).await {
                        Ok((value, counts)) => (value, Source::Computed(counts.computed), counts.cut_off),
                        Err(error) => {
                            losses.count(error)?;
                            continue;
                        }
                    }
                }
            };
            if !matches!(source, Source::Computed(_)) {
                inner.count(&inner.counters.hits, 1);
            }
            match self.body(&value, &terms.range).await {
                Ok(Some(body)) => {
                    self.written(address, inner.engine.clock().now().saturating_duration_since(began))
                        .await?;
                    let StoredValue { output, size, lease, .. } = value;
                    return Ok(FetchedValue { output, size, source, cut_off, body, _lease: lease });
                }
                Ok(None) => losses.count(StoreError::Missing { address: value.output }.into())?,
                Err(error) => losses.count(error)?,
            }
        }
    }

    async fn compute(
        &self,
        address: &Address,
        closure: Closure,
        deadline: Option<Instant>,
        trace: Option<&mut Trace>,
    ) -> Result<(StoredValue, Counts), Error> {
        let (address, recipes) = (*address, closure.nodes.len() as u64);
        self.inner.events.tell(|| Event::Begun { address, recipes });
        materialise(&self.inner, closure, deadline, trace).await
    }

    /// A small value that is remembered and available.
    async fn hit(&self, address: &Address, terms: &Get) -> Result<Option<FetchedValue>, Error> {
        let inner = &self.inner;
        let Some(Memo { output, size, cost, .. }) = inner.store.recall_now(address) else { return Ok(None) };
        if size > WHOLE_MOST {
            return Ok(None);
        }
        let value = StoredValue::stored(output, size, None);
        let body = match self.body(&value, &terms.range).await {
            Err(error) if lost(&error).is_some() => None,
            other => other?,
        };
        if body.is_some() {
            self.written(address, cost.cpu).await?;
        }
        Ok(body.map(|body| {
            inner.count(&inner.counters.hits, 1);
            FetchedValue { output, size, source: Source::Memo, cut_off: 0, body, _lease: None }
        }))
    }

    /// Waits until a value that took this long is written. If the disk is full, the value is returned from memory.
    async fn written(&self, address: &Address, took: Duration) -> Result<(), Error> {
        if took < WAIT_FROM {
            return Ok(());
        }
        match self.inner.store.written_of(address).await {
            Err(error) if error.is_disk_full() => Ok(()),
            written => Ok(written?),
        }
    }

    async fn body(&self, value: &StoredValue, range: &Range<u64>) -> Result<Option<Body>, Error> {
        let store = &self.inner.store;
        if value.size <= WHOLE_MOST {
            let bytes = match value.bytes() {
                Some(bytes) => Some(bytes.clone()),
                None => store.get(&value.output).await?,
            };
            return Ok(bytes.map(|bytes| {
                let len = bytes.len() as u64;
                let start = range.start.min(len);
                Body::Bytes(Some(bytes.slice(start as usize..range.end.clamp(start, len) as usize)))
            }));
        }
        if let ValueBody::Chunks(chunks) = &value.body
            && range.start == 0
            && range.end >= value.size
        {
            return Ok(Some(Body::Chunks(Arc::clone(chunks), 0)));
        }
        let reader = store.read(&value.output, range.clone()).await?;
        Ok(reader.map(|reader| Body::Reader(Box::new(reader))))
    }
}

/// Values that were removed while a get needed them, because they were damaged or collected. Each is computed again,
/// which may reveal the next loss. The get fails if the same values are removed repeatedly.
struct Losses {
    seen: HashSet<Address>,
    again: u32,
    rounds: u32,
}

impl Losses {
    fn new(rounds: u32) -> Losses {
        Losses { seen: HashSet::new(), again: 0, rounds: rounds.max(1) }
    }

    /// Counts a loss. Any other error, and a loss beyond the limit, is returned.
    fn count(&mut self, error: Error) -> Result<(), Error> {
        let Some(address) = lost(&error) else { return Err(error) };
        if !self.seen.insert(address) {
            self.again += 1;
        }
        match self.again >= self.rounds {
            true => Err(Error::Lost { address, rounds: self.again }),
            false => Ok(()),
        }
    }
}

/// The address of a value that was removed or damaged.
fn lost(error: &Error) -> Option<Address> {
    match error {
        Error::Store(StoreError::Corrupt { address, .. } | StoreError::Missing { address }) => Some(*address),
        _ => None,
    }
}
