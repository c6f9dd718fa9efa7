//! Values as streams of messages.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_recipe::{Error, Got};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::failure::Failure;
use crate::service::Shared;

/// A message has no more bytes of a value than this.
const CHUNK: usize = 256 << 10;

/// The pieces of a value, each as a message. What is in memory is there at once: no box, no wait.
pub(crate) struct Pieces<M> {
    first: Option<M>,
    rest: Option<Rest>,
    write: fn(Bytes) -> M,
}

struct Rest {
    piece: Bytes,
    stream: BoxStream<'static, Result<Bytes, Error>>,
}

impl<M> Pieces<M> {
    /// All of a value, each piece as `write` has it, behind what `begin` makes of the piece in memory, if it is one.
    pub(crate) fn new(
        mut got: Got,
        begin: impl FnOnce(&Got, Option<Bytes>) -> Option<M>,
        write: fn(Bytes) -> M,
    ) -> Pieces<M> {
        let whole = got.whole();
        let rest = whole.is_none();
        let first = begin(&got, whole);
        let rest = rest.then(|| Rest { piece: Bytes::new(), stream: got.into_stream().boxed() });
        Pieces { first, rest, write }
    }
}

impl<M> Unpin for Pieces<M> {}

impl<M> Stream for Pieces<M> {
    type Item = Result<M, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let write = self.write;
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        while rest.piece.is_empty() {
            match std::task::ready!(rest.stream.poll_next_unpin(cx)) {
                Some(Ok(piece)) => rest.piece = piece,
                Some(Err(error)) => {
                    self.rest = None;
                    return Poll::Ready(Some(Err(Failure::from(error).into())));
                }
                None => {
                    self.rest = None;
                    return Poll::Ready(None);
                }
            }
        }
        let len = rest.piece.len().min(CHUNK);
        Poll::Ready(Some(Ok(write(rest.piece.split_to(len)))))
    }
}

/// A blob up to this size is kept in memory while it is put; a larger one is a file of the store.
const SMALL_BLOB: u64 = 64 << 10;

/// The bytes of a blob that a client puts: no more than it may have, and a large one only when there is a place for it.
pub(crate) fn upload<E: Into<Failure>>(
    shared: &Shared,
    stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Failure>> {
    let (most, uploads) = (shared.settings.blob_most, Arc::clone(&shared.uploads));
    let upload = (stream.boxed(), 0_u64, None);
    stream::try_unfold(upload, move |(mut stream, len, mut place)| {
        let uploads = Arc::clone(&uploads);
        async move {
            let Some(piece) = stream.next().await else { return Ok(None) };
            let piece = piece.map_err(Into::into)?;
            let len = len.saturating_add(piece.len() as u64);
            if len > most {
                let message = format!("a blob may have {most} bytes, this one has more");
                return Err(Failure::new(Code::OutOfRange, message));
            }
            if len > SMALL_BLOB && place.is_none() {
                // It is never closed.
                place = uploads.acquire_owned().await.ok();
            }
            Ok(Some((piece, (stream, len, place))))
        }
    })
}

/// A stream that the client broke off, or that is none.
impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::new(status.code(), status.message())
    }
}
