//! Values as streams of messages.

use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_recipe::{Error, Got};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::failure::Failure;

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

/// Bytes that a client gives, no more of them than it may.
pub(crate) fn bounded<E>(
    stream: impl Stream<Item = Result<Bytes, E>>,
    most: u64,
) -> impl Stream<Item = Result<Bytes, Failure>>
where
    E: Into<Failure>,
{
    let mut left = most;
    stream.map(move |piece| {
        let piece = piece.map_err(Into::into)?;
        left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
            Failure::new(Code::OutOfRange, format!("a blob that is put may have {most} bytes, this has more"))
        })?;
        Ok(piece)
    })
}

/// A stream that the client broke off, or that is none.
impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::new(status.code(), status.message())
    }
}
