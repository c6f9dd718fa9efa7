//! One connection: a task that owns the socket, sends the queued commands of trips in one write, and decodes their
//! replies.
//!
//! Replies come in the order of their commands. A cancelled trip keeps its place, and its replies are skipped. So a
//! silent server is detected even if no caller waits long enough to notice.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Sleep;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::sync::oneshot;

use super::dial::Socket;
use super::link::Shared;
use super::resp::{Decoder, ProtocolError};
use super::sink::Sink;
use crate::source::Error;

/// Bytes that are read and decoded before other tasks get their turn.
const SLICE: usize = 64 << 10;

/// A read buffer that has grown beyond this is freed when it is empty.
const LARGE: usize = 4 * SLICE;

/// The number of unanswered commands that keep a server busy for a while. While it has more, further commands wait to
/// be sent in one write.
const BUSY: usize = 96;

/// Times the allowed silence after which a reply must be complete, however slowly it drips.
const DRIP: u32 = 10;

/// Timers may fire this much early.
const TIMER_STEP: Duration = Duration::from_millis(2);

/// Commands that wait to be sent, and then for their replies.
pub(super) struct Trip {
    pub(super) sink: Sink,
    /// The remaining replies, without those to `ASKING`.
    pub(super) replies: u32,
    /// Whether an `ASKING` precedes each command.
    pub(super) asking: bool,
    /// Whether the next reply is to an `ASKING`.
    pub(super) acknowledgement: bool,
    pub(super) sent: Instant,
    /// `None` once its lateness has been reported.
    pub(super) done: Option<oneshot::Sender<Outcome>>,
}

/// The end of a trip.
pub(super) type Outcome = Result<Sink, Failure>;

/// The reason why a trip has no replies.
#[derive(Debug)]
pub(super) enum Failure {
    Error(Error),
    /// The reply at this index is not RESP, or exceeds a limit.
    Malformed {
        row: u32,
        found: ProtocolError,
    },
}

/// The reason why a connection ended.
pub(super) struct End {
    pub(super) cause: String,
    /// Whether the server was silent for too long.
    pub(super) silent: bool,
}

/// A connection that is up.
pub(super) struct Connection {
    shared: Arc<Shared>,
    socket: Box<dyn Socket>,
    buffer: Vec<u8>,
    /// The part of the buffer that is not decoded yet.
    start: usize,
    end: usize,
    decoder: Decoder,
    /// The bytes that are being written to the socket.
    writing: Vec<u8>,
    written: usize,
    must_flush: bool,
    in_flight: VecDeque<Trip>,
    /// The number of their commands without a reply.
    unanswered: usize,
    /// The number of trips at the front that have been reported as late.
    late: usize,
    /// The time at which bytes last arrived.
    heard: Instant,
    timer: Option<(Instant, Sleep)>,
    /// Whether other tasks had their turn since something was queued.
    waited: bool,
    last_batch: usize,
    /// Takes messages that are not replies.
    nobody: Sink,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, socket: Box<dyn Socket>) -> Connection {
        let heard = shared.clock.now();
        Connection {
            shared,
            socket,
            buffer: vec![0; SLICE],
            start: 0,
            end: 0,
            decoder: Decoder::default(),
            writing: Vec::new(),
            written: 0,
            must_flush: false,
            in_flight: VecDeque::new(),
            unanswered: 0,
            late: 0,
            heard,
            timer: None,
            waited: false,
            last_batch: 0,
            nobody: Sink::nothing(),
        }
    }

    /// Sends commands before any trip and waits for their replies.
    pub(super) async fn ask(&mut self, bytes: Vec<u8>, replies: u32) -> Result<Sink, End> {
        let (done, mut outcome) = oneshot::channel();
        let now = self.shared.clock.now();
        (self.writing, self.written) = (bytes, 0);
        self.unanswered += replies as usize;
        self.in_flight.push_back(Trip {
            sink: Sink::values(),
            replies,
            asking: false,
            acknowledgement: false,
            sent: now,
            done: Some(done),
        });
        self.decoder.begin(self.shared.config.max_reply_bytes);
        std::future::poll_fn(|cx| {
            ready_err(self.poll_write(cx))?;
            let more = self.read_slice(cx)?;
            if more {
                cx.waker().wake_by_ref();
            }
            match outcome.try_recv() {
                Ok(Ok(sink)) => Poll::Ready(Ok(sink)),
                Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => {
                    Poll::Ready(Err(End { cause: "the greeting was not answered".to_owned(), silent: false }))
                }
                Err(oneshot::error::TryRecvError::Empty) => Poll::Pending,
            }
        })
        .await
    }

    /// Serves trips until the connection ends.
    pub(super) async fn serve(mut self) -> End {
        let end = std::future::poll_fn(|cx| self.poll_serve(cx)).await;
        let cause: Arc<str> = end.cause.as_str().into();
        for trip in self.in_flight.drain(..) {
            let error = Error::Broken {
                endpoint: Arc::clone(&self.shared.config.endpoint),
                cause: Arc::clone(&cause),
            };
            trip.end(Err(Failure::Error(error)));
        }
        end
    }

    fn poll_serve(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.turn(cx) {
            Ok(again) => {
                if again {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Err(end) => Poll::Ready(end),
        }
    }

    /// Reads, decodes and writes once; whether there is more to do at once.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let more_to_read = self.read_slice(cx)?;
        let was_full = self.written < self.writing.len();
        let mut more_to_send = self.take_queue(cx);
        if let Poll::Ready(written) = self.poll_write(cx) {
            written?;
            // Trips may have been queued while the socket was full.
            more_to_send |= was_full;
        }
        let late = self.late;
        self.look_at_time(cx, more_to_read)?;
        Ok(more_to_read || more_to_send || self.late > late)
    }

    /// Moves queued bytes to the write buffer, once other tasks had their turn to add to them. Returns whether it waits
    /// for that.
    fn take_queue(&mut self, cx: &Context<'_>) -> bool {
        if self.written < self.writing.len() {
            return false;
        }
        let mut state = self.shared.lock();
        // The server cannot run dry, because the reply that leaves it with fewer commands wakes this task. A late
        // server gets everything immediately, so that no trip is late because it waited here.
        if self.late == 0 && self.unanswered >= BUSY.max(state.commands) {
            return false;
        }
        state.wait_with(cx.waker());
        if state.trips.is_empty() {
            return false;
        }
        let crowded = !self.in_flight.is_empty() || self.last_batch > 1;
        if crowded && !self.waited {
            self.waited = true;
            return true;
        }
        self.waited = false;
        self.writing.clear();
        self.written = 0;
        std::mem::swap(&mut self.writing, &mut state.bytes);
        self.last_batch = state.trips.len();
        self.unanswered += std::mem::take(&mut state.commands);
        let now = self.shared.clock.now();
        if self.in_flight.is_empty() {
            self.decoder.begin(self.shared.config.max_reply_bytes);
        }
        for mut trip in state.trips.drain(..) {
            trip.sent = now;
            self.in_flight.push_back(trip);
        }
        false
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        while self.written < self.writing.len() {
            self.shared.world.counters.writes.fetch_add(1, Ordering::Relaxed);
            let wrote = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.writing[self.written..]));
            match wrote {
                Ok(0) => return Poll::Ready(Err(End::closed())),
                Ok(count) => self.written += count,
                Err(error) => return Poll::Ready(Err(End::of(&error))),
            }
            self.must_flush = true;
        }
        if self.must_flush {
            if let Err(error) = ready!(Pin::new(&mut self.socket).poll_flush(cx)) {
                return Poll::Ready(Err(End::of(&error)));
            }
            self.must_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and decodes at most [`SLICE`] bytes; whether there may be more.
    fn read_slice(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut slice = 0;
        while slice < SLICE {
            self.make_room();
            let mut space = ReadBuf::new(&mut self.buffer[self.end..]);
            match Pin::new(&mut self.socket).poll_read(cx, &mut space) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Err(error)) => return Err(End::of(&error)),
                Poll::Ready(Ok(())) => {}
            }
            let count = space.filled().len();
            if count == 0 {
                return Err(End::closed());
            }
            self.shared.world.counters.reads.fetch_add(1, Ordering::Relaxed);
            self.end += count;
            slice += count;
            self.heard = self.shared.clock.now();
            self.decode()?;
        }
        Ok(true)
    }

    /// Makes room behind the bytes that are not decoded yet.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > LARGE {
                self.buffer = vec![0; SLICE];
            }
        }
        if self.buffer.len() - self.end >= SLICE / 4 {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        // The rest is the beginning of one text, whose length was checked against the limit of a reply.
        if self.buffer.len() - self.end < SLICE / 4 {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
    }

    fn decode(&mut self) -> Result<(), End> {
        while self.start < self.end {
            let trip = self.in_flight.front_mut();
            let sink = match trip {
                Some(trip) if trip.acknowledgement => &mut self.nobody,
                Some(trip) => {
                    if !trip.sink.is_nothing() && trip.done.as_ref().is_none_or(oneshot::Sender::is_closed) {
                        trip.sink = Sink::nothing();
                    }
                    &mut trip.sink
                }
                None => {
                    self.decoder.begin(SLICE);
                    &mut self.nobody
                }
            };
            let fed = self.decoder.feed(&self.buffer[self.start..self.end], sink);
            let (used, complete) = match fed {
                Ok(fed) => fed,
                Err(found) => return Err(self.malformed(found)),
            };
            self.start += used;
            if !complete {
                break;
            }
            if !self.end_reply() {
                return Err(self.malformed(ProtocolError("a reply to no command".into())));
            }
        }
        Ok(())
    }

    /// Counts a complete reply; `false` if no trip waits for one.
    fn end_reply(&mut self) -> bool {
        let Some(trip) = self.in_flight.front_mut() else { return false };
        if trip.acknowledgement {
            trip.acknowledgement = false;
            return true;
        }
        trip.sink.end_reply();
        trip.replies -= 1;
        self.unanswered -= 1;
        trip.acknowledgement = trip.asking;
        if trip.replies == 0
            && let Some(mut trip) = self.in_flight.pop_front()
        {
            self.late = self.late.saturating_sub(1);
            self.decoder.begin(self.shared.config.max_reply_bytes);
            let sink = std::mem::replace(&mut trip.sink, Sink::nothing());
            trip.end(Ok(sink));
        }
        true
    }

    /// Tells the trip whose reply is malformed, and ends the connection.
    fn malformed(&mut self, found: ProtocolError) -> End {
        let cause = format!("{}: a malformed reply: {}", self.shared.address(), found.0);
        if let Some(trip) = self.in_flight.pop_front() {
            let row = trip.sink.rows();
            trip.end(Err(Failure::Malformed { row, found }));
        }
        End { cause, silent: false }
    }

    /// Reports late trips, closes the connection if the server is silent, and sets the timer. While there is more to
    /// read, it may contain a late reply. Then this process is slow, and trips get twice their time.
    fn look_at_time(&mut self, cx: &mut Context<'_>, more_to_read: bool) -> Result<(), End> {
        let Some(oldest) = self.in_flight.front() else { return Ok(()) };
        let now = self.shared.clock.now();
        let timeout = self.shared.config.response_timeout;
        if more_to_read && now < oldest.sent + 2 * timeout {
            return Ok(());
        }
        let silence = self.shared.config.allowed_silence();
        let given_up = (oldest.sent.max(self.heard) + silence).min(oldest.sent + DRIP * silence);
        while let Some(trip) = self.in_flight.get_mut(self.late).filter(|trip| trip.sent + timeout <= now) {
            self.late += 1;
            trip.sink = Sink::nothing();
            if let Some(done) = trip.done.take() {
                let endpoint = Arc::clone(&self.shared.config.endpoint);
                let _ = done.send(Err(Failure::Error(Error::Timeout { endpoint, after: timeout })));
            }
        }
        if given_up <= now {
            let cause = format!("{}: the server was silent for {silence:?}", self.shared.address());
            return Err(End { cause, silent: true });
        }
        let due = match self.in_flight.get(self.late) {
            Some(trip) => given_up.min(trip.sent + timeout),
            None => given_up,
        };
        self.set_timer(due, now, cx);
        Ok(())
    }

    /// Makes sure that the task is woken at `due`. A timer that is set for an earlier time does that too.
    fn set_timer(&mut self, due: Instant, now: Instant, cx: &mut Context<'_>) {
        if let Some((at, sleep)) = &mut self.timer {
            let near = now + TIMER_STEP >= *at;
            if *at <= due && !(near && sleep.as_mut().poll(cx).is_ready()) {
                return;
            }
        }
        let mut sleep = self.shared.clock.sleep_until(due);
        if sleep.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
            self.timer = None;
            return;
        }
        self.timer = Some((due, sleep));
    }
}

impl Trip {
    pub(super) fn end(mut self, outcome: Outcome) {
        if let Some(done) = self.done.take() {
            // A caller that is gone needs no answer.
            let _ = done.send(outcome);
        }
    }
}

impl End {
    fn closed() -> End {
        End { cause: "the server closed it".to_owned(), silent: false }
    }

    fn of(error: &std::io::Error) -> End {
        End { cause: error.to_string(), silent: false }
    }
}

/// The error of an operation that may still be pending.
fn ready_err<E>(poll: Poll<Result<(), E>>) -> Result<(), E> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Ok(()),
    }
}
