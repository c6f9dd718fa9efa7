//! Runs: list, show, follow and cancel.

use std::str::FromStr;
use std::sync::Arc;

use anabranch_engine::NodeId;
use anabranch_engine::timeline::Timeline;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tonic::Code;

use super::sse::{self, SseEvent, SseParts};
use crate::failure::Failure;
use crate::observe::CallInfo;
use crate::runs::{Run, RunDetail, RunEvent, RunFilter, RunId, RunSummary};
use crate::service::Shared;

/// The most runs in one response, and the default.
const LIMIT_MOST: usize = crate::api::RUNS_MOST as usize;
const LIMIT: usize = 100;

/// The query of a list of runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Listing {
    kind: Option<String>,
    name: Option<String>,
    state: Option<String>,
    limit: Option<usize>,
    before: Option<String>,
}

/// A page of runs, newest first.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<Listing>, QueryRejection>,
) -> Result<Response, Failure> {
    let Listing { kind, name, state, limit, before } =
        query.map_err(|rejection| super::wrong_query(&rejection))?.0;
    let bad = |message: String| Failure::new(Code::InvalidArgument, message);
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MOST).contains(&limit) {
        return Err(bad(format!("`limit` is {limit}; it may be 1 to {LIMIT_MOST}")));
    }
    let filter = RunFilter {
        kind: kind.map(|text| text.parse()).transpose().map_err(bad)?,
        state: state.map(|text| text.parse()).transpose().map_err(bad)?,
        before: before.map(|text| id(&text)).transpose()?,
        name,
        limit,
    };
    let page = shared.runs.list(&filter);
    Ok(Json(json!({ "runs": page.runs, "next": page.next })).into_response())
}

fn id(text: &str) -> Result<RunId, Failure> {
    text.parse().map_err(|error| Failure::new(Code::InvalidArgument, format!("{error}")))
}

fn not_found(id: RunId) -> Failure {
    Failure::new(
        Code::NotFound,
        format!("there is no run {id} here; GET /v1/runs lists the runs that are kept"),
    )
}

/// A run with its details, in the format of responses.
#[derive(Serialize)]
struct ShownRun<'a> {
    #[serde(flatten)]
    summary: &'a RunSummary,
    #[serde(flatten)]
    detail: &'a RunDetail,
}

/// One run.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    run: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let Run { summary, detail } = find(&shared, run).await?;
    let none = RunDetail::default();
    let detail = detail.as_deref().unwrap_or(&none);
    Ok(Json(ShownRun { summary: &summary, detail }).into_response())
}

async fn find(shared: &Shared, run: Result<Path<String>, PathRejection>) -> Result<Run, Failure> {
    let id = id(&super::path(run)?)?;
    shared.runs.get(id).await.ok_or_else(|| not_found(id))
}

/// Asks a run to stop.
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    run: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let id = id(&super::path(run)?)?;
    let summary = shared.runs.summary(id).ok_or_else(|| not_found(id))?;
    if summary.duration.is_some() {
        let message = format!("the run {id} has ended: {}", summary.state);
        return Err(Failure::new(Code::FailedPrecondition, message));
    }
    // The cancellation of a dataset is durable, and a queued one ends at once.
    let dataset = match &shared.datasets {
        Some(datasets) => datasets.cancel_run(id).await,
        None => None,
    };
    match dataset {
        Some(cancelled) => cancelled?,
        None => _ = shared.runs.cancel(id),
    }
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": id }))).into_response())
}

/// The query of a stream of events.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    after: Option<String>,
}

/// The id of the last event that the client has: `?after=`, or the header that browsers send when they reconnect.
fn after<T: FromStr>(
    query: Result<Query<EventQuery>, QueryRejection>,
    headers: &HeaderMap,
) -> Result<Option<T>, Failure> {
    let asked = query.map_err(|rejection| super::wrong_query(&rejection))?.0.after;
    let header =
        headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).trim().to_owned());
    let Some(text) = header.or(asked) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let shown = anabranch_text::quote(&text);
        let message = format!("`Last-Event-ID` or `after`: {shown} is not the id of an event of this stream");
        Failure::new(Code::InvalidArgument, message)
    })
}

/// The events of one run. If they are no longer kept, the stream has only the end of the run.
pub(super) async fn events(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<CallInfo>,
    run: Result<Path<String>, PathRejection>,
    query: Result<Query<EventQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let after = after(query, &headers)?;
    let id = id(&super::path(run)?)?;
    let client = &call.caller.name;
    let Some(reader) = shared.runs.events(id, after) else {
        let run = shared.runs.get(id).await.ok_or_else(|| not_found(id))?;
        let end = SseEvent::new("", "end", &sse::json(&run.summary));
        return sse::answer(&shared, client, stream::iter([end]));
    };
    let write: fn(&RunEvent) -> SseParts<'_> =
        |event| SseParts { kind: event.kind, data: (&*event.data).into() };
    // A run that goes on after a restart has another id, so its events need no epoch.
    sse::answer(&shared, client, sse::of_log(reader, |number| number.to_string(), write))
}

/// The starts and ends of all runs from now on.
pub(super) async fn all_events(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<CallInfo>,
    query: Result<Query<EventQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let reader = shared.runs.feed(after(query, &headers)?);
    let write: fn(&RunSummary) -> SseParts<'_> = |run| SseParts { kind: "run", data: sse::json(run).into() };
    let runs = shared.runs.clone();
    let id = move |number| runs.feed_id(number).to_string();
    sse::answer(&shared, &call.caller.name, sse::of_log(reader, id, write))
}

/// The timeline of a run as a page, a picture or a trace.
pub(super) async fn timeline(
    State(shared): State<Arc<Shared>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Failure> {
    let Path((run, file)) =
        path.map_err(|rejection| Failure::new(Code::InvalidArgument, rejection.body_text()))?;
    let (kind, draw): (&str, Draw) = match &*file {
        "timeline.html" => ("text/html; charset=utf-8", |timeline, title, name| timeline.html(title, name)),
        "timeline.svg" => ("image/svg+xml", |timeline, title, name| timeline.svg(title, name)),
        "timeline.json" => ("application/json", |timeline, _, name| timeline.trace(name)),
        _ => {
            let message = format!("a run has timeline.html, timeline.svg and timeline.json, not {file:?}");
            return Err(Failure::new(Code::NotFound, message));
        }
    };
    let Run { summary, detail } = find(&shared, Ok(Path(run))).await?;
    let none = || Failure::new(Code::NotFound, format!("no timeline of the run {} is kept", summary.id));
    let detail = detail.ok_or_else(none)?;
    let title = format!("{} {}", summary.kind, summary.name);
    let drawn = shared.drawings.run(move || {
        let timeline = detail.drawable()?;
        Some(timeline.map(|timeline| draw(&timeline, &title, &|node| detail.node_name(node))))
    });
    match drawn.await?.ok_or_else(none)? {
        Ok(drawn) => Ok(([(CONTENT_TYPE, kind)], drawn).into_response()),
        Err(error) => Err(Failure::new(Code::DataLoss, error.to_string())),
    }
}

type Draw = fn(&Timeline, &str, &dyn Fn(NodeId) -> String) -> String;
