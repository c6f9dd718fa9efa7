//! The request that a read is made for, as far as sources need it.

use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::bounds::Budget;

/// The request that a read is made for.
#[derive(Clone, Copy, Debug)]
pub struct ReadContext<'a> {
    /// Counts the reply before memory is allocated for it.
    pub budget: &'a Arc<Budget>,
    /// The distributed trace of the request, if there is one.
    pub trace: Option<&'a TraceContext>,
}

impl<'a> From<&'a Arc<Budget>> for ReadContext<'a> {
    fn from(budget: &'a Arc<Budget>) -> ReadContext<'a> {
        ReadContext { budget, trace: None }
    }
}

/// A distributed trace in the format of W3C Trace Context: the headers `traceparent` and `tracestate`, which HTTP
/// sources receive with every trip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: HeaderValue,
    state: Option<HeaderValue>,
}

impl TraceContext {
    /// The context of these headers; none if they cannot be headers. Their contents are the caller's to check.
    pub fn new(parent: &str, state: Option<&str>) -> Option<TraceContext> {
        let parent = HeaderValue::from_str(parent).ok()?;
        let state = state.map(HeaderValue::from_str).transpose().ok()?;
        Some(TraceContext { parent, state })
    }

    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(HeaderName::from_static("traceparent"), self.parent.clone());
        if let Some(state) = &self.state {
            headers.insert(HeaderName::from_static("tracestate"), state.clone());
        }
    }
}
