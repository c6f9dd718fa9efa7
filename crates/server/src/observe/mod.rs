//! The outermost layer. It assigns an id to every request, counts, times and logs it, and sets the headers that every
//! response has.

mod body;
mod fault_log;
mod mask;
mod trace;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::Response;

use crate::access::{Caller, Peer};
use crate::api::{Needs, Place};
use crate::guard::{GuardedAnswer, guard, is_for_tls};
use crate::service::Shared;
use body::Observation;
pub(crate) use body::ObservedBody;
pub(crate) use fault_log::FaultLog;
pub(crate) use mask::mask;
use trace::TRACEPARENT;
pub use trace::{RequestId, TraceContext};
pub(crate) use trace::{RequestIds, TraceHeaders};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The message of a failed response, for the log. It is an extension of the response.
#[derive(Clone, Debug)]
pub(crate) struct FailureMessage(pub(crate) Arc<str>);

/// The facts about a request that its handler needs. It is an extension of requests that the router answers.
#[derive(Clone, Debug)]
pub(crate) struct CallInfo {
    pub(crate) id: RequestId,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) caller: Caller,
    pub(crate) arrival: Arrival,
}

/// The time at which the head of a request arrived. The timeout of a client counts from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival(Instant);

impl Arrival {
    /// The deadline of a request with this timeout; `None` if it is too far in the future to represent.
    pub(crate) fn deadline(self, within: Option<Duration>) -> Option<Instant> {
        self.0.checked_add(within?)
    }
}

/// Lets `handle` answer a request that passes the guard, and observes it.
pub(crate) async fn observed<B, A: Future<Output = Response>>(
    shared: &Arc<Shared>,
    place: Place,
    peer: Peer,
    request: Request<B>,
    handle: impl FnOnce(CallInfo, Request<B>) -> A,
) -> Response<ObservedBody> {
    let began = shared.clock.now();
    let given = RequestId::of_header(request.headers().get(X_REQUEST_ID));
    let id = given.unwrap_or_else(|| shared.request_ids.next());
    let trace = shared.request_ids.trace(request.headers());
    let mut observation = Observation {
        shared: Arc::clone(shared),
        id: id.clone(),
        trace: trace.clone(),
        method: request.method().clone(),
        path: request.uri().path_and_query().cloned(),
        route: shared.metrics.place(place.index(), place.is_grpc()),
        is_grpc: place.is_grpc(),
        caller: None,
        message: None,
        began,
        answered: None,
    };
    // The observation is dropped, and thereby counted, even if the client disconnects first.
    let call = |caller| CallInfo { id: id.clone(), trace: trace.clone(), caller, arrival: Arrival(began) };
    let handle = |caller, request| handle(call(caller), request);
    let (arrival, is_for_tls) = (Arrival(began), is_for_tls(shared, peer, &request));
    let GuardedAnswer { mut answer, caller, open } =
        guard(shared, place, peer, request, arrival, handle).await;
    observation.caller = caller;
    observation.message = answer.extensions_mut().remove::<FailureMessage>().map(|FailureMessage(text)| text);
    let is_open = place.route().is_some_and(|route| route.needs == Needs::Nothing);
    let is_private = shared.access.is_restricted() && !is_open;
    set_headers(answer.headers_mut(), is_private);
    if is_for_tls {
        answer.headers_mut().insert(STRICT_TRANSPORT_SECURITY, ONLY_TLS);
    }
    // A handler sets the header to the id that it found in the body.
    match answer.headers().get(X_REQUEST_ID) {
        Some(header) if header == id.as_str() => {}
        Some(header) => observation.id = RequestId::of_header(Some(header)).unwrap_or(id),
        None => drop(answer.headers_mut().insert(X_REQUEST_ID, id.header())),
    }
    if let Some(trace) = trace {
        answer.headers_mut().insert(TRACEPARENT, trace.header());
    }
    observation.answered(&answer);
    answer.map(|body| ObservedBody::new(body, observation, open))
}

/// The policy of pages of the API (timelines, reports), which contain inline styles and scripts. They load nothing, and
/// their origin is not the server's. Other responses are not pages.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const OTHER_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// For a year.
const ONLY_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The approximate number of headers of a response. A handler that reserves room for them spares the map a copy.
pub(crate) const HEADERS: usize = 12;

/// Adds the headers that the handler has not set.
fn set_headers(headers: &mut HeaderMap, is_private: bool) {
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let policy = if is_page { PAGE_POLICY } else { OTHER_POLICY };
    headers.reserve(HEADERS);
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
        (CONTENT_SECURITY_POLICY, policy),
    ] {
        headers.entry(name).or_insert(value);
    }
    if is_private {
        // A shared cache must not keep a response that needs a token.
        let caching = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
        let private = caching.map(|caching| HeaderValue::from_str(&caching.replace("public", "private")));
        headers.insert(CACHE_CONTROL, private.and_then(Result::ok).unwrap_or(NO_STORE));
    }
}
