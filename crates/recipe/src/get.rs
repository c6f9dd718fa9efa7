//! Values on their way out.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use anabranch_content::{Address, Lease, Memo, Reader};
use bytes::Bytes;
use futures_util::Stream;

use crate::closure::{Closure, Found};
use crate::error::Error;
use crate::events::Event;
use crate::executor::Executor;
use crate::function::Chunks;
use crate::run::{Given, Kept, materialise};

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
    body: Body,
    /// Keeps it from being collected while it is read.
    _lease: Option<Arc<Lease>>,
}

#[derive(Debug)]
enum Body {
    Bytes(Option<Bytes>),
    /// So many of them were given.
    Chunks(Arc<Kept>, usize),
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
        for _ in 0..inner.config.rounds.max(1) {
            let (given, source) = match Closure::find(inner, address, terms.deadline).await? {
                Found::Blob(given) => (given, Source::Blob),
                Found::Memo(given) => (given, Source::Memo),
                Found::Closure(closure) => match self.compute(address, *closure, terms.deadline).await {
                    Ok((given, computed)) => (given, Source::Computed(computed)),
                    Err(error) if is_loss(&error) => continue,
                    Err(error) => return Err(error),
                },
            };
            if !matches!(source, Source::Computed(_)) {
                inner.count(&inner.counters.hits, 1);
            }
            match self.body(&given, &terms.range).await {
                Ok(Some(body)) => {
                    self.written(address).await?;
                    let Given { output, size, lease, .. } = given;
                    return Ok(Got { output, size, source, body, _lease: lease });
                }
                Ok(None) => {}
                Err(error) if is_loss(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Lost { address: *address, rounds: inner.config.rounds })
    }

    async fn compute(
        &self,
        address: &Address,
        closure: Closure,
        deadline: Option<Instant>,
    ) -> Result<(Given, u32), Error> {
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
        let given = Given { output, size, bytes: None, kept: None, lease: None };
        let body = match self.body(&given, &terms.range).await {
            Err(error) if is_loss(&error) => None,
            other => other?,
        };
        if body.is_some() {
            self.written(address).await?;
        }
        Ok(body.map(|body| {
            inner.count(&inner.counters.hits, 1);
            Got { output, size, source: Source::Memo, body, _lease: None }
        }))
    }

    /// Waits until a value is written. A value that the disk has no room for is answered from memory.
    async fn written(&self, address: &Address) -> Result<(), Error> {
        match self.inner.store.written_of(address).await {
            Err(error) if error.is_disk_full() => Ok(()),
            written => Ok(written?),
        }
    }

    async fn body(&self, given: &Given, range: &Range<u64>) -> Result<Option<Body>, Error> {
        let store = &self.inner.store;
        if given.size <= WHOLE_MOST {
            let bytes = match &given.bytes {
                Some(bytes) => Some(bytes.clone()),
                None => store.get(&given.output).await?,
            };
            return Ok(bytes.map(|bytes| {
                let len = bytes.len() as u64;
                let start = range.start.min(len);
                Body::Bytes(Some(bytes.slice(start as usize..range.end.clamp(start, len) as usize)))
            }));
        }
        if let Some(kept) = &given.kept
            && range.start == 0
            && range.end >= given.size
        {
            return Ok(Some(Body::Chunks(Arc::clone(kept), 0)));
        }
        let reader = store.read(&given.output, range.clone()).await?;
        Ok(reader.map(|reader| Body::Reader(Box::new(reader))))
    }
}

/// Whether a value went away that was there: worth another round.
fn is_loss(error: &Error) -> bool {
    use anabranch_content::Error as Kept;
    matches!(error, Error::Store(Kept::Corrupt { .. } | Kept::Missing { .. }))
}
