//! The outermost layer. It assigns an id to every request, counts, times and logs it, and sets the headers that every
//! response has.

mod body;
mod mask;
mod trace;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::middleware::Next;
use axum::response::Response;

use crate::api::{self, Needs};
use crate::guard::{GuardedAnswer, guard, is_grpc_path};
use crate::service::Shared;
use body::{Observation, ObservedBody};
pub(crate) use mask::mask;
use trace::TRACEPARENT;
pub use trace::{RequestId, TraceContext};
pub(crate) use trace::{RequestIds, TraceHeaders};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The message of a failed response, for the log. It is an extension of the response.
#[derive(Clone, Debug)]
pub(crate) struct FailureMessage(pub(crate) Arc<str>);

/// Answers a request that passes the guard, and observes it.
pub(crate) async fn observe(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let began = shared.clock.now();
    let given = RequestId::of_header(request.headers().get(X_REQUEST_ID));
    let id = given.unwrap_or_else(|| shared.request_ids.next());
    let trace = shared.request_ids.trace(request.headers());
    let path = request.uri().path();
    let is_grpc = is_grpc_path(path);
    let place = match (is_grpc, request.extensions().get::<MatchedPath>()) {
        (true, _) => api::grpc_place(path),
        (false, matched) => matched.and_then(|matched| api::find(request.method(), matched.as_str())),
    };
    let route = place.filter(|_| !is_grpc).map(|place| &api::ROUTES[place]);
    let mut observation = Observation {
        shared: Arc::clone(&shared),
        id: id.clone(),
        trace: trace.clone(),
        method: request.method().clone(),
        uri: request.uri().clone(),
        route: shared.metrics.place(place, is_grpc),
        is_grpc,
        caller: None,
        message: None,
        began,
        answered: None,
    };
    request.extensions_mut().insert(id.clone());
    if let Some(trace) = &trace {
        request.extensions_mut().insert(trace.clone());
    }
    // The observation is dropped, and thereby counted, even if the client disconnects first.
    let GuardedAnswer { mut answer, caller, open } = guard(&shared, route, request, next).await;
    observation.caller = caller;
    observation.message = answer.extensions_mut().remove::<FailureMessage>().map(|FailureMessage(text)| text);
    let is_open = route.is_some_and(|route| route.needs == Needs::Nothing);
    let is_private = shared.access.is_restricted() && !is_open;
    set_headers(answer.headers_mut(), is_private);
    // A handler sets the header to the id that it found in the body.
    match RequestId::of_header(answer.headers().get(X_REQUEST_ID)) {
        Some(id) => observation.id = id,
        None => drop(answer.headers_mut().insert(X_REQUEST_ID, id.header())),
    }
    if let Some(trace) = trace {
        answer.headers_mut().insert(TRACEPARENT, trace.header());
    }
    observation.answered(&answer);
    answer.map(|body| axum::body::Body::new(ObservedBody::new(body, observation, open)))
}

/// The policy of pages of the API (timelines, reports), which contain inline styles and scripts. They load nothing, and
/// their origin is not the server's. Other responses are not pages.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const OTHER_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// The approximate number of headers that are added to the handler's.
const HEADERS: usize = 12;

/// Adds the headers that the handler has not set.
fn set_headers(headers: &mut HeaderMap, is_private: bool) {
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let policy = if is_page { PAGE_POLICY } else { OTHER_POLICY };
    headers.reserve(HEADERS);
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
        (CONTENT_SECURITY_POLICY, policy),
    ] {
        headers.entry(name).or_insert(value);
    }
    if is_private {
        let caching = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or("no-store");
        // A shared cache must not keep a response that needs a token.
        let private = caching.replace("public", "private");
        if let Ok(value) = HeaderValue::from_str(&private) {
            headers.insert(CACHE_CONTROL, value);
        }
    }
}
