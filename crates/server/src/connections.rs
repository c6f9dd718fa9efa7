//! Connections and their calls: which of them are idle, and which is closed when there is no place for another.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use axum::body::Body as AnyBody;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::access::Peer;
use crate::budget::Share;

/// Connections and calls of a server, counted.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) connections: AtomicUsize,
    pub(crate) calls: AtomicUsize,
}

/// The calls of one connection.
pub(crate) struct Activity {
    clock: Arc<dyn Clock>,
    traffic: Arc<Traffic>,
    peer: Peer,
    state: Mutex<ActivityState>,
}

struct ActivityState {
    calls: usize,
    /// Calls that wait for the client to send or to read.
    waiting: usize,
    /// When the client last sent or read something of a call.
    last: Instant,
}

impl Activity {
    pub(crate) fn new(clock: Arc<dyn Clock>, traffic: Arc<Traffic>, peer: Peer) -> Activity {
        traffic.connections.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(ActivityState { calls: 0, waiting: 0, last: clock.now() });
        Activity { clock, traffic, peer, state }
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    fn lock(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call.
    pub(crate) fn begin(self: &Arc<Self>) -> Arc<Call> {
        self.traffic.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        state.calls += 1;
        state.last = self.clock.now();
        Arc::new(Call { activity: Arc::clone(self), state: Mutex::default() })
    }

    /// How long ago the client last sent or read something; nothing while the server works for it.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.calls == state.waiting).then_some(state.last)
    }

    /// Waits until the connection has had no call for so long.
    pub(crate) async fn unused(&self, timeout: Duration) {
        loop {
            let (calls, last) = {
                let state = self.lock();
                (state.calls, state.last)
            };
            let now = self.clock.now();
            let since = if calls == 0 { last } else { now };
            if calls == 0 && now.saturating_duration_since(since) >= timeout {
                return;
            }
            self.clock.sleep_until(since + timeout).await;
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.traffic.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One call, from its head until its answer is sent or given up.
pub(crate) struct Call {
    activity: Arc<Activity>,
    state: Mutex<CallState>,
}

#[derive(Default)]
struct CallState {
    waiting: bool,
    share: Option<Share>,
}

impl Call {
    fn lock(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is the client's turn to send or to read.
    pub(crate) fn set_waiting(&self, waiting: bool) {
        let before = std::mem::replace(&mut self.lock().waiting, waiting);
        let mut state = self.activity.lock();
        match (before, waiting) {
            (false, true) => state.waiting += 1,
            (true, false) => state.waiting -= 1,
            (false, false) | (true, true) => {}
        }
        if before != waiting {
            state.last = self.activity.clock.now();
        }
    }

    /// Keeps a share of the byte budget beside those it has.
    pub(crate) fn hold(&self, share: Share) {
        match &mut self.lock().share {
            Some(held) => held.merge(share),
            none => *none = Some(share),
        }
    }

    /// Gives back what it has of the byte budget.
    pub(crate) fn release(&self) {
        self.lock().share = None;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.set_waiting(false);
        let mut state = self.activity.lock();
        state.calls -= 1;
        state.last = self.activity.clock.now();
        self.activity.traffic.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer, as long as its call.
pub(crate) struct OutgoingBody {
    inner: AnyBody,
    call: Arc<Call>,
    kind: AnswerKind,
}

/// Why an answer may have nothing to send for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The server works for it.
    Value,
    /// Nothing happened that the client listens for.
    Subscription,
}

impl AnswerKind {
    pub(crate) fn of(path: &str) -> AnswerKind {
        match path.rsplit('/').next() {
            Some("Events" | "Watch" | "ServerReflectionInfo" | "events") => AnswerKind::Subscription,
            _ => AnswerKind::Value,
        }
    }
}

impl OutgoingBody {
    pub(crate) fn new(inner: AnyBody, call: Arc<Call>, kind: AnswerKind) -> OutgoingBody {
        OutgoingBody { inner, call, kind }
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.call.set_waiting(false);
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        // A frame was handed out: more is asked for only when the client has read.
        let is_waiting = match &frame {
            Poll::Ready(frame) => frame.is_some(),
            Poll::Pending => self.kind == AnswerKind::Subscription,
        };
        self.call.set_waiting(is_waiting);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The open connections of a listener.
#[derive(Default)]
pub(crate) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, (Arc<Activity>, AbortHandle)>,
}

impl Connections {
    /// How many there are, those that are being closed included.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn spawn(
        &mut self,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), (activity, task));
    }

    /// Waits for one to end; nothing if there is none.
    pub(crate) async fn join_next(&mut self) -> Option<()> {
        let ended = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&ended);
        Some(())
    }

    /// Closes the connection that is idle for the longest time. Those that the server works for stay.
    pub(crate) fn close_idle(&mut self) {
        let idle = |(id, (activity, _)): (&Id, &(Arc<Activity>, _))| Some((activity.idle_since()?, *id));
        let longest = self.open.iter().filter_map(idle).min_by_key(|(since, _)| *since);
        if let Some((_, task)) = longest.and_then(|(_, id)| self.open.remove(&id)) {
            task.abort();
        }
    }

    pub(crate) async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}
