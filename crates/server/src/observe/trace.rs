//! Request ids, and the distributed trace of a request.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

/// Identifies a request in its response, in log lines and in the record of its run. Handlers have it in
/// `CallInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId {
    text: Arc<str>,
    /// Whether the id is from the request's `X-Request-Id` header.
    is_of_header: bool,
}

/// The length of the longest id that is accepted from a client.
const ID_MOST: usize = 128;

impl RequestId {
    /// The id that a client sent in the header, if it is well-formed.
    pub(super) fn of_header(header: Option<&HeaderValue>) -> Option<RequestId> {
        let id = RequestId::read(header?.to_str().ok()?)?;
        Some(RequestId { is_of_header: true, ..id })
    }

    /// Parses an id of letters, digits and `-_.:`.
    fn read(text: &str) -> Option<RequestId> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let is_fine = (1..=ID_MOST).contains(&text.len()) && text.bytes().all(fits);
        is_fine.then(|| RequestId { text: text.into(), is_of_header: false })
    }

    /// This id if the client sent it in the header. Otherwise the id of the body, if it is well-formed. Otherwise this
    /// id, which the server generated.
    fn or_of_body(&self, body: Option<&str>) -> RequestId {
        let of_body = body.filter(|_| !self.is_of_header).and_then(RequestId::read);
        of_body.unwrap_or_else(|| self.clone())
    }

    /// The id of a plan request. The request gets it, too, unless its own id is not valid in a header.
    pub(crate) fn name(&self, request: &mut anabranch_plan::Request) -> RequestId {
        let id = self.or_of_body(request.request_id.as_deref());
        if self.is_of_header || request.request_id.is_none() {
            request.request_id = Some(id.as_str().to_owned());
        }
        id
    }

    /// The id of one of several requests in a call. Each may have its own id.
    pub(crate) fn of_part(&self) -> RequestId {
        RequestId { is_of_header: false, ..self.clone() }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.text).expect("ids are visible ASCII")
    }
}

/// Generates ids that are unique across processes.
#[derive(Debug)]
pub(crate) struct RequestIds {
    process: u64,
    spans: RandomState,
    next: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> RequestIds {
        let spans = RandomState::new();
        RequestIds { process: spans.hash_one(0), spans, next: AtomicU64::new(1) }
    }
}

impl RequestIds {
    pub(super) fn next(&self) -> RequestId {
        let (process, count) = (self.process >> 16, self.count());
        // Written by hand, because every request has one: 12 digits, a dash, and at least 6 digits.
        let mut text = [b'-'; 29];
        write_hex(&mut text[..12], process);
        let digits = (16 - count.leading_zeros() as usize / 4).max(6);
        write_hex(&mut text[13..13 + digits], count);
        let text = str::from_utf8(&text[..13 + digits]).expect("hexadecimal digits").into();
        RequestId { text, is_of_header: false }
    }

    /// The trace of a request with these headers, with a new span id for the server.
    pub(super) fn trace(&self, headers: &HeaderMap) -> Option<TraceContext> {
        // A span id of zeros is invalid.
        let span = || self.spans.hash_one(self.count()).max(1);
        TraceContext::read(headers, span)
    }

    fn count(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// Writes the last digits of a number.
fn write_hex(out: &mut [u8], number: u64) {
    for (at, digit) in out.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (4 * at)) as usize % 16];
    }
}

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The distributed trace of a request, from the W3C headers `traceparent` and `tracestate`. Handlers have it in
/// `CallInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: Arc<str>,
    state: Option<Arc<str>>,
    /// The id of the server's span. It is the parent of the server's requests to other servers.
    span: u64,
}

/// The headers of a request to another server. A dataset job stores them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TraceHeaders {
    pub(crate) traceparent: String,
    pub(crate) tracestate: Option<String>,
}

impl TraceHeaders {
    /// The id of the trace.
    pub(crate) fn trace_id(&self) -> &str {
        // The second of the four parts; see `onward_headers`.
        self.traceparent.split('-').nth(1).unwrap_or_default()
    }

    /// Names and values.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, &str)> {
        let state = self.tracestate.as_deref().map(|state| ("tracestate", state));
        std::iter::once(("traceparent", &*self.traceparent)).chain(state).collect()
    }
}

impl TraceContext {
    /// Parses `VERSION-TRACE-PARENT-FLAGS` in lower-case hex digits, neither id all zeros. Later versions than 00 may have
    /// more parts, which are ignored; there is no version ff. `tracestate` is ignored without it.
    fn read(headers: &HeaderMap, span: impl FnOnce() -> u64) -> Option<TraceContext> {
        let text = headers.get(TRACEPARENT)?.to_str().ok()?;
        let mut parts = text.split('-');
        let is_hex = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id = |text: &str, len: usize| is_hex(text, len) && text.bytes().any(|byte| byte != b'0');
        let version = parts.next().filter(|version| is_hex(version, 2) && *version != "ff");
        let is_fine = version.is_some()
            && parts.next().is_some_and(|trace| is_id(trace, 32))
            && parts.next().is_some_and(|parent| is_id(parent, 16))
            && parts.next().is_some_and(|flags| is_hex(flags, 2))
            && (version != Some("00") || parts.next().is_none());
        let states: Vec<&str> =
            headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok()).collect();
        let state = (!states.is_empty()).then(|| states.join(",").into());
        is_fine.then(|| TraceContext { parent: text.into(), state, span: span() })
    }

    /// The request's `traceparent` header.
    pub fn as_str(&self) -> &str {
        &self.parent
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> &str {
        &self.parent[3..35]
    }

    /// The id of the server's span.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// The trace context for requests that a plan sends to other servers.
    pub(crate) fn onward(&self) -> Option<anabranch_plan::source::TraceContext> {
        let TraceHeaders { traceparent, tracestate } = self.onward_headers();
        anabranch_plan::source::TraceContext::new(&traceparent, tracestate.as_deref())
    }

    /// The headers of requests to other servers.
    pub(crate) fn onward_headers(&self) -> TraceHeaders {
        TraceHeaders {
            traceparent: format!("00-{}-{}-{}", self.trace_id(), self.span_id(), &self.parent[53..55]),
            tracestate: self.state.as_deref().map(str::to_owned),
        }
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.parent).expect("it was read from a header")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients() {
        let of = |text: &'static str| RequestId::of_header(Some(&HeaderValue::from_static(text)));
        assert_eq!(of("a-1_b.c:D").unwrap().as_str(), "a-1_b.c:D");
        for wrong in ["", "a b", "a\"b", "a/b", "x\tx"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let ids = RequestIds::default();
        assert_ne!(ids.next(), ids.next());
    }

    #[test]
    fn the_id_of_the_header_comes_before_that_of_the_body() {
        let ids = RequestIds::default();
        let header = RequestId::of_header(Some(&HeaderValue::from_static("header"))).unwrap();
        assert_eq!(header.or_of_body(Some("body")).as_str(), "header");
        let made = ids.next();
        assert_eq!(made.or_of_body(Some("body")).as_str(), "body");
        assert_eq!(made.or_of_body(None), made);
        assert_eq!(made.or_of_body(Some("two words")), made);
    }

    fn context(parent: &str, states: &[&str]) -> Option<TraceContext> {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
        states.iter().for_each(|state| {
            headers.append(TRACESTATE, HeaderValue::from_str(state).unwrap());
        });
        TraceContext::read(&headers, || 0xab)
    }

    #[test]
    fn traces() {
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let fine = format!("00-{trace}-{parent}-01");
        assert_eq!(context(&fine, &[]).unwrap().trace_id(), trace);
        for later in [format!("01-{trace}-{parent}-01"), format!("cc-{trace}-{parent}-01-more")] {
            let onward = context(&later, &[]).unwrap().onward_headers();
            assert_eq!(onward.traceparent, format!("00-{trace}-00000000000000ab-01"), "{later}");
        }
        for wrong in [
            format!("ff-{trace}-{parent}-01"),
            format!("cc-{trace}-{parent}-01more"),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{trace}-{parent}-01-x"),
            format!("00-{trace}-{parent}"),
        ] {
            assert_eq!(context(&wrong, &["a=1"]), None, "{wrong}");
        }
        let onward = format!("00-{trace}-00000000000000ab-01");
        for (states, state) in
            [(&[][..], None), (&["a=1,b=2"], Some("a=1,b=2")), (&["a=1", "b=2"], Some("a=1,b=2"))]
        {
            let expected = anabranch_plan::source::TraceContext::new(&onward, state);
            assert_eq!(context(&fine, states).unwrap().onward(), expected);
        }
    }
}
