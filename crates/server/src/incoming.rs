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

use crate::budget::ByteShare;
use crate::connections::{Call, Wait};
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
    /// The same, for a stream of requests that its client keeps open, with pauses between the messages.
    Requests(Framing),
    /// The same, for a call that others wait for, which must therefore be fast enough as a whole: an archive.
    Archive(Framing),
}

impl BodyRetention {
    fn is_grpc(&self) -> bool {
        !matches!(self, BodyRetention::Whole | BodyRetention::Piece)
    }

    /// Whether a stream of requests has no message under way.
    fn is_idle(&self) -> bool {
        matches!(self, BodyRetention::Requests(framing) if framing.is_between())
    }
}

/// A last piece of up to this size is not charged: its request is complete, and the number of such requests is bounded.
const UNCHARGED: usize = 4 << 10;

/// The message of a call whose time passes before there is memory for it.
pub(crate) const LATE: &str = "the time of the request passed while it waited for memory";

/// The body of a request.
pub(crate) struct IncomingBody<B> {
    inner: B,
    shared: Arc<Shared>,
    call: Arc<Call>,
    holding: BodyRetention,
    progress: Progress,
    /// A frame that waits for its share of the budget.
    charging: Option<(Frame<Bytes>, BoxFuture<'static, Option<ByteShare>>)>,
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
        let read = match &mut self.holding {
            BodyRetention::Whole | BodyRetention::Piece => return piece.len(),
            BodyRetention::Message(framing)
            | BodyRetention::Requests(framing)
            | BodyRetention::Archive(framing) => framing.read(piece),
        };
        if read.begins {
            self.call.release();
        }
        match &self.holding {
            BodyRetention::Message(_) if read.begins => self.progress.begin(),
            // A pause is not a part of the message before it, nor of the one after it.
            BodyRetention::Requests(framing) if read.begins || framing.is_between() => {
                self.progress = Progress::default();
            }
            _ => {}
        }
        piece.len() + read.unpacked
    }

    fn fail<T>(&mut self, status: Status) -> Poll<Option<Result<T, BoxError>>> {
        self.failed = true;
        Poll::Ready(Some(Err(status.into())))
    }

    /// The time in which the client must send enough bytes, and the most time for all bytes so far.
    fn timeouts(&self) -> [Duration; 2] {
        let settings = &self.shared.settings;
        match self.holding.is_idle() {
            true => [settings.idle_timeout, Duration::MAX],
            false => [settings.stall_timeout, self.waiting_most()],
        }
    }

    /// The most time that the client may take for all bytes so far. A piece that is not kept may take any time.
    fn waiting_most(&self) -> Duration {
        match self.holding {
            BodyRetention::Piece => Duration::MAX,
            _ => slowest(self.shared.settings.stall_timeout, self.progress.total_bytes),
        }
    }

    fn stalled(&self) -> Status {
        let settings = &self.shared.settings;
        if self.holding.is_idle() {
            return Status::deadline_exceeded(format!(
                "the client sent no request for {}, so the stream was ended; open another one",
                duration::format(settings.idle_timeout)
            ));
        }
        let left = settings.stall_timeout.saturating_sub(self.progress.waited);
        let is_slow = self.progress.total_waited.saturating_add(left) > self.waiting_most();
        let (bytes, within) = match is_slow {
            true => (SLOWEST_RATE, "per second".to_owned()),
            false => (settings.stall_bytes, format!("within {}", duration::format(settings.stall_timeout))),
        };
        Status::deadline_exceeded(format!(
            "the client sent less than {} of the request {within}, so the call was given up",
            size::format(bytes)
        ))
    }

    fn exhausted(&self) -> Status {
        if self.call.is_late() {
            return Status::deadline_exceeded(LATE);
        }
        let settings = &self.shared.settings;
        let message = format!(
            "unfinished requests have taken all {} of their memory, or this client has taken half of it, for {}; try \
             again later",
            size::format(settings.unfinished_most as u64),
            duration::format(settings.unfinished_wait)
        );
        let code = if self.holding.is_grpc() { Code::ResourceExhausted } else { Code::Unavailable };
        Status::new(code, message)
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
                this.call.set_waiting(if this.holding.is_idle() { Wait::Idle } else { Wait::Client });
                let [timeout, most] = this.timeouts();
                ready!(this.progress.poll_stalled(cx, &*shared.clock, timeout, most));
                return this.fail(this.stalled());
            }
            Poll::Ready(None) => {
                this.call.set_waiting(Wait::Nothing);
                return Poll::Ready(None);
            }
            // A call of gRPC that its client broke off is not a failure of the server.
            Poll::Ready(Some(Err(error))) if this.holding.is_grpc() => {
                let message = format!("the client broke the call off: {}", error.into());
                return this.fail(Status::cancelled(message));
            }
            Poll::Ready(Some(Err(error))) => {
                this.failed = true;
                return Poll::Ready(Some(Err(error.into())));
            }
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        this.call.set_waiting(Wait::Nothing);
        let Some(data) = frame.data_ref() else { return Poll::Ready(Some(Ok(frame))) };
        shared.metrics.received(data.len() as u64);
        this.progress.arrived(data.len() as u64, &*shared.clock, settings.stall_bytes);
        if this.holding == BodyRetention::Whole && data.len() <= UNCHARGED && this.inner.is_end_stream() {
            return Poll::Ready(Some(Ok(frame)));
        }
        let cost = this.cost(&data.clone());
        if this.call.try_charge(cost) {
            return Poll::Ready(Some(Ok(frame)));
        }
        this.charging = Some((frame, shared.budget.clone().take(this.call.taker(), cost).boxed()));
        Pin::new(this).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.failed || (self.charging.is_none() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A body that is kept in memory, or an archive, may take so many stall timeouts, and one second more per so many bytes.
/// Otherwise a client could hold the memory of its body, or keep others from archives, for days.
const SLOW_TIMEOUTS: u32 = 15;
pub(crate) const SLOWEST_RATE: u64 = 16 << 10;

/// The most time that a client may take to send or to read so many bytes.
pub(crate) fn slowest(stall_timeout: Duration, bytes: u64) -> Duration {
    let for_bytes = Duration::from_secs(bytes / SLOWEST_RATE);
    stall_timeout.saturating_mul(SLOW_TIMEOUTS).saturating_add(for_bytes)
}

/// Checks that a client sends fast enough. Only the time spent waiting for the client counts.
#[derive(Default)]
struct Progress {
    /// Since the last time that enough bytes had arrived.
    bytes: u64,
    waited: Duration,
    /// Since the beginning of the body or message.
    total_bytes: u64,
    total_waited: Duration,
    /// The start of the current wait, and its timeout.
    waiting: Option<(Instant, Sleep)>,
}

impl Progress {
    /// Another message begins.
    fn begin(&mut self) {
        (self.total_bytes, self.total_waited) = (0, Duration::ZERO);
    }

    fn arrived(&mut self, bytes: u64, clock: &dyn Clock, enough: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        if let Some((since, _)) = self.waiting.take() {
            let waited = clock.now().saturating_duration_since(since);
            self.waited += waited;
            self.total_waited += waited;
        }
        if self.bytes >= enough {
            (self.bytes, self.waited) = (0, Duration::ZERO);
        }
    }

    /// Ready when the client has taken too long: `timeout` for enough bytes, or `most` for all bytes so far.
    fn poll_stalled(
        &mut self,
        cx: &mut Context<'_>,
        clock: &dyn Clock,
        timeout: Duration,
        most: Duration,
    ) -> Poll<()> {
        let left = timeout.saturating_sub(self.waited).min(most.saturating_sub(self.total_waited));
        let begin = || {
            let now = clock.now();
            (now, clock.sleep_until(now + left))
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
    /// The most bytes of the current message once it is decompressed, or 0 if it is not compressed.
    unpacked: usize,
    /// The size limit of a message, in bytes.
    message_most: usize,
}

/// The messages in a piece of a body.
#[derive(Debug, Default, PartialEq, Eq)]
struct ReadMessages {
    /// A message begins, so the ones before it are complete.
    begins: bool,
    /// The size limit of the compressed messages that are complete once they are decompressed, in bytes. An incomplete
    /// message is not decompressed.
    unpacked: usize,
}

/// The most bytes that one byte of DEFLATE decompresses to.
const DEFLATE_MOST: usize = 1032;

impl Framing {
    pub(crate) fn new(message_most: usize) -> Framing {
        Framing { prefix: [0; 5], prefix_len: 0, message_left: 0, unpacked: 0, message_most }
    }

    /// Whether no message is under way.
    fn is_between(&self) -> bool {
        self.prefix_len == 0 && self.message_left == 0
    }

    fn read(&mut self, mut piece: &[u8]) -> ReadMessages {
        let mut read = ReadMessages::default();
        while !piece.is_empty() {
            let skipped = self.message_left.min(piece.len());
            self.message_left -= skipped;
            piece = &piece[skipped..];
            if self.message_left == 0 {
                read.unpacked = read.unpacked.saturating_add(std::mem::take(&mut self.unpacked));
            }
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
                    self.unpacked = self.message_left.saturating_mul(DEFLATE_MOST).min(self.message_most);
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

    /// The first bytes of a message do not take memory for all of it.
    #[test]
    fn a_compressed_message_is_charged_when_it_is_complete() {
        let mut framing = Framing::new(1 << 24);
        let prefix = framing.read(b"\x01\0\xff\xff\xff");
        assert_eq!(prefix, ReadMessages { begins: true, unpacked: 0 });
        let most = framing.read(&vec![0; (1 << 24) - 2]);
        assert_eq!(most, ReadMessages::default());
        assert_eq!(framing.read(&[0]), ReadMessages { begins: false, unpacked: 1 << 24 });
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
            assert!(framing.is_between() && unpacked == 1000, "{cut}: {unpacked}");
            assert!((1..=3).contains(&begun) && (cut > 5 || begun == 3), "{cut}: {begun}");
        }
    }
}
