//! Plans: run, list, describe and change.

use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::{Registries, Request};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Extension, Json};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tonic::Code;

use crate::api::{Place, RUN_PLAN};
use crate::connections::Call;
use crate::deadline;
use crate::failure::{Failure, refusal};
use crate::observe::{CallInfo, HEADERS, RequestId, X_REQUEST_ID};
use crate::plans::{ChangeKind, Entry, Form, PlanCall, PlanFailure, Plans};
use crate::service::Shared;

const RUN_ID: HeaderName = HeaderName::from_static("x-run-id");
const PLAN_VERSION: HeaderName = HeaderName::from_static("x-plan-version");
const WARNINGS: HeaderName = HeaderName::from_static("x-request-warnings");

/// The length limit of a request in bytes. The parser of requests has the same limit.
const REQUEST_MOST: usize = 4 << 20;

/// The query of a request for a plan.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    /// A duration such as `150ms` or `1.5s`.
    timeout: Option<String>,
    /// Whether to keep the run with its timeline.
    #[serde(default)]
    trace: bool,
    /// Whether to return one list of rows per output.
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

/// The plan of a request that needs no router: its path is that of [`run`], without escapes, and there is such a plan.
pub(crate) fn named_entry(shared: &Shared, place: Place, path: &str) -> Option<Arc<Entry>> {
    place.route().filter(|route| route.path == RUN_PLAN)?;
    let name = path.strip_prefix("/v1/plans/")?.strip_suffix("/run")?;
    shared.plans.as_ref()?.entry(name).ok()
}

/// The time limit of a plan, for a request that [`named_entry`] finds.
pub(crate) fn own_deadline(shared: &Shared, place: Place, path: &str) -> Option<Duration> {
    named_entry(shared, place, path)?.current.as_ref()?.plan.compiled().deadline
}

/// Answers one request that came through the router.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<CallInfo>,
    name: Result<Path<String>, PathRejection>,
    http: axum::extract::Request,
) -> Response {
    let entry = super::path(name).and_then(|name| shared.plans()?.entry(&name));
    match entry {
        Ok(entry) => answer(&shared, &entry, call, http).await,
        Err(failure) => failure.into_response(),
    }
}

/// Answers one request for a plan.
pub(crate) async fn answer<B>(
    shared: &Shared,
    entry: &Entry,
    call: CallInfo,
    http: axum::http::Request<B>,
) -> Response
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let mut id = call.id.clone();
    let answered = try_answer(shared, entry, &mut id, call, http).await;
    let mut response = answered.unwrap_or_else(PlanFailure::into_response);
    response.headers_mut().insert(X_REQUEST_ID, id.header());
    response
}

/// The response to a request. `id` becomes the id in the body, unless the client sent one in a header.
async fn try_answer<B>(
    shared: &Shared,
    entry: &Entry,
    id: &mut RequestId,
    call: CallInfo,
    http: axum::http::Request<B>,
) -> Result<Response, PlanFailure>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let plans = shared.plans()?;
    let (parts, body) = http.into_parts();
    let headers = &parts.headers;
    let query = Query::<RunQuery>::try_from_uri(&parts.uri);
    let query = query.map_err(|rejection| super::wrong_query(&rejection))?.0;
    let accept = headers.get(ACCEPT).map(|accept| accept.to_str().unwrap_or("not text"));
    let form = match Form::accepted(accept) {
        Ok(Form::Json) if query.by_output => Form::JsonByOutput,
        Ok(form) => form,
        Err(message) => return Ok(refusal(StatusCode::NOT_ACCEPTABLE, "not_acceptable", &message)),
    };
    let within = within(&query, headers)?;
    let registries = match &entry.current {
        Some(version) => {
            // Under overload most requests are refused, so they should cost little: this one is not read.
            if let (Some(most), Some(call)) = (version.plan.compiled().deadline, Call::current()) {
                call.set_wait_most(most);
            }
            version.plan.check_load(call.arrival.deadline(within)).map_err(|error| entry.refused(&error))?;
            Arc::clone(version.plan.engine().registries())
        }
        None => return Err(PlanFailure::not_loaded(&entry.name, entry.problem.as_deref())),
    };
    let text = super::body_up_to(body, REQUEST_MOST.min(shared.settings.body_most)).await?;
    let mut request = parse(shared, &text, &registries).await?;
    *id = id.name(&mut request);
    if request.plan.as_deref().is_some_and(|plan| plan != &*entry.name) {
        let plan = request.plan.as_deref().unwrap_or_default();
        request.warnings.push(format!("it asks for plan {}; this is another", anabranch_text::quote(plan)));
    }
    let warnings = std::mem::take(&mut request.warnings);
    let (arrival, context) = (call.arrival, call.trace);
    let call =
        PlanCall { request, text, within, until: None, arrival, trace: query.trace, id: id.clone(), context };
    let answered = plans.run(entry, call, &shared.runs).await?;
    let body = form.write(&answered.answer, &registries.keys)?;
    let mut response = Response::new(Body::from(body));
    let head = response.headers_mut();
    head.reserve(HEADERS);
    head.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    insert(head, PLAN_VERSION, &answered.version.id);
    if let Some(run) = answered.kept {
        insert(head, RUN_ID, &run.to_string());
    }
    if !warnings.is_empty() {
        insert(head, WARNINGS, &warnings.join("; "));
    }
    Ok(response)
}

/// Adds a header, unless the text is not a valid header value.
fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

/// The timeout of the caller: the shortest of `?timeout`, `Request-Timeout` and `grpc-timeout`.
fn within(query: &RunQuery, headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let own = query.timeout.as_deref().map(deadline::written).transpose()?;
    let given = deadline::of_headers(headers)?;
    Ok(own.into_iter().chain(given).min())
}

/// Parses a request. A large one is parsed on a blocking thread.
async fn parse(shared: &Shared, text: &Bytes, registries: &Arc<Registries>) -> Result<Request, PlanFailure> {
    if text.len() <= super::PARSED_AT_ONCE {
        return Ok(Request::parse(text, registries)?);
    }
    let memory = memory_of(text);
    let most = 2 * shared.settings.body_memory_most;
    if memory > most {
        let message = format!(
            "the request has more values than fit into {} of memory; bring candidates as columns, or fewer of them",
            anabranch_text::size::format(most as u64)
        );
        return Err(Failure::new(Code::OutOfRange, message).into());
    }
    let (kept, text, registries) = (KEPT_PER_BYTE * text.len(), text.clone(), Arc::clone(registries));
    let parsed = async {
        let taken = super::charge(shared, memory).await?;
        let parsed = super::off_workers(shared, move || Request::parse(&text, &registries)).await;
        // The worst case of parsing is far above the usual one, and the run may take long.
        Call::current().iter().for_each(|call| call.give_back(taken.saturating_sub(kept)));
        parsed
    };
    // In a box, so that the future of a small request stays small.
    Ok(Box::pin(parsed).await??)
}

/// The memory that the values of a parsed request take, per byte of its text. Short texts in lists take the most.
const KEPT_PER_BYTE: usize = 8;

/// An upper bound of the memory that the parsed values of a JSON text take. An object has a tree node for its first
/// fields. Every other value is an element of a list that may have three times the memory that it needs.
fn memory_of(text: &[u8]) -> usize {
    let (mut objects, mut values) = (0_usize, 0_usize);
    for byte in text {
        objects += usize::from(*byte == b'{');
        values += usize::from(matches!(byte, b',' | b'['));
    }
    text.len() + 640 * objects + 96 * values
}

/// Lists all plans.
pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Result<Response, Failure> {
    Ok(Json(shared.plans()?.list()).into_response())
}

/// Describes one plan.
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

/// Makes the version on trial the only version of a plan.
pub(super) async fn promote(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    change(&shared, ChangeKind::Promote(super::path(name)?)).await
}

/// Drops the version on trial.
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
    use anabranch_recipe::{Executor, Functions};

    use super::*;
    use crate::access::Peer;
    use crate::allocated::peak_of;
    use crate::connections::Activity;
    use crate::{Service, Settings};

    /// The memory of the worst case is given back before the run begins.
    #[tokio::test]
    async fn a_parsed_request_holds_what_it_takes() {
        let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), Settings::default());
        let shared = &service.shared;
        let activity =
            Arc::new(Activity::new(Arc::clone(&shared.clock), Arc::clone(&shared.traffic), Peer::Socket));
        let call = activity.begin();
        let ids = vec!["101"; 20_000].join(",");
        let text = Bytes::from(format!("{{\"user_id\":1,\"candidates\":[{ids}]}}"));
        let parsed = call.scope({
            let (shared, text) = (Arc::clone(shared), text.clone());
            async move { parse(&shared, &text, &Arc::new(Registries::default())).await.is_ok() }
        });
        assert!(parsed.await);
        let held = shared.budget.taken();
        assert!(held > 0 && held <= KEPT_PER_BYTE * text.len() && held < memory_of(&text) / 2, "{held}");
        call.release();
        assert_eq!(shared.budget.taken(), 0);
    }

    /// A text is refused before it is parsed, so the estimate must not be lower than the memory of parsing.
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
