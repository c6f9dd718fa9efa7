//! Ids of requests, and the trace that a request is a part of.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::HeaderValue;

/// Names a request in answers and log lines: an extension of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

/// The longest id that is taken from a client.
const ID_MOST: usize = 128;

impl RequestId {
    /// The id that a client gave, if it is well-formed: letters, digits and `-_.:`.
    pub(super) fn of(header: Option<&HeaderValue>) -> Option<RequestId> {
        let text = header?.to_str().ok()?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let is_fine = (1..=ID_MOST).contains(&text.len()) && text.bytes().all(fits);
        is_fine.then(|| RequestId(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("ids are visible ASCII")
    }
}

/// Makes ids that no other process makes.
#[derive(Debug)]
pub(crate) struct RequestIds {
    process: u64,
    next: AtomicU64,
}

impl Default for RequestIds {
    fn default() -> RequestIds {
        RequestIds { process: RandomState::new().hash_one(0), next: AtomicU64::new(1) }
    }
}

impl RequestIds {
    pub(super) fn next(&self) -> RequestId {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        RequestId(format!("{:012x}-{count:06x}", self.process >> 16).into())
    }
}

/// The trace that a request is a part of, as the W3C header `traceparent` has it: an extension of requests with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext(Arc<str>);

impl TraceContext {
    /// Reads version 00: `00-TRACE-PARENT-FLAGS` in lower-case hex digits, neither id all zeros.
    pub(super) fn of(header: Option<&HeaderValue>) -> Option<TraceContext> {
        let text = header?.to_str().ok()?;
        let mut parts = text.split('-');
        let is_hex = |text: &str, len: usize| {
            text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id = |text: &str, len: usize| is_hex(text, len) && text.bytes().any(|byte| byte != b'0');
        let is_fine = parts.next() == Some("00")
            && parts.next().is_some_and(|trace| is_id(trace, 32))
            && parts.next().is_some_and(|parent| is_id(parent, 16))
            && parts.next().is_some_and(|flags| is_hex(flags, 2))
            && parts.next().is_none();
        is_fine.then(|| TraceContext(text.into()))
    }

    /// The header, to pass on.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the trace.
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("it was read from a header")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients() {
        let of = |text: &'static str| RequestId::of(Some(&HeaderValue::from_static(text)));
        assert_eq!(of("a-1_b.c:D").unwrap().as_str(), "a-1_b.c:D");
        for wrong in ["", "a b", "a\"b", "a/b", "x\tx"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let ids = RequestIds::default();
        assert_ne!(ids.next(), ids.next());
    }

    #[test]
    fn traces() {
        let of = |text: &str| TraceContext::of(Some(&HeaderValue::from_str(text).unwrap()));
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let fine = format!("00-{trace}-{parent}-01");
        assert_eq!(of(&fine).unwrap().trace_id(), trace);
        for wrong in [
            format!("01-{trace}-{parent}-01"),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{trace}-{parent}-01-x"),
            format!("00-{trace}-{parent}"),
        ] {
            assert_eq!(of(&wrong), None, "{wrong}");
        }
    }
}
