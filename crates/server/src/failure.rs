//! What a failed call is answered with, over gRPC and HTTP alike.

use std::error::Error as _;
use std::io;

use anabranch_content::Error as Kept;
use anabranch_engine::admission::Refused;
use anabranch_recipe::{Error, Fault};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tonic::{Code, Status};

use crate::observe::FailureMessage;
use crate::wire::Bad;

/// Why a call failed: a code, and a sentence for people.
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
        // The source of a stream is a client, and its failure was reported when it happened.
        if let Error::Store(Kept::Source(cause)) = &error
            && let Some(failure) = cause.downcast_ref::<Failure>()
        {
            return failure.clone();
        }
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        Failure { code: status_of(&error), message }
    }
}

impl From<Kept> for Failure {
    fn from(error: Kept) -> Failure {
        Failure::from(Error::Store(error))
    }
}

impl From<Bad> for Failure {
    fn from(bad: Bad) -> Failure {
        Failure::new(Code::InvalidArgument, bad.0)
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        Status::new(failure.code, failure.message)
    }
}

/// What a call of gRPC is answered with.
pub(crate) type Answer<T> = Result<tonic::Response<T>, Status>;

/// Whatever fails in a call, as the wire has it.
pub(crate) async fn answer<T>(call: impl Future<Output = Result<T, Failure>>) -> Answer<T> {
    Ok(tonic::Response::new(call.await?))
}

/// Which kind of failure an error is. `Internal` is left to what can only be a mistake of this program.
pub(crate) fn status_of(error: &Error) -> Code {
    match error {
        Error::NotFound { .. } | Error::NoSuchName { .. } | Error::NotInside { .. } => Code::NotFound,
        Error::NotARecipe { .. } | Error::NoSuchFunction { .. } => Code::FailedPrecondition,
        Error::Malformed(_) | Error::Ambiguous { .. } => Code::InvalidArgument,
        Error::Function { fault, .. } => match fault {
            Fault::Inputs { .. } | Fault::Param { .. } | Fault::Input { .. } => Code::InvalidArgument,
            Fault::TooLarge { .. } | Fault::TooLong { .. } | Fault::Memory { .. } => Code::ResourceExhausted,
            Fault::Passing(_) | Fault::Stopped => Code::Unavailable,
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

fn status_of_store(error: &Kept) -> Code {
    match error {
        Kept::Disk { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => Code::ResourceExhausted,
        Kept::Disk { .. } | Kept::Broken(_) | Kept::Index { .. } | Kept::Closed => Code::Unavailable,
        Kept::Corrupt { .. } => Code::DataLoss,
        Kept::Owned { .. } | Kept::Format { .. } | Kept::Newer { .. } => Code::FailedPrecondition,
        Kept::Quota { .. } => Code::ResourceExhausted,
        Kept::TooLarge { .. } => Code::OutOfRange,
        Kept::Setting { .. }
        | Kept::Name { .. }
        | Kept::Archive { .. }
        | Kept::Description(_)
        | Kept::Prefix { .. } => Code::InvalidArgument,
        Kept::Missing { .. } => Code::NotFound,
        Kept::Alias { .. } | Kept::Held { .. } => Code::FailedPrecondition,
        Kept::Torn | Kept::Moving { .. } | Kept::NameConflict { .. } => Code::Aborted,
        Kept::Source(_) => Code::Cancelled,
        Kept::Panicked | Kept::WouldBlock => Code::Internal,
    }
}

/// A code over HTTP: its status, and its word in the answer.
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

/// An answer that says what is wrong.
pub(crate) fn refusal(status: StatusCode, word: &str, message: &str) -> Response {
    let body = serde_json::json!({ "error": { "code": word, "message": message } });
    let mut answer = (status, Json(body)).into_response();
    answer.extensions_mut().insert(FailureMessage(message.into()));
    answer
}
