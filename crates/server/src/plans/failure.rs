//! The failures of plan requests, over HTTP and gRPC.

use std::time::Duration;

use anabranch_engine::Failure as NodeFailure;
use anabranch_engine::admission::Refused;
use anabranch_plan::source;
use anabranch_plan::{Error, OpError, RequestError};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tonic::{Code, Status};

use crate::failure::{Failure, refusal};

/// The failure of a plan request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanFailure {
    pub(crate) status: StatusCode,
    /// The error word in JSON.
    pub(crate) word: &'static str,
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The time after which a retry makes sense.
    pub(crate) retry_after: Option<Duration>,
}

/// The default time before a retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type Class = (StatusCode, &'static str, Code);

const LATE: Class = (StatusCode::GATEWAY_TIMEOUT, "deadline_exceeded", Code::DeadlineExceeded);
const BUSY: Class = (StatusCode::SERVICE_UNAVAILABLE, "unavailable", Code::Unavailable);
const OVERLOADED: Class = (StatusCode::SERVICE_UNAVAILABLE, "overloaded", Code::Unavailable);
const SOURCE: Class = (StatusCode::BAD_GATEWAY, "source_failed", Code::Unavailable);
const TOO_MUCH: Class = (StatusCode::UNPROCESSABLE_ENTITY, "over_budget", Code::ResourceExhausted);
const NODE: Class = (StatusCode::UNPROCESSABLE_ENTITY, "node_failed", Code::FailedPrecondition);
const BUG: Class = (StatusCode::INTERNAL_SERVER_ERROR, "internal", Code::Internal);

impl PlanFailure {
    fn new((status, word, code): Class, message: String) -> PlanFailure {
        PlanFailure { status, word, code, message, retry_after: None }
    }

    /// The plan has no version that can run.
    pub(crate) fn not_loaded(name: &str, problem: Option<&str>) -> PlanFailure {
        let problem = problem.unwrap_or("it was not loaded");
        PlanFailure::new(BUSY, format!("plan `{name}` cannot be served: {problem}"))
    }
}

impl From<&Error> for PlanFailure {
    fn from(error: &Error) -> PlanFailure {
        let failure = PlanFailure::new(class(error), error.to_string());
        let retry_after = match error {
            Error::Overloaded { retry_after, .. } => Some(*retry_after),
            Error::Refused(Refused::Draining | Refused::Busy { .. }) | Error::Cut { .. } => Some(RETRY_AFTER),
            _ => None,
        };
        PlanFailure { retry_after, ..failure }
    }
}

fn class(error: &Error) -> Class {
    match error {
        error if error.is_late() => LATE,
        Error::Overloaded { .. } => OVERLOADED,
        Error::Refused(Refused::Draining | Refused::Busy { .. }) | Error::Cut { .. } => BUSY,
        Error::Node { failure, .. } => match &**failure {
            NodeFailure::Timeout(_) => LATE,
            NodeFailure::Error(OpError::Source(source::Error::Timeout { .. })) => LATE,
            NodeFailure::Error(OpError::Source(_)) => SOURCE,
            NodeFailure::Error(OpError::Budget(_)) => TOO_MUCH,
            NodeFailure::Error(_) => NODE,
            _ => BUG,
        },
        _ => BUG,
    }
}

/// A malformed request.
impl From<RequestError> for PlanFailure {
    fn from(error: RequestError) -> PlanFailure {
        let class = (StatusCode::BAD_REQUEST, "invalid_argument", Code::InvalidArgument);
        PlanFailure::new(class, error.to_string())
    }
}

/// The failures that all routes share.
impl From<Failure> for PlanFailure {
    fn from(failure: Failure) -> PlanFailure {
        let (status, word) = crate::failure::over_http(failure.code);
        let status = StatusCode::from_u16(status).expect("the table has statuses of three digits");
        PlanFailure { status, word, code: failure.code, message: failure.message, retry_after: None }
    }
}

impl From<PlanFailure> for Status {
    fn from(failure: PlanFailure) -> Status {
        let mut status = crate::failure::status(failure.code, &failure.message);
        if let Some(after) = failure.retry_after
            && let Ok(text) = after.as_millis().to_string().parse()
        {
            // gRPC clients know this header.
            status.metadata_mut().insert("grpc-retry-pushback-ms", text);
        }
        status
    }
}

impl IntoResponse for PlanFailure {
    fn into_response(self) -> Response {
        let mut response = refusal(self.status, self.word, &self.message);
        if let Some(after) = self.retry_after {
            // The header takes whole seconds.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert("retry-after", HeaderValue::from(seconds.max(1)));
        }
        response
    }
}
