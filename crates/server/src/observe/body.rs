//! The body of a response. It counts the bytes, and its end is the end of the request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body as AnyBody;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tracing::{debug, enabled, warn};

use super::{RequestId, TraceContext, mask};
use crate::load::Slot;
use crate::service::Shared;

/// The facts about a request for metrics and the log. Dropping it counts and logs the request.
pub(super) struct Observation {
    pub(super) shared: Arc<Shared>,
    pub(super) id: RequestId,
    pub(super) trace: Option<TraceContext>,
    pub(super) method: Method,
    /// `None` for a request that names only a host.
    pub(super) path: Option<PathAndQuery>,
    /// The index of its route in the metrics.
    pub(super) route: usize,
    pub(super) is_grpc: bool,
    pub(super) caller: Option<Arc<str>>,
    pub(super) message: Option<Arc<str>>,
    pub(super) began: Instant,
    pub(super) answered: Option<ResponseSummary>,
}

/// The status and size of a response.
#[derive(Clone, Copy)]
pub(super) struct ResponseSummary {
    /// The HTTP status.
    status: u16,
    /// The gRPC status, once it is known.
    code: Option<u16>,
    after: Duration,
    bytes: u64,
}

impl Observation {
    pub(super) fn answered(&mut self, answer: &Response) {
        let after = self.shared.clock.now().saturating_duration_since(self.began);
        let status = answer.status().as_u16();
        self.answered = Some(ResponseSummary { status, code: grpc_code(answer.headers()), after, bytes: 0 });
    }

    /// Copies the path, which is a part of the buffer that the head of the request was read into. A connection would keep
    /// that buffer beside its next one for as long as a stream of events is open.
    fn copy_path(&mut self) {
        self.path = self.path.take().map(|path| path.as_str().parse().unwrap_or(path));
    }

    /// The status in metrics and log lines. For gRPC calls, this is the gRPC code, which is below 17.
    fn status(&self) -> u16 {
        // 499 is nginx's status for a client that closed the connection. 1 is gRPC's CANCELLED.
        let gone = if self.is_grpc { 1 } else { 499 };
        match self.answered {
            None => gone,
            Some(ResponseSummary { status, code, .. }) if self.is_grpc && status == 200 => {
                code.unwrap_or(gone)
            }
            Some(answered) => answered.status,
        }
    }

    /// Whether the server is at fault. Refusals because of load are not logged as errors, because there may be many.
    fn is_fault(&self, status: u16) -> bool {
        match self.is_grpc {
            true => matches!(status, 2 | 13 | 15 | 500),
            false => status >= 500 && !matches!(status, 503..=505),
        }
    }

    /// `omitted` is the number of failures before this one that have no line.
    fn log(&self, status: u16, omitted: Option<u64>) {
        let message = self.message.as_deref().map(mask);
        let client = self.caller.as_deref().unwrap_or("-");
        let trace = self.trace.as_ref().map_or("-", TraceContext::trace_id);
        let span = self.trace.as_ref().map_or_else(|| "-".to_owned(), TraceContext::span_id);
        let ResponseSummary { after, bytes, .. } = self.answered.unwrap_or(ResponseSummary {
            status,
            code: None,
            after: self.shared.clock.now().saturating_duration_since(self.began),
            bytes: 0,
        });
        let ms = after.as_secs_f64() * 1e3;
        let (id, method, path) = (
            self.id.as_str(),
            self.method.as_str(),
            mask(self.path.as_ref().map_or("*", PathAndQuery::path)),
        );
        let message = message.as_deref().unwrap_or("-");
        match self.is_fault(status) {
            true => {
                let omitted = omitted.filter(|omitted| *omitted > 0);
                warn!(
                    id,
                    client, method, path, status, ms, bytes, trace, span, message, omitted, "request failed"
                );
            }
            false => debug!(id, client, method, path, status, ms, bytes, trace, span, message, "request"),
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let status = self.status();
        let (after, bytes) =
            self.answered.map_or((None, 0), |answered| (Some(answered.after), answered.bytes));
        self.shared.metrics.record(self.route, status, after, bytes);
        if self.is_fault(status) {
            let omitted = self.shared.fault_log.count((self.route, status), self.shared.clock.now());
            if omitted.is_some() {
                self.log(status, omitted);
            }
        } else if enabled!(tracing::Level::DEBUG) {
            self.log(status, None);
        }
    }
}

fn grpc_code(headers: &HeaderMap) -> Option<u16> {
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}

/// The body of a response.
pub(crate) struct ObservedBody {
    inner: AnyBody,
    /// `None` in tests.
    observation: Option<Observation>,
    _open: Option<Slot>,
}

impl ObservedBody {
    pub(super) fn new(inner: AnyBody, mut observation: Observation, open: Option<Slot>) -> ObservedBody {
        if inner.size_hint().exact().is_none() {
            observation.copy_path();
        }
        ObservedBody { inner, observation: Some(observation), _open: open }
    }

    /// The body of another response, which is sent instead of this one.
    pub(crate) fn replaced_by(mut self, answer: Response) -> ObservedBody {
        self.observation.iter_mut().for_each(|observation| observation.answered(&answer));
        ObservedBody { inner: answer.into_body(), ..self }
    }

    #[cfg(test)]
    pub(crate) fn unobserved(inner: AnyBody) -> ObservedBody {
        ObservedBody { inner, observation: None, _open: None }
    }
}

impl Body for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        let answered = self.observation.as_mut().and_then(|observation| observation.answered.as_mut());
        if let (Poll::Ready(Some(Ok(frame))), Some(answered)) = (&frame, answered) {
            answered.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
            if let Some(code) = frame.trailers_ref().and_then(grpc_code) {
                answered.code = Some(code);
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
