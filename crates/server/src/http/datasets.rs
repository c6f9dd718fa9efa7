//! Datasets: submit, watch, cancel, read.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tonic::Code;

use super::blobs::WantedRange;
use crate::api::DATASETS_MOST;
use crate::datasets::{CellQuery, Datasets, Download, RowQuery, Submission};
use crate::failure::Failure;
use crate::observe::{CallInfo, TraceContext};
use crate::runs::RunId;
use crate::service::Shared;

type QueryResult<T> = Result<Query<T>, QueryRejection>;
type PathResult = Result<Path<String>, PathRejection>;

fn datasets(shared: &Shared) -> Result<&Datasets, Failure> {
    shared
        .datasets
        .as_ref()
        .ok_or_else(|| Failure::new(Code::Unimplemented, "this server builds no datasets"))
}

fn id(path: PathResult) -> Result<RunId, Failure> {
    let text = super::path(path)?;
    text.parse().map_err(|_| {
        let message = format!("{} is not the id of a dataset", anabranch_text::quote(&text));
        Failure::new(Code::InvalidArgument, message)
    })
}

fn asked<T>(query: QueryResult<T>) -> Result<T, Failure> {
    query.map(|Query(query)| query).map_err(|rejection| super::wrong_query(&rejection))
}

/// Accepts a dataset. It is durable when the response is sent.
pub(super) async fn submit(
    State(shared): State<Arc<Shared>>,
    http: axum::extract::Request,
) -> Result<Response, Failure> {
    let datasets = datasets(&shared)?;
    let (parts, body) = http.into_parts();
    let call = parts.extensions.get::<CallInfo>();
    let client = call.map(|call| Arc::clone(&call.caller.name)).unwrap_or_default();
    let trace = call.and_then(|call| call.trace.as_ref()).map(TraceContext::onward_headers);
    let key = parts.headers.get("idempotency-key").map(|key| key.to_str().map(str::to_owned));
    let key =
        key.transpose().map_err(|_| Failure::new(Code::InvalidArgument, "`Idempotency-Key` is not text"))?;
    let text = super::body(&shared, body).await?;
    datasets.check_body(text.len())?;
    let submission = shared.bodies.run(move || Submission::read(&text, key)).await??.with_trace(trace);
    let job = datasets.submit(submission.with_client(&client)).await?;
    let location = [(LOCATION, format!("/v1/datasets/{}", job.id))];
    Ok((StatusCode::ACCEPTED, location, Json(json!({ "id": job.id, "run": job.run }))).into_response())
}

/// The query of a list of datasets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
    limit: Option<usize>,
    before: Option<String>,
}

pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    query: QueryResult<Listing>,
) -> Result<Response, Failure> {
    let Listing { limit, before } = asked(query)?;
    let limit = limit.unwrap_or(50);
    if !(1..=DATASETS_MOST as usize).contains(&limit) {
        let message = format!("`limit` is {limit}; it may be 1 to {DATASETS_MOST}");
        return Err(Failure::new(Code::InvalidArgument, message));
    }
    let before = before.map(|text| id(Ok(Path(text)))).transpose()?;
    Ok(Json(datasets(&shared)?.list(before, limit).await?).into_response())
}

pub(super) async fn show(State(shared): State<Arc<Shared>>, path: PathResult) -> Result<Response, Failure> {
    Ok(Json(datasets(&shared)?.show(id(path)?).await?).into_response())
}

pub(super) async fn cancel(State(shared): State<Arc<Shared>>, path: PathResult) -> Result<Response, Failure> {
    let id = id(path)?;
    datasets(&shared)?.cancel(id).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": id }))).into_response())
}

pub(super) async fn remove(State(shared): State<Arc<Shared>>, path: PathResult) -> Result<Response, Failure> {
    datasets(&shared)?.remove(id(path)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The states of cells as bytes. The headers describe their layout.
pub(super) async fn cells(
    State(shared): State<Arc<Shared>>,
    path: PathResult,
    query: QueryResult<CellQuery>,
) -> Result<Response, Failure> {
    let cells = datasets(&shared)?.cells(id(path)?, asked(query)?).await?;
    let headers = [
        ("content-type", "application/octet-stream".to_owned()),
        ("x-columns", cells.columns.to_string()),
        ("x-bucket", cells.bucket.to_string()),
        ("x-event", cells.event.to_string()),
    ];
    Ok((headers, cells.bytes).into_response())
}

pub(super) async fn rows(
    State(shared): State<Arc<Shared>>,
    path: PathResult,
    query: QueryResult<RowQuery>,
) -> Result<Response, Failure> {
    let rows = datasets(&shared)?.rows(id(path)?, asked(query)?).await?;
    Ok(([(CONTENT_TYPE, "application/json")], rows).into_response())
}

pub(super) async fn errors(
    State(shared): State<Arc<Shared>>,
    path: PathResult,
    query: QueryResult<RowQuery>,
) -> Result<Response, Failure> {
    Ok(Json(datasets(&shared)?.errors(id(path)?, asked(query)?).await?).into_response())
}

pub(super) async fn report(State(shared): State<Arc<Shared>>, path: PathResult) -> Result<Response, Failure> {
    let page = datasets(&shared)?.report(id(path)?).await?;
    Ok(([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}

pub(super) async fn files(State(shared): State<Arc<Shared>>, path: PathResult) -> Result<Response, Failure> {
    Ok(Json(datasets(&shared)?.files(id(path)?).await?).into_response())
}

pub(super) async fn file(
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let Path((dataset, name)) =
        path.map_err(|rejection| Failure::new(Code::InvalidArgument, rejection.body_text()))?;
    let datasets = datasets(&shared)?;
    let (size, file) = datasets.file(id(Ok(Path(dataset)))?, name).await?;
    let (status, range) = match WantedRange::of(&headers, size) {
        WantedRange::All => (StatusCode::OK, 0..size),
        WantedRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        WantedRange::Beyond => return Ok(WantedRange::refused(size)),
    };
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, (range.end - range.start).to_string()),
        (CONTENT_DISPOSITION, "attachment".to_owned()),
        (ACCEPT_RANGES, "bytes".to_owned()),
    ];
    let part = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| [(CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1))]);
    let body = datasets.stream_file(file, range);
    Ok(match part {
        Some(part) => (status, headers, part, body).into_response(),
        None => (status, headers, body).into_response(),
    })
}

pub(super) async fn download(
    State(shared): State<Arc<Shared>>,
    path: PathResult,
    query: QueryResult<Download>,
) -> Result<Response, Failure> {
    let (kind, body) = datasets(&shared)?.download(id(path)?, asked(query)?).await?;
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, "attachment")], body).into_response())
}
