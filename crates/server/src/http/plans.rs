//! Plans: run, listed, described and changed.

use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::{Registries, Request};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tonic::Code;

use crate::deadline;
use crate::failure::{Failure, refusal};
use crate::plans::{ChangeKind, Form, PlanCall, PlanFailure, Plans};
use crate::service::Shared;

const REQUEST_ID: &str = "x-request-id";
const RUN_ID: &str = "x-run-id";
const PLAN_VERSION: &str = "x-plan-version";
const WARNINGS: &str = "x-request-warnings";

/// The longest request, in bytes, as the parser of requests has it.
const REQUEST_MOST: usize = 4 << 20;

/// The longest request id that is taken from a header.
const REQUEST_ID_MOST: usize = 256;

/// The fields that may stand behind `?` when a plan is run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    /// `150ms`, `1.5s`.
    timeout: Option<String>,
    /// True to keep the run with its timeline.
    #[serde(default)]
    trace: bool,
    /// True for one list of rows per output.
    #[serde(default)]
    by_output: bool,
}

impl Shared {
    /// The plans, if the server has a project.
    pub(crate) fn plans(&self) -> Result<&Plans, Failure> {
        self.plans.as_ref().ok_or_else(|| {
            let what = "this server has no plans; start it with `anabranch serve --project FILE`";
            Failure::new(Code::NotFound, what)
        })
    }
}

/// Answers one request.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<Running>, QueryRejection>,
    http: axum::extract::Request,
) -> Result<Response, PlanFailure> {
    let (parts, body) = http.into_parts();
    let headers = &parts.headers;
    let plans = shared.plans()?;
    let entry = plans.entry(&super::path(name)?)?;
    let query = query.map_err(|rejection| super::wrong_query(&rejection))?.0;
    let accept = headers.get(ACCEPT).map(|accept| accept.to_str().unwrap_or("not text"));
    let form = match Form::accepted(accept) {
        Ok(Form::Json) if query.by_output => Form::JsonByOutput,
        Ok(form) => form,
        Err(message) => return Ok(refusal(StatusCode::NOT_ACCEPTABLE, "not_acceptable", &message)),
    };
    let within = within(&query, headers)?;
    let registries = match &entry.current {
        Some(version) => Arc::clone(version.plan.engine().registries()),
        None => return Err(PlanFailure::not_loaded(&entry.name, entry.problem.as_deref())),
    };
    let text = super::body_up_to(body, REQUEST_MOST.min(shared.settings.body_most)).await?;
    let mut request = parse(&shared, text.clone(), &registries).await?;
    if request.request_id.is_none() {
        request.request_id = given_id(headers);
    }
    if request.plan.as_deref().is_some_and(|plan| plan != &*entry.name) {
        let plan = request.plan.as_deref().unwrap_or_default();
        request.warnings.push(format!("it asks for plan {}; this is another", anabranch_text::quote(plan)));
    }
    let warnings = std::mem::take(&mut request.warnings);
    let call = PlanCall { request, text, within, trace: query.trace };
    let answered = plans.run(&entry, call, &shared.runs).await?;
    let body = form.write(&answered.answer, &registries.keys)?;
    let mut response = Response::new(Body::from(body));
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    insert(head, REQUEST_ID, &answered.answer.request_id.to_string());
    insert(head, PLAN_VERSION, &answered.version.id);
    if let Some(run) = answered.kept {
        insert(head, RUN_ID, &run.to_string());
    }
    if !warnings.is_empty() {
        insert(head, WARNINGS, &warnings.join("; "));
    }
    Ok(response)
}

/// Adds a header, unless its text cannot be one.
fn insert(headers: &mut HeaderMap, name: &'static str, text: &str) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

/// The id that the caller gives a request in a header.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    (!id.is_empty() && id.len() <= REQUEST_ID_MOST).then(|| id.to_owned())
}

/// How long the caller waits: the shortest of `?timeout`, `Request-Timeout` and `grpc-timeout`.
fn within(query: &Running, headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let own = query.timeout.as_deref().map(deadline::written).transpose()?;
    let given = deadline::of_headers(headers)?;
    Ok(own.into_iter().chain(given).min())
}

/// Parses a request: a small one at once, a large one on a thread for work that would block others.
async fn parse(shared: &Shared, text: Bytes, registries: &Arc<Registries>) -> Result<Request, PlanFailure> {
    if text.len() <= super::PARSED_AT_ONCE {
        return Ok(Request::parse(&text, registries)?);
    }
    let memory = memory_of(&text);
    let most = 2 * shared.settings.body_memory_most;
    if memory > most {
        let message = format!(
            "the request has more values than fit into {} of memory; bring candidates as columns, or fewer of them",
            anabranch_text::size::format(most as u64)
        );
        return Err(Failure::new(Code::OutOfRange, message).into());
    }
    let registries = Arc::clone(registries);
    let parsed = super::parsed_in(shared, memory, move || Request::parse(&text, &registries)).await?;
    Ok(parsed?)
}

/// As many bytes as the values of a JSON text take at most once they are parsed: an object has a node of a tree for its
/// first fields, and every other value takes the room of one in a list that may have three times the room it needs.
fn memory_of(text: &[u8]) -> usize {
    let (mut objects, mut values) = (0_usize, 0_usize);
    for byte in text {
        objects += usize::from(*byte == b'{');
        values += usize::from(matches!(byte, b',' | b'['));
    }
    text.len() + 640 * objects + 96 * values
}

/// All plans.
pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Result<Response, Failure> {
    Ok(Json(shared.plans()?.list()).into_response())
}

/// One plan.
pub(super) async fn describe(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, PlanFailure> {
    Ok(Json(shared.plans()?.describe(&super::path(name)?)?).into_response())
}

/// Loads all plans again.
pub(super) async fn reload_all(State(shared): State<Arc<Shared>>) -> Result<Response, Failure> {
    change(&shared, ChangeKind::Reload(None)).await
}

/// Loads one plan again.
pub(super) async fn reload(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    change(&shared, ChangeKind::Reload(Some(super::path(name)?))).await
}

/// Serves the new version of a plan to everybody.
pub(super) async fn promote(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    change(&shared, ChangeKind::Promote(super::path(name)?)).await
}

/// Gives up the new version of a plan.
pub(super) async fn roll_back(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    change(&shared, ChangeKind::RollBack(super::path(name)?)).await
}

async fn change(shared: &Shared, kind: ChangeKind) -> Result<Response, Failure> {
    let changed = shared.plans()?.change(kind).await?;
    Ok(Json(json!({"changed": changed.plans})).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocated::peak_of;

    /// A text is refused before it is parsed, so the estimate must not be below what parsing takes.
    #[test]
    fn parsing_takes_no_more_memory_than_expected() {
        let registries = Registries::default();
        for one in ["{\"\":0}", "{}", "[]", "0", "[[]]", "{\"a\":{\"b\":[1]}}", "\"\"", "null"] {
            let list = vec![one; 20_000].join(",");
            let text = format!("{{\"user_id\":1,\"candidates\":[{list}]}}");
            let (_, peak) = peak_of(|| Request::parse(&text, &registries).is_ok());
            let most = memory_of(text.as_bytes());
            assert!(peak <= most as i64, "{one}: {peak} > {most}");
        }
    }
}
