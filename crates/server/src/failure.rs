//! The responses to failed calls, over gRPC and HTTP.

use std::borrow::Cow;
use std::io;

use anabranch_content::Error as StoreError;
use anabranch_engine::admission::Refused;
use anabranch_recipe::{Error, Fault};
use anabranch_text::size;
use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tonic::{Code, Status};

use crate::observe::FailureMessage;
use crate::wire::MalformedMessage;

/// The failure of a call: a code, and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        // The source of the stream is the client's upload. It has already described its failure.
        if let Error::Store(StoreError::Source(cause)) = &error
            && let Some(failure) = cause.downcast_ref::<Failure>()
        {
            return failure.clone();
        }
        Failure { code: status_of(&error), message: with_causes(&error) }
    }
}

/// An error and its causes. Some error messages include their cause.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::from(Error::Store(error))
    }
}

impl From<MalformedMessage> for Failure {
    fn from(bad: MalformedMessage) -> Failure {
        Failure::new(Code::InvalidArgument, bad.0)
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        status(failure.code, &failure.message)
    }
}

/// The status of a gRPC call with a message that may repeat a part of the request.
pub(crate) fn status(code: Code, message: &str) -> Status {
    Status::new(code, shortened(message, STATUS_MOST))
}

/// The longest message over HTTP, in bytes. A message may repeat a part of a large request.
const MESSAGE_MOST: usize = 64 << 10;

/// The longest message over gRPC, where it is a header. Clients take headers of 8 to 16 KiB, and a byte may take three.
const STATUS_MOST: usize = 2 << 10;

/// The message, without its middle if it is longer than this.
fn shortened(message: &str, most: usize) -> Cow<'_, str> {
    if message.len() <= most {
        return message.into();
    }
    let head = message.floor_char_boundary(most / 2);
    let tail = message.ceil_char_boundary(message.len() - most / 4);
    let left_out = size::format((tail - head) as u64);
    format!("{} ... ({left_out} left out) ... {}", &message[..head], &message[tail..]).into()
}

/// The response to a gRPC call.
pub(crate) type Answer<T> = Result<tonic::Response<T>, Status>;

/// Converts the result of a call into its response.
pub(crate) async fn answer<T>(call: impl Future<Output = Result<T, Failure>>) -> Answer<T> {
    Ok(tonic::Response::new(call.await?))
}

/// The code of an error. `Internal` is for errors that only a bug in this program can cause.
pub(crate) fn status_of(error: &Error) -> Code {
    match error {
        Error::NotFound { .. } | Error::NoSuchName { .. } | Error::NotInside { .. } => Code::NotFound,
        Error::NotARecipe { .. } | Error::NoSuchFunction { .. } => Code::FailedPrecondition,
        Error::Malformed(_) | Error::Ambiguous { .. } => Code::InvalidArgument,
        Error::Function { fault, .. } => match fault {
            Fault::Inputs { .. } | Fault::Param { .. } | Fault::Input { .. } => Code::InvalidArgument,
            Fault::TooLarge { .. } | Fault::TooLong { .. } | Fault::Memory { .. } => Code::ResourceExhausted,
            Fault::Transient(_) | Fault::Stopped => Code::Unavailable,
        },
        Error::TooMany { .. } => Code::ResourceExhausted,
        Error::Lost { .. } | Error::Stopped => Code::Unavailable,
        Error::Deadline => Code::DeadlineExceeded,
        Error::Refused(refused) => match refused {
            Refused::Draining | Refused::Busy { .. } => Code::Unavailable,
            Refused::DeadlinePassed { .. } => Code::DeadlineExceeded,
            Refused::ZeroInFlight | Refused::UnknownLimit(_) | Refused::ReserveCount { .. } => Code::Internal,
        },
        Error::Store(error) => status_of_store(error),
        Error::Panicked { .. } | Error::InsideRuntime => Code::Internal,
        _ => Code::Unknown,
    }
}

fn status_of_store(error: &StoreError) -> Code {
    match error {
        StoreError::Disk { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => {
            Code::ResourceExhausted
        }
        StoreError::Disk { .. } | StoreError::Broken(_) | StoreError::Index { .. } | StoreError::Closed => {
            Code::Unavailable
        }
        StoreError::Corrupt { .. } => Code::DataLoss,
        StoreError::Owned { .. } | StoreError::Format { .. } | StoreError::Newer { .. } => {
            Code::FailedPrecondition
        }
        StoreError::Quota { .. } => Code::ResourceExhausted,
        StoreError::TooLarge { .. } => Code::OutOfRange,
        StoreError::Setting { .. }
        | StoreError::Name { .. }
        | StoreError::Archive { .. }
        | StoreError::Description(_)
        | StoreError::Prefix { .. } => Code::InvalidArgument,
        StoreError::Missing { .. } => Code::NotFound,
        StoreError::Alias { .. } | StoreError::Held { .. } => Code::FailedPrecondition,
        StoreError::Torn | StoreError::Moving { .. } | StoreError::NameConflict { .. } => Code::Aborted,
        StoreError::Source(_) => Code::Cancelled,
        StoreError::Panicked | StoreError::WouldBlock => Code::Internal,
    }
}

/// The HTTP status of a code, and its word in the response.
pub(crate) fn over_http(code: Code) -> (u16, &'static str) {
    match code {
        Code::InvalidArgument => (400, "invalid_argument"),
        Code::NotFound => (404, "not_found"),
        Code::FailedPrecondition => (409, "failed_precondition"),
        Code::Aborted => (409, "aborted"),
        Code::OutOfRange => (413, "too_large"),
        Code::ResourceExhausted => (429, "resource_exhausted"),
        Code::Cancelled => (499, "cancelled"),
        Code::Unimplemented => (501, "unimplemented"),
        Code::Unavailable => (503, "unavailable"),
        Code::DeadlineExceeded => (504, "deadline_exceeded"),
        Code::DataLoss => (500, "data_loss"),
        _ => (500, "internal"),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, word) = over_http(self.code);
        let status = StatusCode::from_u16(status).expect("the table has statuses of three digits");
        refusal(status, word, &self.message)
    }
}

/// A response with the error and, if a retry may help, the time of the retry.
pub(crate) fn refusal(status: StatusCode, word: &str, message: &str) -> Response {
    let message = shortened(message, MESSAGE_MOST);
    let body = serde_json::json!({ "error": { "code": word, "message": message } });
    let mut answer = (status, Json(body)).into_response();
    answer.extensions_mut().insert(FailureMessage((*message).into()));
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn the_middle_of_a_long_message_is_left_out() {
        assert_eq!(shortened("short", 5), "short");
        let long = format!("begin {} end", "é".repeat(1000));
        let shown = shortened(&long, 101);
        assert!(shown.len() <= 120, "{shown}");
        assert!(shown.starts_with("begin éé") && shown.ends_with("éé end"), "{shown}");
        assert!(shown.contains("é ... (1.9 KiB left out) ... é"), "{shown}");
    }
}
