//! Request bodies. Each must make progress, and is charged to the byte budget of unfinished requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock, Sleep};
use anabranch_text::{duration, size};
use axum::BoxError;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::body::{Body, Frame, SizeHint};
use tonic::{Code, Status};

use crate::budget::Share;
use crate::connections::Call;
use crate::service::Shared;

/// The time for which a body's bytes stay in memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyRetention {
    /// Until the call is answered.
    Whole,
    /// Until the next piece is polled: blobs.
    Piece,
    /// Until the next message begins, or the call is answered: gRPC.
    Message(Framing),
}

/// The body of a request.
pub(crate) struct IncomingBody<B> {
    inner: B,
    shared: Arc<Shared>,
    call: Arc<Call>,
    holding: BodyRetention,
    progress: Progress,
    /// A frame that waits for its share of the budget.
    charging: Option<(Frame<Bytes>, BoxFuture<'static, Option<Share>>)>,
    failed: bool,
}

impl<B> IncomingBody<B> {
    pub(crate) fn new(
        inner: B,
        shared: &Arc<Shared>,
        call: &Arc<Call>,
        holding: BodyRetention,
    ) -> IncomingBody<B> {
        IncomingBody {
            inner,
            shared: Arc::clone(shared),
            call: Arc::clone(call),
            holding,
            progress: Progress::default(),
            charging: None,
            failed: false,
        }
    }

    /// The bytes that a piece takes in memory.
    fn cost(&mut self, piece: &[u8]) -> usize {
        match &mut self.holding {
            BodyRetention::Whole | BodyRetention::Piece => piece.len(),
            BodyRetention::Message(framing) => {
                let read = framing.read(piece);
                if read.begins {
                    self.call.release();
                }
                piece.len() + read.unpacked
            }
        }
    }

    fn fail<T>(&mut self, status: Status) -> Poll<Option<Result<T, BoxError>>> {
        self.failed = true;
        Poll::Ready(Some(Err(status.into())))
    }

    fn stalled(&self) -> Status {
        let settings = &self.shared.settings;
        Status::deadline_exceeded(format!(
            "the client sent less than {} of the request within {}, so the call was given up",
            size::format(settings.stall_bytes),
            duration::format(settings.stall_timeout)
        ))
    }

    fn exhausted(&self) -> Status {
        let settings = &self.shared.settings;
        let message = format!(
            "unfinished requests have taken all {} of their memory for {}; try again later",
            size::format(settings.unfinished_most as u64),
            duration::format(settings.unfinished_wait)
        );
        match self.holding {
            BodyRetention::Message(_) => Status::new(Code::ResourceExhausted, message),
            BodyRetention::Whole | BodyRetention::Piece => Status::new(Code::Unavailable, message),
        }
    }
}

impl<B> Body for IncomingBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if this.failed {
            return Poll::Ready(None);
        }
        if let Some((_, share)) = &mut this.charging {
            let share = ready!(share.poll_unpin(cx));
            let frame = this.charging.take().map(|(frame, _)| frame);
            return match (frame, share) {
                (Some(frame), Some(share)) => {
                    this.call.hold(share);
                    Poll::Ready(Some(Ok(frame)))
                }
                _ => this.fail(this.exhausted()),
            };
        }
        if this.holding == BodyRetention::Piece {
            this.call.release();
        }
        let shared = Arc::clone(&this.shared);
        let settings = &shared.settings;
        let frame = match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Pending => {
                this.call.set_waiting(true);
                ready!(this.progress.poll_stalled(cx, &*shared.clock, settings.stall_timeout));
                return this.fail(this.stalled());
            }
            Poll::Ready(None) => {
                this.call.set_waiting(false);
                return Poll::Ready(None);
            }
            // A call of gRPC that its client broke off is not a failure of the server.
            Poll::Ready(Some(Err(error))) if matches!(this.holding, BodyRetention::Message(_)) => {
                let message = format!("the client broke the call off: {}", error.into());
                return this.fail(Status::cancelled(message));
            }
            Poll::Ready(Some(Err(error))) => {
                this.failed = true;
                return Poll::Ready(Some(Err(error.into())));
            }
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        this.call.set_waiting(false);
        let Some(data) = frame.data_ref() else { return Poll::Ready(Some(Ok(frame))) };
        shared.metrics.received(data.len() as u64);
        this.progress.arrived(data.len() as u64, &*shared.clock, settings.stall_bytes);
        let cost = this.cost(&data.clone());
        if let Some(share) = shared.budget.try_take(cost) {
            this.call.hold(share);
            return Poll::Ready(Some(Ok(frame)));
        }
        this.charging = Some((frame, shared.budget.clone().take(cost).boxed()));
        Pin::new(this).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.failed || (self.charging.is_none() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Checks that a client sends fast enough. Only the time spent waiting for the client counts.
#[derive(Default)]
struct Progress {
    bytes: u64,
    waited: Duration,
    /// The start of the current wait, and its timeout.
    waiting: Option<(Instant, Sleep)>,
}

impl Progress {
    fn arrived(&mut self, bytes: u64, clock: &dyn Clock, enough: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some((since, _)) = self.waiting.take() {
            self.waited += clock.now().saturating_duration_since(since);
        }
        if self.bytes >= enough {
            *self = Progress::default();
        }
    }

    /// Ready when the client has taken too long.
    fn poll_stalled(&mut self, cx: &mut Context<'_>, clock: &dyn Clock, timeout: Duration) -> Poll<()> {
        let waited = self.waited;
        let begin = || {
            let now = clock.now();
            (now, clock.sleep_until(now + timeout.saturating_sub(waited)))
        };
        self.waiting.get_or_insert_with(begin).1.poll_unpin(cx)
    }
}

/// Finds the gRPC messages in a body. Each begins with one byte for the compression and four bytes for the length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    prefix: [u8; 5],
    prefix_len: usize,
    message_left: usize,
    /// The size limit of a message, in bytes.
    message_most: usize,
}

/// The messages in a piece of a body.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReadMessages {
    /// A message begins, so the ones before it are complete.
    begins: bool,
    /// The size limit of the compressed messages once they are decompressed, in bytes.
    unpacked: usize,
}

/// The most bytes that one byte of DEFLATE decompresses to.
const DEFLATE_MOST: usize = 1032;

impl Framing {
    pub(crate) fn new(message_most: usize) -> Framing {
        Framing { prefix: [0; 5], prefix_len: 0, message_left: 0, message_most }
    }

    fn read(&mut self, mut piece: &[u8]) -> ReadMessages {
        let mut read = ReadMessages::default();
        while !piece.is_empty() {
            let skipped = self.message_left.min(piece.len());
            self.message_left -= skipped;
            piece = &piece[skipped..];
            let Some((byte, rest)) = piece.split_first() else { break };
            piece = rest;
            read.begins |= self.prefix_len == 0;
            self.prefix[self.prefix_len] = *byte;
            self.prefix_len += 1;
            if self.prefix_len == self.prefix.len() {
                self.prefix_len = 0;
                let [compressed, len @ ..] = self.prefix;
                self.message_left = u32::from_be_bytes(len) as usize;
                if compressed != 0 {
                    let unpacked = self.message_left.saturating_mul(DEFLATE_MOST);
                    read.unpacked = read.unpacked.saturating_add(unpacked.min(self.message_most));
                }
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use anabranch_recipe::{Executor, Functions};
    use futures_util::stream;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;
    use crate::access::Peer;
    use crate::connections::Activity;
    use crate::{Service, Settings};

    #[tokio::test]
    async fn a_call_that_its_client_breaks_off_is_cancelled() {
        let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), Settings::default());
        let shared = &service.shared;
        let activity =
            Arc::new(Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), Peer::Socket));
        let frames = [Ok(Frame::data(Bytes::from_static(b"\0\0\0"))), Err(std::io::Error::other("reset"))];
        let inner = StreamBody::new(stream::iter(frames));
        let body =
            IncomingBody::new(inner, shared, &activity.begin(), BodyRetention::Message(Framing::new(0)));
        let error = body.collect().await.unwrap_err();
        let status = error.downcast_ref::<Status>().unwrap();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Cancelled, "the client broke the call off: reset")
        );
    }

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let body = b"\0\0\0\0\x03abc\x01\0\0\0\x02zz\0\0\0\0\0";
        for cut in 1..body.len() {
            let mut framing = Framing::new(1000);
            let mut begun = 0;
            let mut unpacked = 0;
            for piece in body.chunks(cut) {
                let read = framing.read(piece);
                begun += usize::from(read.begins);
                unpacked += read.unpacked;
            }
            assert_eq!((framing.message_left, framing.prefix_len, unpacked), (0, 0, 1000), "{cut}");
            assert!((1..=3).contains(&begun) && (cut > 5 || begun == 3), "{cut}: {begun}");
        }
    }
}
