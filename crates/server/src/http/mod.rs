//! HTTP: blobs, recipes, plans, names, status.

mod blobs;
mod datasets;
mod graph;
pub(crate) mod json;
mod plans;
mod recipes;
mod refs;
mod runs;
mod sse;

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
        .route("/v1/plans", get(plans::list))
        .route("/v1/plans/reload", post(plans::reload_all))
        .route("/v1/plans/{name}", get(plans::describe))
        .route("/v1/plans/{name}/run", post(plans::run))
        .route("/v1/plans/{name}/reload", post(plans::reload))
        .route("/v1/plans/{name}/promote", post(plans::promote))
        .route("/v1/plans/{name}/rollback", post(plans::roll_back))
        .route("/v1/recipes/{target}/graph", get(graph::graph))
        .route("/v1/functions", get(graph::functions))
        .route("/v1/refs", get(refs::list))
        .route("/v1/refs/{name}", get(refs::show).put(refs::set).delete(refs::remove))
        .route("/v1/status", get(status))
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{id}", get(runs::show))
        .route("/v1/runs/{id}/cancel", post(runs::cancel))
        .route("/v1/runs/{id}/events", get(runs::events))
        .route("/v1/runs/{id}/{file}", get(runs::timeline))
        .route("/v1/events", get(runs::all_events))
        .merge(dataset_routes())
        .route("/v1/config", get(config))
        .route("/metrics", get(crate::metrics::page))
        .route("/openapi.json", get(crate::api::openapi))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .method_not_allowed_fallback(not_allowed)
        .with_state(Arc::clone(shared))
}

fn dataset_routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/datasets", get(datasets::list).post(datasets::submit))
        .route("/v1/datasets/{id}", get(datasets::show).delete(datasets::remove))
        .route("/v1/datasets/{id}/cancel", post(datasets::cancel))
        .route("/v1/datasets/{id}/cells", get(datasets::cells))
        .route("/v1/datasets/{id}/rows", get(datasets::rows))
        .route("/v1/datasets/{id}/errors", get(datasets::errors))
        .route("/v1/datasets/{id}/report", get(datasets::report))
        .route("/v1/datasets/{id}/files", get(datasets::files))
        .route("/v1/datasets/{id}/files/{*name}", get(datasets::file))
        .route("/v1/datasets/{id}/download", get(datasets::download))
}

/// The body of a call with a small body.
async fn body(shared: &Shared, body: Body) -> Result<Bytes, Failure> {
    body_up_to(body, shared.settings.body_most).await
}

/// The body of a call, if it has at most `most` bytes.
async fn body_up_to(body: Body, most: usize) -> Result<Bytes, Failure> {
    to_bytes(body, most).await.map_err(|error| {
        match std::error::Error::source(&error)
            .is_some_and(|cause| cause.is::<http_body_util::LengthLimitError>())
        {
            true => Failure::new(
                Code::OutOfRange,
                format!("the body has more than {}", anabranch_text::size::format(most as u64)),
            ),
            false => Failure::from(error),
        }
    })
}

/// The size up to which a body is parsed on the async worker. A larger body is parsed on a blocking thread.
const PARSED_AT_ONCE: usize = 16 << 10;

/// The most memory that one byte of JSON can take once it is parsed. The worst case is `{"":0},`, which is a map.
const GROWTH_MOST: usize = 200;

/// Parses a body within the memory limit of one body.
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
    parsed_in(shared, memory_most, move || parse(&text, memory_most)).await?
}

/// Parses on a blocking thread, once the budget has `memory` bytes for it.
async fn parsed_in<T: Send + 'static>(
    shared: &Shared,
    memory: usize,
    parse: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let Some(_share) = shared.budget.clone().take(memory).await else {
        return Err(Failure::new(
            Code::Unavailable,
            "other requests take all memory for bodies; try again later",
        ));
    };
    off_workers(shared, parse).await
}

/// Runs blocking work on a thread of the latency pool.
pub(crate) async fn off_workers<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (sender, done) = oneshot::channel();
    let work = move || {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // The receiver is gone if the client disconnected.
        let _ = sender.send(done);
    };
    shared.executor.engine().pool(Class::Latency).submit(Box::new(work));
    match done.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err(Failure::new(Code::Internal, "the server panicked on this request")),
        Err(_) => Err(Failure::new(Code::Unavailable, "the server shuts down")),
    }
}

/// The path parameter: a name or an address.
fn path(path: Result<Path<String>, PathRejection>) -> Result<String, Failure> {
    path.map(|Path(path)| path)
        .map_err(|rejection| Failure::new(Code::InvalidArgument, rejection.body_text()))
}

fn wrong_query(rejection: &QueryRejection) -> Failure {
    let text = rejection.body_text();
    let problem = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
    let message =
        format!("the query is wrong: {problem}; GET /openapi.json lists the parameters of each route");
    Failure::new(Code::InvalidArgument, message)
}

/// The client disconnected, or the body failed a check.
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
    axum::Json(json::status(&shared.status().await)).into_response()
}

async fn config(State(shared): State<Arc<Shared>>) -> Response {
    axum::Json(&shared.config).into_response()
}
