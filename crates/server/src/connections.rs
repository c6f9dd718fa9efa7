//! Connections and their calls: which connections are idle, and which one is closed to make room for another.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// The numbers of open connections and calls of a server.
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
    /// The time at which the client last sent or read something.
    last: Instant,
}

impl Activity {
    pub(crate) fn new(clock: Arc<dyn Clock>, traffic: Arc<Traffic>, peer: Peer) -> Activity {
        traffic.connections.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(ActivityState { calls: 0, waiting: 0, last: clock.now() });
        Activity { clock, traffic, peer, state }
    }

    /// The client.
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
        Arc::new(Call {
            activity: Arc::clone(self),
            waiting: AtomicBool::new(false),
            share: Mutex::default(),
        })
    }

    /// The time at which the client last sent or read something; `None` while the server works for it.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.calls == state.waiting).then_some(state.last)
    }

    /// Waits until the connection has had no call for `timeout`.
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

/// One call, from its headers until its response is sent or cancelled.
pub(crate) struct Call {
    activity: Arc<Activity>,
    waiting: AtomicBool,
    share: Mutex<Option<Share>>,
}

impl Call {
    /// Sets whether the call waits for the client to send or to read.
    pub(crate) fn set_waiting(&self, waiting: bool) {
        if self.waiting.swap(waiting, Ordering::Relaxed) == waiting {
            return;
        }
        let mut state = self.activity.lock();
        match waiting {
            true => state.waiting += 1,
            false => state.waiting -= 1,
        }
        state.last = self.activity.clock.now();
    }

    /// Adds a share of the byte budget to those that the call holds.
    pub(crate) fn hold(&self, share: Share) {
        match &mut *self.share() {
            Some(held) => held.merge(share),
            none => *none = Some(share),
        }
    }

    /// Returns the call's share of the byte budget.
    pub(crate) fn release(&self) {
        *self.share() = None;
    }

    fn share(&self) -> MutexGuard<'_, Option<Share>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The body of a response. It keeps its call open.
pub(crate) struct OutgoingBody {
    inner: AnyBody,
    call: Arc<Call>,
    kind: AnswerKind,
}

/// The reason why a response may have nothing to send for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The server is computing it.
    Value,
    /// No event has happened.
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
        // After a frame, the body is polled again only when the client has read it.
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
    /// The number of connections, including those that are being closed.
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

    /// Waits for a connection to end; `None` if there is none.
    pub(crate) async fn join_next(&mut self) -> Option<()> {
        let ended = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&ended);
        Some(())
    }

    /// Closes the connection that has been idle longest. Connections that the server works for stay.
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
