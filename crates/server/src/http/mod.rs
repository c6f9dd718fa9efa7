//! HTTP: blobs, recipes, names, status.

mod blobs;
pub(crate) mod json;
mod recipes;
mod refs;

use std::sync::Arc;

use anabranch_engine::options::Class;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::oneshot;
use tonic::Code;

use crate::failure::{Failure, refusal};
use crate::service::Shared;

pub(crate) fn routes(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/blobs", post(blobs::put).put(blobs::put))
        .route("/v1/blobs/{address}", get(blobs::get))
        .route("/v1/recipes", post(recipes::add))
        .route("/v1/recipes/{target}", get(recipes::describe))
        .route("/v1/recipes/{target}/value", get(recipes::value))
        .route("/v1/refs", get(refs::list))
        .route("/v1/refs/{name}", get(refs::show).put(refs::set).delete(refs::remove))
        .route("/v1/status", get(status))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .method_not_allowed_fallback(not_allowed)
        .with_state(Arc::clone(shared))
}

/// The body of a call that is small.
async fn body(shared: &Shared, body: Body) -> Result<Bytes, Failure> {
    let most = shared.settings.body_most;
    to_bytes(body, most).await.map_err(|error| {
        match std::error::Error::source(&error)
            .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>())
        {
            true => Failure::new(Code::OutOfRange, format!("the body has more than {most} bytes")),
            false => Failure::from(error),
        }
    })
}

/// A body up to this size is parsed at once; a larger one on a thread for work that would block others.
const PARSED_AT_ONCE: usize = 16 << 10;

/// A byte of JSON takes no more than so many once it is parsed: `{"":0},` is a map.
const GROWTH_MOST: usize = 200;

/// What a body says, parsed into no more memory than one body may take.
async fn parsed<T: Send + 'static>(
    shared: &Shared,
    body: Body,
    parse: fn(&[u8], usize) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let memory_most = shared.settings.body_memory_most;
    let text = self::body(shared, body).await?;
    if text.len() <= PARSED_AT_ONCE {
        return parse(&text, memory_most);
    }
    let memory_most = memory_most.min(text.len().saturating_mul(GROWTH_MOST));
    let Some(_share) = shared.budget.clone().take(memory_most).await else {
        return Err(Failure::new(
            Code::Unavailable,
            "other requests take all memory for bodies; try again later",
        ));
    };
    let (sender, parsed) = oneshot::channel();
    let work = move || {
        let parsed = std::panic::catch_unwind(|| parse(&text, memory_most));
        // Nobody waits for it if the client is gone.
        let _ = sender.send(parsed);
    };
    shared.executor.engine().pool(Class::Latency).submit(Box::new(work));
    match parsed.await {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(_)) => Err(Failure::new(Code::Internal, "the parser of bodies panicked")),
        Err(_) => Err(Failure::new(Code::Unavailable, "the server shuts down")),
    }
}

/// The part of a route that is a name or an address.
fn path(path: Result<Path<String>, PathRejection>) -> Result<String, Failure> {
    path.map(|Path(path)| path)
        .map_err(|rejection| Failure::new(Code::InvalidArgument, rejection.body_text()))
}

fn wrong_query(rejection: &QueryRejection) -> Failure {
    Failure::new(Code::InvalidArgument, rejection.body_text())
}

/// A client that broke off.
impl From<axum::Error> for Failure {
    fn from(error: axum::Error) -> Failure {
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            if let Some(status) = error.downcast_ref::<tonic::Status>() {
                return Failure::new(status.code(), status.message());
            }
            cause = error.source();
        }
        Failure::new(Code::Cancelled, format!("the body ended early: {error}"))
    }
}

async fn not_allowed(uri: Uri) -> Response {
    let message = format!("{} has no such method", uri.path());
    refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message)
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    match *shared.closing.borrow() {
        true => Failure::new(Code::Unavailable, "the server shuts down").into_response(),
        false => "ok\n".into_response(),
    }
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    axum::Json(json::status(&shared.executor.status())).into_response()
}
