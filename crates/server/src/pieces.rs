//! Values as streams of messages.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_recipe::{Error, FetchedValue};
use anabranch_text::size;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tonic::{Code, Status};

use crate::access::Caller;
use crate::failure::Failure;
use crate::load::SlotRefusal;
use crate::service::Shared;

/// The most bytes of a value in one message.
const CHUNK: usize = 256 << 10;

/// The pieces of a value, each as a message. A value in memory is available immediately, without a box.
pub(crate) struct ValuePieces<M> {
    first: Option<M>,
    rest: Option<ValueRest>,
    write: fn(Bytes) -> M,
}

struct ValueRest {
    piece: Bytes,
    stream: BoxStream<'static, Result<Bytes, Error>>,
}

impl<M> ValuePieces<M> {
    /// All pieces of a value, each converted by `write`. `begin` makes the first message, from the whole value if it is
    /// in memory.
    pub(crate) fn new(
        mut got: FetchedValue,
        begin: impl FnOnce(&FetchedValue, Option<Bytes>) -> Option<M>,
        write: fn(Bytes) -> M,
    ) -> ValuePieces<M> {
        let whole = got.whole();
        let rest = whole.is_none();
        let first = begin(&got, whole);
        let rest = rest.then(|| ValueRest { piece: Bytes::new(), stream: got.into_stream().boxed() });
        ValuePieces { first, rest, write }
    }
}

impl<M> Unpin for ValuePieces<M> {}

impl<M> Stream for ValuePieces<M> {
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

/// The size up to which a blob is in memory while it is stored. A larger one is a file of the store.
const SMALL_BLOB: u64 = 64 << 10;

/// The bytes of an uploaded blob. It must not exceed the size limit, and a large one needs an upload slot.
pub(crate) fn upload<E: Into<Failure>>(
    shared: &Shared,
    caller: &Caller,
    stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Failure>> {
    let (most, uploads) = (shared.settings.blob_most, Arc::clone(&shared.uploads));
    let client = Arc::clone(&caller.name);
    let upload = (stream.boxed(), 0_u64, None);
    stream::try_unfold(upload, move |(mut stream, len, mut place)| {
        let (uploads, client) = (Arc::clone(&uploads), Arc::clone(&client));
        async move {
            let Some(piece) = stream.next().await else { return Ok(None) };
            let piece = piece.map_err(Into::into)?;
            let len = len.saturating_add(piece.len() as u64);
            if len > most {
                let most = size::format(most);
                let message = format!("a blob may have up to {most}, and this one has more");
                return Err(Failure::new(Code::OutOfRange, message));
            }
            if len > SMALL_BLOB && place.is_none() {
                place = Some(uploads.enter(&client, || None).await?);
            }
            Ok(Some((piece, (stream, len, place))))
        }
    })
}

/// A large blob that gets no upload slot.
impl From<SlotRefusal> for Failure {
    fn from(shed: SlotRefusal) -> Failure {
        match shed {
            SlotRefusal::Client => Failure::new(
                Code::ResourceExhausted,
                "this client uploads more large blobs at a time than its share; try again later",
            ),
            SlotRefusal::Server => Failure::new(
                Code::Unavailable,
                "there was no place for another large blob in time; try again later",
            ),
            SlotRefusal::Deadline => Failure::new(
                Code::DeadlineExceeded,
                "the time of the request passed while it waited for a place for its large blob",
            ),
        }
    }
}

/// A stream that the client cancelled, or that is malformed.
impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::new(status.code(), status.message())
    }
}
