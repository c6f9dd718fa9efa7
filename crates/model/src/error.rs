//! Errors of models, grouped by what the caller can do.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::retry::{Classified, Severity};
use anabranch_text::{count, duration};

/// The reason why a model did not return a usable reply. No message contains a key or a header.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The server limits the request rate.
    #[error("{endpoint}: too many requests ({status}): {message}")]
    Throttled { endpoint: Arc<str>, status: u16, message: String, retry_after: Option<Duration> },

    /// The whole reply was not there in time.
    #[error("{endpoint}: no reply within {}", duration::format(*.after))]
    Timeout { endpoint: Arc<str>, after: Duration },

    /// There is no connection, or it broke.
    #[error("{endpoint}: {cause}")]
    Connection { endpoint: Arc<str>, cause: String },

    /// The server has a fault that may pass.
    #[error("{endpoint}: server error ({status}): {message}")]
    Server { endpoint: Arc<str>, status: u16, message: String },

    /// The reply does not follow the protocol.
    #[error("{endpoint}: the reply is not readable: {found}")]
    Malformed { endpoint: Arc<str>, found: String },

    /// The server does not take the request; it would not take it a second time.
    #[error("{endpoint}: {} ({status}): {message}", .reason.as_str())]
    Rejected { endpoint: Arc<str>, status: u16, reason: Rejection, message: String },

    /// The model refuses to answer.
    #[error("{endpoint}: the model refused: {message}")]
    Refused { endpoint: Arc<str>, message: String },

    /// The provider cannot do this.
    #[error("{endpoint}: {what}")]
    Unsupported { endpoint: Arc<str>, what: String },

    /// No reply had the requested format.
    #[error("{endpoint}: no reply of {} fits: {problem}", count(*.attempts, "call"))]
    ReplyFormat { endpoint: Arc<str>, attempts: u32, problem: String },

    /// The call was not made, because the budget of its caller has no room for it.
    #[error("the call was not made: {0}")]
    Withheld(String),

    /// The configuration is wrong.
    #[error("{0}")]
    Setup(String),
}

/// The reason why a server rejects a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    BadRequest,
    Auth,
    NotFound,
    Quota,
    ContextLength,
    Redirect,
}

impl Rejection {
    fn as_str(self) -> &'static str {
        match self {
            Rejection::BadRequest => "request not accepted",
            Rejection::Auth => "no access",
            Rejection::NotFound => "not found",
            Rejection::Quota => "out of quota",
            Rejection::ContextLength => "longer than the model's context",
            Rejection::Redirect => "redirects are not followed",
        }
    }
}

impl Error {
    /// The class in a table of errors: one short word.
    pub fn class(&self) -> &'static str {
        match self {
            Error::Throttled { .. } => "rate_limited",
            Error::Timeout { .. } | Error::Server { status: 408 | 504, .. } => "timeout",
            Error::Connection { .. } => "connection",
            Error::Server { .. } => "server_error",
            Error::Malformed { .. } => "malformed_reply",
            Error::Rejected { reason, .. } => match reason {
                Rejection::BadRequest | Rejection::Redirect => "bad_request",
                Rejection::Auth => "auth",
                Rejection::NotFound => "not_found",
                Rejection::Quota => "quota",
                Rejection::ContextLength => "context_length",
            },
            Error::Refused { .. } => "refused",
            Error::Unsupported { .. } => "unsupported",
            Error::ReplyFormat { .. } => "reply_format",
            Error::Withheld(_) => "budget",
            Error::Setup(_) => "config",
        }
    }

    /// The calls that were made, at least 1.
    pub fn attempts(&self) -> u32 {
        match self {
            Error::ReplyFormat { attempts, .. } => (*attempts).max(1),
            _ => 1,
        }
    }
}

impl Classified for Error {
    fn severity(&self) -> Severity {
        match self {
            Error::Throttled { retry_after, .. } => Severity::Throttled { retry_after: *retry_after },
            Error::Timeout { .. }
            | Error::Connection { .. }
            | Error::Server { .. }
            | Error::Malformed { .. }
            | Error::Withheld(_) => Severity::Transient,
            Error::Rejected { .. }
            | Error::Refused { .. }
            | Error::Unsupported { .. }
            | Error::ReplyFormat { .. }
            | Error::Setup(_) => Severity::Permanent,
        }
    }
}

/// A text of a server on one line, without control characters, at most 300 characters long.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 300;
    // A body may be megabytes long; no more of it is looked at than can be shown.
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut short = String::new();
    let mut chars = 0;
    for word in words {
        let space = usize::from(!short.is_empty());
        if space == 1 {
            short.push(' ');
        }
        for c in word.chars() {
            if chars + space >= LONGEST {
                short.push('…');
                return short;
            }
            short.push(c);
            chars += 1;
        }
        chars += space;
    }
    short
}
