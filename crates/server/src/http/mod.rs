//! HTTP: blobs, recipes, plans, names, status.

mod blobs;
mod datasets;
mod graph;
pub(crate) mod json;
pub(crate) mod plans;
mod recipes;
mod refs;
mod runs;
mod sse;

use std::sync::Arc;

use anabranch_engine::options::Class;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{BoxError, Router};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body as _;
use tokio::sync::oneshot;
use tonic::Code;

use crate::connections::Call;
use crate::failure::{Failure, refusal};
use crate::incoming::LATE;
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
async fn body_up_to<B>(body: B, most: usize) -> Result<Bytes, Failure>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let mut body = Limited::new(body, most);
    // Most bodies arrive in one piece, which need not be copied.
    let mut whole = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| body_failure(&*error, most))?;
        match frame.into_data() {
            Ok(data) if whole.is_empty() && joined.is_empty() => whole = data,
            Ok(data) => {
                joined.extend_from_slice(&std::mem::take(&mut whole));
                joined.extend_from_slice(&data);
            }
            // Trailers.
            Err(_) => {}
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if joined.is_empty() { whole } else { joined.freeze() })
}

impl From<axum::Error> for Failure {
    fn from(error: axum::Error) -> Failure {
        body_failure(&error, usize::MAX)
    }
}

/// The body has more than `most` bytes, the client disconnected, or the body failed a check.
fn body_failure(error: &(dyn std::error::Error + 'static), most: usize) -> Failure {
    if error.is::<LengthLimitError>() {
        let most = anabranch_text::size::format(most as u64);
        return Failure::new(Code::OutOfRange, format!("the body has more than {most}"));
    }
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(status) = error.downcast_ref::<tonic::Status>() {
            return Failure::new(status.code(), status.message());
        }
        cause = error.source();
    }
    Failure::new(Code::Cancelled, format!("the body ended early: {error}"))
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
    charge(shared, memory_most).await?;
    shared.bodies.run(move || parse(&text, memory_most)).await?
}

/// Takes memory of the budget for parsed values, until the call is answered. Returns the bytes that were taken.
async fn charge(shared: &Shared, memory: usize) -> Result<usize, Failure> {
    // A program that calls the router itself bounds its own calls.
    let Some(call) = Call::current() else { return Ok(0) };
    match shared.budget.clone().take(call.taker(), memory).await {
        Some(share) => {
            let taken = share.bytes();
            call.hold(share);
            Ok(taken)
        }
        None if call.is_late() => Err(Failure::new(Code::DeadlineExceeded, LATE)),
        None => {
            Err(Failure::new(Code::Unavailable, "other requests take all memory for bodies; try again later"))
        }
    }
}

/// Runs work of a plan request on a thread of the latency pool.
async fn off_workers<T: Send + 'static>(
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

pub(crate) async fn not_allowed(uri: Uri) -> Response {
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

#[cfg(test)]
mod tests {
    use anabranch_recipe::{Executor, Functions};

    use super::*;
    use crate::access::Peer;
    use crate::connections::Activity;
    use crate::{Service, Settings};

    /// A request that waits for memory is answered when its time has passed.
    #[tokio::test]
    async fn nobody_waits_for_memory_longer_than_the_request_has_time() {
        let settings =
            Settings { unfinished_wait: std::time::Duration::from_secs(3600), ..Settings::default() };
        let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), settings);
        let shared = &service.shared;
        let activity =
            Arc::new(Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), Peer::Socket));
        let [holder, call] = [activity.begin(), activity.begin()];
        assert!(holder.try_charge(shared.settings.unfinished_most));
        call.set_deadline(shared.clock.now());
        let charged = call.scope({
            let shared = Arc::clone(shared);
            async move { charge(&shared, 1).await }
        });
        assert_eq!(charged.await.unwrap_err().code, Code::DeadlineExceeded);
        let bounded = activity.begin();
        bounded.set_wait_most(std::time::Duration::ZERO);
        let charged = bounded.scope({
            let shared = Arc::clone(shared);
            async move { charge(&shared, 1).await }
        });
        assert_eq!(charged.await.unwrap_err().code, Code::Unavailable);
    }

    #[tokio::test]
    async fn the_memory_of_parsed_values_is_held_until_the_answer() {
        let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), Settings::default());
        let shared = &service.shared;
        let activity =
            Arc::new(Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), Peer::Socket));
        let call = activity.begin();
        let text = format!("{{\"function\":\"concat/1.0.0\"}}{}", " ".repeat(PARSED_AT_ONCE));
        let parse = call.scope({
            let shared = Arc::clone(shared);
            async move { parsed(&shared, Body::from(text), json::read).await.map(drop) }
        });
        parse.await.unwrap();
        assert!(shared.budget.taken() >= PARSED_AT_ONCE * GROWTH_MOST);
        call.release();
        assert_eq!(shared.budget.taken(), 0);
    }
}
