//! Values on their way out.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use anabranch_content::{Address, Error as StoreError, Lease, Memo, Reader};
use bytes::Bytes;
use futures_util::Stream;

use crate::closure::{Closure, Found};
use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;
use crate::function::Chunks;
use crate::run::{Counts, materialise};
use crate::value::{StoredValue, ValueBody, ValueChunks};

/// What is wanted of a value, and until when.
#[derive(Clone, Debug)]
pub struct Get {
    /// Which bytes of it. Default all.
    pub range: Range<u64>,
    /// When it must be there. Default whenever it is.
    pub deadline: Option<Instant>,
}

impl Default for Get {
    fn default() -> Get {
        Get { range: 0..u64::MAX, deadline: None }
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The address is that of a blob.
    Blob,
    /// It was computed before.
    Memo,
    /// It was computed now, with so many recipes, fused ones included.
    Computed(u32),
}

/// A value.
#[derive(Debug)]
pub struct Got {
    /// The blob that the address came to; the address itself if it is a blob's.
    pub output: Address,
    /// How many bytes the whole value has.
    pub size: u64,
    /// Where it came from.
    pub source: Source,
    /// Recipes that need not run, because their function had run before on equal inputs (early cut-off).
    pub cut_off: u32,
    body: Body,
    /// Keeps it from being collected while it is read.
    _lease: Option<Arc<Lease>>,
}

#[derive(Debug)]
enum Body {
    Bytes(Option<Bytes>),
    /// So many of them were given.
    Chunks(Arc<ValueChunks>, usize),
    Reader(Box<Reader>),
}

impl Got {
    /// The next piece, verified; nothing at the end.
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

    /// All pieces that are wanted, if they are in memory.
    pub fn whole(&mut self) -> Option<Bytes> {
        match &mut self.body {
            Body::Bytes(bytes) => Some(bytes.take().unwrap_or_default()),
            Body::Chunks(..) | Body::Reader(_) => None,
        }
    }

    /// All pieces as one.
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

/// Values up to this size are answered as one piece.
const WHOLE_MOST: u64 = 64 << 10;

impl Executor {
    /// The value of an address: a blob's bytes, or what a recipe comes to, computed unless that was done before.
    ///
    /// What a recipe came to is written by then, so that a process that dies does not take it along.
    /// One computation serves all who ask at the same time, and stops when the last of them drops this future.
    /// Poll it when it is woken: as long as it is not dropped, others may wait for what it computes.
    pub async fn get(&self, address: &Address, terms: &Get) -> Result<Got, Error> {
        let inner = &self.inner;
        inner.count(&inner.counters.gets, 1);
        if let Some(got) = self.hit(address, terms).await? {
            return Ok(got);
        }
        // An alias is computed and remembered under the recipe's own address.
        let address = &inner.store.alias(address).await?.unwrap_or(*address);
        let mut losses = Losses::new(inner.config.rounds);
        loop {
            let (value, source, cut_off) = match Closure::find(inner, address, terms.deadline).await? {
                Found::Blob(value) => (value, Source::Blob, 0),
                Found::Memo(value) => (value, Source::Memo, 0),
                Found::Closure(closure) => match self.compute(address, *closure, terms.deadline).await {
                    Ok((value, counts)) => (value, Source::Computed(counts.computed), counts.cut_off),
                    Err(error) => {
                        losses.count(error)?;
                        continue;
                    }
                },
            };
            if !matches!(source, Source::Computed(_)) {
                inner.count(&inner.counters.hits, 1);
            }
            match self.body(&value, &terms.range).await {
                Ok(Some(body)) => {
                    self.written(address).await?;
                    let StoredValue { output, size, lease, .. } = value;
                    return Ok(Got { output, size, source, cut_off, body, _lease: lease });
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
    ) -> Result<(StoredValue, Counts), Error> {
        let (address, recipes) = (*address, closure.nodes.len() as u64);
        self.inner.events.tell(|| Event::Begun { address, recipes });
        materialise(&self.inner, closure, deadline).await
    }

    /// A small value that is remembered and there.
    async fn hit(&self, address: &Address, terms: &Get) -> Result<Option<Got>, Error> {
        let inner = &self.inner;
        let Some(Memo { output, size, .. }) = inner.store.recall_now(address) else { return Ok(None) };
        if size > WHOLE_MOST {
            return Ok(None);
        }
        let value = StoredValue::stored(output, size, None);
        let body = match self.body(&value, &terms.range).await {
            Err(error) if lost(&error).is_some() => None,
            other => other?,
        };
        if body.is_some() {
            self.written(address).await?;
        }
        Ok(body.map(|body| {
            inner.count(&inner.counters.hits, 1);
            Got { output, size, source: Source::Memo, cut_off: 0, body, _lease: None }
        }))
    }

    /// Waits until a value is written. A value that the disk has no room for is answered from memory.
    async fn written(&self, address: &Address) -> Result<(), Error> {
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

/// Values that went away while a get needed them: damaged, or collected. Each is computed again, which may uncover the
/// next. A value that goes away again and again is given up.
struct Losses {
    seen: HashSet<Address>,
    again: u32,
    rounds: u32,
}

impl Losses {
    fn new(rounds: u32) -> Losses {
        Losses { seen: HashSet::new(), again: 0, rounds: rounds.max(1) }
    }

    /// Counts a loss; any other error, and the last loss, are the caller's.
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

/// The value that went away although it had been there.
fn lost(error: &Error) -> Option<Address> {
    match error {
        Error::Store(StoreError::Corrupt { address, .. } | StoreError::Missing { address }) => Some(*address),
        _ => None,
    }
}
