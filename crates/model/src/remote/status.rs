//! The errors of responses.

use std::sync::Arc;

use anabranch_value::Value;

use super::rates;
use super::retry_after::{LONGEST, retry_after};
use crate::error::{Error, Rejection};
use crate::http::Answer;

/// The error of an answer that is not a reply. `clean` prepares the server's text for a message.
pub(super) fn failure(endpoint: Arc<str>, answer: &Answer, clean: impl Fn(&str) -> String) -> Error {
    let text = String::from_utf8_lossy(&answer.body);
    let body = Value::from_json(&text).unwrap_or_default();
    let (said, code) = said(&body);
    let message = match said {
        Some(said) => clean(said),
        None if text.trim().is_empty() => "no message".to_owned(),
        None => clean(&text),
    };
    let status = match answer.status {
        // An error in the body of a good answer.
        200..300 => inner_status(&body),
        status => status,
    };
    let retry_after = retry_after(&answer.headers).or_else(|| match status {
        429 | 529 => Some(rates(&answer.headers)?.exhausted_for()?.min(LONGEST)),
        _ => None,
    });
    let has = |words: &[&str]| {
        let message = message.to_lowercase();
        words.iter().any(|word| code.contains(word) || message.contains(word))
    };
    let rejected = |reason| Error::Rejected {
        endpoint: Arc::clone(&endpoint),
        status,
        reason,
        message: message.clone(),
    };
    match status {
        429 if has(&["insufficient_quota", "exceeded your current quota", "billing_hard_limit"]) => {
            rejected(Rejection::Quota)
        }
        429 | 529 => Error::Throttled { endpoint, status, message, retry_after },
        503 if retry_after.is_some() => Error::Throttled { endpoint, status, message, retry_after },
        408 | 409 | 425 | 500.. => Error::Server { endpoint, status, message },
        400 | 413 | 422 if has(CONTEXT_WORDS) => rejected(Rejection::ContextLength),
        402 => rejected(Rejection::Quota),
        401 | 403 => rejected(Rejection::Auth),
        404 => rejected(Rejection::NotFound),
        300..400 => rejected(Rejection::Redirect),
        _ => rejected(Rejection::BadRequest),
    }
}

const CONTEXT_WORDS: &[&str] =
    &["context_length", "context length", "context window", "prompt is too long", "too many input tokens"];

/// The text and the code of the usual forms of errors: `{"error": {"message", "code", "type"}}`, `{"error": ".."}`,
/// `{"message"}`, `{"detail"}`.
fn said(body: &Value) -> (Option<&str>, String) {
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let text = ["message", "detail", "error"].iter().find_map(|name| error.get(name)?.as_text());
    let code = ["code", "type"].iter().filter_map(|name| error.get(name)?.as_text()).collect::<Vec<_>>();
    (text.or(error.as_text()), code.join(" ").to_lowercase())
}

/// The status in an error's `code`; 500 if it has none.
fn inner_status(body: &Value) -> u16 {
    let code = body.get("error").and_then(|error| error.get("code"));
    let number = match code {
        Some(Value::Int(code)) => u16::try_from(*code).ok(),
        Some(Value::Text(code)) => code.parse().ok(),
        _ => None,
    };
    number.filter(|status| (400..600).contains(status)).unwrap_or(500)
}
