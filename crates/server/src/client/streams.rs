//! Values, archives and events that are sent piece by piece.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use anabranch_content::{Address, ExportReport};
use anabranch_recipe::{Notice, Source};
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tokio::sync::oneshot;
use tonic::{Code, Response, Status, Streaming};

use super::Error;
use crate::proto::recipes as proto;
use crate::wire::{self, Part};

/// A value that is being received.
#[derive(Debug)]
pub struct ReceivedValue {
    /// The address of the value's bytes; the requested address itself if it is a blob's.
    pub output: Address,
    /// The size of the whole value in bytes.
    pub size: u64,
    /// The origin of the value.
    pub source: Source,
    /// The number of recipes that did not run because their inputs have the same values as in an earlier call.
    pub cut_off: u32,
    first: Bytes,
    stream: Streaming<proto::GetReply>,
}

impl ReceivedValue {
    pub(super) async fn begin(mut stream: Streaming<proto::GetReply>) -> Result<ReceivedValue, Error> {
        let reply = stream.message().await?.ok_or_else(|| cut_short("its header"))?;
        let Part { output, size, source, cut_off } = wire::header(&wire::set("header", reply.header)?)?;
        Ok(ReceivedValue { output, size, source, cut_off, first: reply.chunk, stream })
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        if !self.first.is_empty() {
            return Some(Ok(std::mem::take(&mut self.first)));
        }
        self.stream
            .message()
            .await
            .map_err(Error::from)
            .map(|reply| reply.map(|reply| reply.chunk))
            .transpose()
    }

    /// All pieces, concatenated.
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        let mut all = BytesMut::from(std::mem::take(&mut self.first));
        while let Some(piece) = self.next().await {
            all.extend_from_slice(&piece?);
        }
        Ok(all.freeze())
    }
}

/// Several values that are being received.
#[derive(Debug)]
pub struct ReceivedValues {
    pub(super) stream: Streaming<proto::GetManyReply>,
}

/// A piece of one of several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePiece {
    /// A value begins.
    Header {
        /// The address of the value's bytes.
        output: Address,
        /// Its size in bytes.
        size: u64,
        /// The origin of the value.
        source: Source,
    },
    /// The next bytes of the value.
    Bytes(Bytes),
    /// There is no value, or the rest of it is missing.
    Failed {
        /// The kind of failure.
        code: Code,
        /// The server's message.
        message: String,
    },
}

impl ReceivedValues {
    /// The next piece, with the index of its value in the list; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<(usize, ValuePiece), Error>> {
        use proto::get_many_reply::Part as ReplyPart;
        let piece = |reply: proto::GetManyReply| {
            let piece = match wire::set("part", reply.part)? {
                ReplyPart::Header(header) => {
                    let Part { output, size, source, .. } = wire::header(&header)?;
                    ValuePiece::Header { output, size, source }
                }
                ReplyPart::Chunk(bytes) => ValuePiece::Bytes(bytes),
                ReplyPart::Failure(failure) => {
                    ValuePiece::Failed { code: Code::from_i32(failure.code), message: failure.message }
                }
            };
            Ok((reply.index as usize, piece))
        };
        match self.stream.message().await {
            Ok(reply) => reply.map(piece),
            Err(status) => Some(Err(status.into())),
        }
    }
}

/// An archive that is being received.
#[derive(Debug)]
pub struct ReceivedArchive {
    stream: Streaming<proto::ExportReply>,
    exported: Option<ExportReport>,
}

impl ReceivedArchive {
    pub(super) fn begin(stream: Streaming<proto::ExportReply>) -> ReceivedArchive {
        ReceivedArchive { stream, exported: None }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        use proto::export_reply::Part as ExportPart;
        loop {
            let part = match self.stream.message().await {
                Ok(Some(reply)) => reply.part,
                Ok(None) if self.exported.is_some() => return None,
                Ok(None) => return Some(Err(cut_short("its last message"))),
                Err(status) => return Some(Err(status.into())),
            };
            let exported = match wire::set("part", part) {
                Ok(ExportPart::Chunk(bytes)) => return Some(Ok(bytes)),
                Ok(ExportPart::Exported(exported)) => wire::exported(&exported),
                Err(bad) => Err(bad),
            };
            match exported {
                Ok(exported) => self.exported = Some(exported),
                Err(bad) => return Some(Err(bad.into())),
            }
        }
    }

    /// The counts of the archive, once all of it has arrived.
    pub fn exported(&self) -> Option<&ExportReport> {
        self.exported.as_ref()
    }
}

/// Receives the events of a server.
#[derive(Debug)]
pub struct NoticeStream {
    stream: Streaming<proto::EventsReply>,
}

impl NoticeStream {
    /// Waits until the server confirms the subscription.
    pub(super) async fn begin(mut stream: Streaming<proto::EventsReply>) -> Result<NoticeStream, Error> {
        let first = stream.message().await?.ok_or_else(|| cut_short("its beginning"))?;
        match wire::event(first)? {
            None => Ok(NoticeStream { stream }),
            Some(event) => Err(Error::Answer(format!("a stream of events begins with {event:?}"))),
        }
    }

    /// The next event; `None` once the server has closed the stream.
    pub async fn next(&mut self) -> Option<Result<Notice, Error>> {
        match self.stream.message().await {
            Ok(Some(reply)) => wire::event(reply).map_err(Error::from).transpose(),
            Ok(None) => None,
            Err(status) => Some(Err(status.into())),
        }
    }
}

fn cut_short(lacks: &str) -> Error {
    Error::Answer(format!("the stream ended without {lacks}"))
}

/// The size of a piece. A message then fits into a few frames.
const CHUNK: usize = 256 << 10;

/// Sends a stream of bytes and waits for the reply. If the stream fails, the call is dropped, because a clean end would
/// tell the server that the stream is complete.
pub(super) async fn send<E, M, R, Call>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    write: impl Fn(Bytes) -> M + Send + 'static,
    call: impl FnOnce(BoxStream<'static, M>) -> Call,
) -> Result<R, Error>
where
    E: std::error::Error + Send + Sync + 'static,
    M: Send + 'static,
    Call: Future<Output = Result<Response<R>, Status>>,
{
    let (fail, failed) = oneshot::channel();
    let state = (Box::pin(bytes), Bytes::new(), fail);
    let chunks = stream::unfold(state, |(mut bytes, mut piece, fail)| async move {
        while piece.is_empty() {
            match bytes.next().await? {
                Ok(next) => piece = next,
                Err(error) => {
                    // The receiver is gone if the call has ended.
                    let _ = fail.send(error);
                    return std::future::pending().await;
                }
            }
        }
        let chunk = piece.split_to(piece.len().min(CHUNK));
        Some((chunk, (bytes, piece, fail)))
    });
    match select(pin!(call(chunks.map(write).boxed())), failed).await {
        Either::Left((reply, _)) => Ok(reply?.into_inner()),
        Either::Right((Ok(error), _)) => Err(Error::Source(Arc::new(error))),
        // The stream ended, so it cannot fail any more.
        Either::Right((Err(_), call)) => Ok(call.await?.into_inner()),
    }
}
