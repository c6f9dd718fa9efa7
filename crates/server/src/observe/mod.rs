//! The outermost layer: it gives every request an id, counts and times it, logs it, and sets the headers that every
//! answer has.

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

use crate::access::Caller;
use crate::api::{self, Needs};
use crate::guard::is_grpc_path;
use crate::service::Shared;
pub(crate) use body::OpenCall;
use body::{Observation, ObservedBody};
pub(crate) use mask::mask;
pub(crate) use trace::RequestIds;
pub use trace::{RequestId, TraceContext};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The sentence of a failed answer, for the log: an extension of the answer.
#[derive(Clone, Debug)]
pub(crate) struct FailureMessage(pub(crate) Arc<str>);

/// Who called: an extension of the answer, for the log.
#[derive(Clone, Debug)]
pub(crate) struct CalledBy(pub(crate) Caller);

pub(crate) async fn observe(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let began = shared.clock.now();
    let id = RequestId::of(request.headers().get(X_REQUEST_ID)).unwrap_or_else(|| shared.request_ids.next());
    let trace = TraceContext::of(request.headers().get(TRACEPARENT));
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = request.uri().path().to_owned();
    let is_grpc = is_grpc_path(&path);
    let route = match is_grpc {
        true => api::grpc_place(&path),
        false => matched.and_then(|matched| api::find(request.method(), &matched)),
    };
    let mut observation = Observation {
        shared: Arc::clone(&shared),
        id: id.clone(),
        trace: trace.clone(),
        method: request.method().clone(),
        path,
        route: shared.metrics.place(route, is_grpc),
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
    // The observation is dropped, and counted, also if the client goes away first.
    let mut answer = next.run(request).await;
    observation.caller = answer.extensions_mut().remove::<CalledBy>().map(|CalledBy(caller)| caller.name);
    observation.message = answer.extensions_mut().remove::<FailureMessage>().map(|FailureMessage(text)| text);
    let needs = route.filter(|_| !is_grpc).map(|at| api::ROUTES[at].needs);
    let is_private = shared.access.is_restricted() && needs != Some(Needs::Nothing);
    set_headers(answer.headers_mut(), is_private);
    answer.headers_mut().insert(X_REQUEST_ID, id.header());
    if let Some(trace) = trace {
        answer.headers_mut().insert(TRACEPARENT, trace.header());
    }
    let open = answer.extensions_mut().remove::<OpenCall>();
    observation.answered(&answer);
    answer.map(|body| axum::body::Body::new(ObservedBody::new(body, observation, open)))
}

/// Pages may load what this server serves, and nothing else. Other answers are not pages.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const OTHER_POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Headers that a handler has set stay.
fn set_headers(headers: &mut HeaderMap, is_private: bool) {
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let policy = if is_page { PAGE_POLICY } else { OTHER_POLICY };
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
        // A cache that several users share must not keep what needs a token.
        let private = caching.replace("public", "private");
        if let Ok(value) = HeaderValue::from_str(&private) {
            headers.insert(CACHE_CONTROL, value);
        }
    }
}
