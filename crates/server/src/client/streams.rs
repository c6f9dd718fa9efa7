//! What comes and goes piece by piece.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use anabranch_content::{Address, Exported};
use anabranch_recipe::{Heard, Source};
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use tokio::sync::oneshot;
use tonic::{Code, Response, Status, Streaming};

use super::Error;
use crate::proto::recipes as proto;
use crate::wire::{self, Part};

/// A value on its way here.
#[derive(Debug)]
pub struct Got {
    /// The blob that the address came to; the address itself if it is a blob's.
    pub output: Address,
    /// How many bytes the whole value has.
    pub size: u64,
    /// Where it came from.
    pub source: Source,
    /// Recipes that need not run because their inputs have the values of an earlier call.
    pub cut_off: u32,
    first: Bytes,
    stream: Streaming<proto::GetReply>,
}

impl Got {
    pub(super) async fn begin(mut stream: Streaming<proto::GetReply>) -> Result<Got, Error> {
        let reply = stream.message().await?.ok_or_else(|| cut_short("its header"))?;
        let Part { output, size, source, cut_off } = wire::header(&wire::set("header", reply.header)?)?;
        Ok(Got { output, size, source, cut_off, first: reply.chunk, stream })
    }

    /// The next piece; nothing at the end.
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

    /// All pieces as one.
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        let mut all = BytesMut::from(std::mem::take(&mut self.first));
        while let Some(piece) = self.next().await {
            all.extend_from_slice(&piece?);
        }
        Ok(all.freeze())
    }
}

/// Several values on their way here.
#[derive(Debug)]
pub struct Many {
    pub(super) stream: Streaming<proto::GetManyReply>,
}

/// A piece of one of several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A value begins.
    Header {
        /// The blob that the address came to.
        output: Address,
        /// How many bytes it has.
        size: u64,
        /// Where it came from.
        source: Source,
    },
    /// The next bytes of it.
    Bytes(Bytes),
    /// There is no value, or no more of it.
    Failed {
        /// The kind of failure.
        code: Code,
        /// What the server says about it.
        message: String,
    },
}

impl Many {
    /// The next piece, with the place of its value in the list; nothing at the end.
    pub async fn next(&mut self) -> Option<Result<(usize, Piece), Error>> {
        use proto::get_many_reply::Part as Sent;
        let piece = |reply: proto::GetManyReply| {
            let piece = match wire::set("part", reply.part)? {
                Sent::Header(header) => {
                    let Part { output, size, source, .. } = wire::header(&header)?;
                    Piece::Header { output, size, source }
                }
                Sent::Chunk(bytes) => Piece::Bytes(bytes),
                Sent::Failure(failure) => {
                    Piece::Failed { code: Code::from_i32(failure.code), message: failure.message }
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

/// An archive on its way here.
#[derive(Debug)]
pub struct Exporting {
    stream: Streaming<proto::ExportReply>,
    exported: Option<Exported>,
}

impl Exporting {
    pub(super) fn begin(stream: Streaming<proto::ExportReply>) -> Exporting {
        Exporting { stream, exported: None }
    }

    /// The next piece; nothing at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        use proto::export_reply::Part as Sent;
        loop {
            let part = match self.stream.message().await {
                Ok(Some(reply)) => reply.part,
                Ok(None) if self.exported.is_some() => return None,
                Ok(None) => return Some(Err(cut_short("the word of its end"))),
                Err(status) => return Some(Err(status.into())),
            };
            let exported = match wire::set("part", part) {
                Ok(Sent::Chunk(bytes)) => return Some(Ok(bytes)),
                Ok(Sent::Exported(exported)) => wire::exported(&exported),
                Err(bad) => Err(bad),
            };
            match exported {
                Ok(exported) => self.exported = Some(exported),
                Err(bad) => return Some(Err(bad.into())),
            }
        }
    }

    /// What the archive holds, once all of it is here.
    pub fn exported(&self) -> Option<&Exported> {
        self.exported.as_ref()
    }
}

/// Hears what happens at the server.
#[derive(Debug)]
pub struct Hearing {
    stream: Streaming<proto::EventsReply>,
}

impl Hearing {
    /// Waits for the server's word that it is heard.
    pub(super) async fn begin(mut stream: Streaming<proto::EventsReply>) -> Result<Hearing, Error> {
        let first = stream.message().await?.ok_or_else(|| cut_short("its beginning"))?;
        match wire::heard(first)? {
            None => Ok(Hearing { stream }),
            Some(heard) => Err(Error::Answer(format!("a stream of events begins with {heard:?}"))),
        }
    }

    /// What happened next; nothing once the server is gone.
    pub async fn next(&mut self) -> Option<Result<Heard, Error>> {
        match self.stream.message().await {
            Ok(Some(reply)) => wire::heard(reply).map_err(Error::from).transpose(),
            Ok(None) => None,
            Err(status) => Some(Err(status.into())),
        }
    }
}

fn cut_short(lacks: &str) -> Error {
    Error::Answer(format!("the stream ended without {lacks}"))
}

/// Pieces are cut to this size: a message fills no more than a few frames.
const CHUNK: usize = 256 << 10;

/// Sends a stream of bytes and waits for the answer. If the giver fails the call is dropped, for to end it would tell
/// the server that it has everything.
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
                    // Nobody waits for it if the call is over.
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
        Either::Right((Ok(error), _)) => Err(Error::Giver(Arc::new(error))),
        // The stream ended, so it will not fail any more.
        Either::Right((Err(_), call)) => Ok(call.await?.into_inner()),
    }
}
