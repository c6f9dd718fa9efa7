//! An API with the answers of the real one, and data that a test chose: many runs, a large dataset, a run that went wrong.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::samples::{self, DATASET};

/// The console with an API behind it, on a port of this machine. Dropping it stops it.
pub(crate) struct Fake {
    pub(crate) url: String,
    pub(crate) facts: Arc<Facts>,
    _runtime: Runtime,
}

/// What the API answers, and what it was asked.
pub(crate) struct Facts {
    token: Option<&'static str>,
    pub(crate) runs: Mutex<Vec<Json>>,
    pub(crate) cells: Mutex<Vec<u8>>,
    /// Datasets that are newer than the one with cells.
    pub(crate) newer: Mutex<usize>,
    pub(crate) names: Mutex<usize>,
    /// The rows of the dataset that are written.
    pub(crate) rows: Mutex<Vec<Json>>,
    /// The timed requests of each plan.
    pub(crate) timed: Mutex<u64>,
    /// The state of the dataset.
    state: Mutex<&'static str>,
    /// The run that builds the dataset.
    run: Mutex<&'static str>,
    /// Paths that are refused, with the status.
    refused: Mutex<Vec<(String, StatusCode)>>,
    /// Whether the answers with cells wait.
    held: watch::Sender<bool>,
    /// How often all streams of events were ended.
    hung_up: watch::Sender<usize>,
    /// All events: path, kind, data.
    log: Mutex<Vec<(String, &'static str, Json)>>,
    logged: watch::Sender<usize>,
    posts: Mutex<Vec<(String, Json)>>,
    posted: watch::Sender<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    pub(crate) fn start(token: Option<&'static str>) -> Fake {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let facts = Arc::new(Facts {
            token,
            runs: Mutex::new(samples::runs()),
            cells: Mutex::new(samples::cells()),
            newer: Mutex::new(0),
            names: Mutex::new(2),
            rows: Mutex::new(samples::rows()),
            timed: Mutex::new(128_400),
            state: Mutex::new("running"),
            run: Mutex::new(DATASET),
            refused: Mutex::default(),
            held: watch::Sender::new(false),
            hung_up: watch::Sender::new(0),
            log: Mutex::default(),
            logged: watch::Sender::new(0),
            posts: Mutex::default(),
            posted: watch::Sender::new(0),
        });
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(api).with_state(Arc::clone(&facts));
        let router = router.merge(anabranch_server::console::routes());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Fake { url, facts, _runtime: runtime }
    }

    /// An event for everybody who listens at this path, now or later.
    pub(crate) fn tell(&self, path: &str, kind: &'static str, data: Json) {
        lock(&self.facts.log).push((path.to_owned(), kind, data));
        self.facts.logged.send_modify(|count| *count += 1);
    }

    /// Many events at once.
    pub(crate) fn tell_all(&self, path: &str, kind: &'static str, all: impl Iterator<Item = Json>) {
        lock(&self.facts.log).extend(all.map(|data| (path.to_owned(), kind, data)));
        self.facts.logged.send_modify(|count| *count += 1);
    }

    pub(crate) fn set_state(&self, state: &'static str) {
        *lock(&self.facts.state) = state;
    }

    /// Another run builds the dataset from now on, as after a restart of a server.
    pub(crate) fn set_run(&self, run: &'static str) {
        *lock(&self.facts.run) = run;
    }

    /// Refuses the requests of a path with a status.
    pub(crate) fn refuse(&self, path: &str, status: u16) {
        lock(&self.facts.refused).push((path.to_owned(), StatusCode::from_u16(status).unwrap()));
    }

    /// Refuses the requests of a path no longer.
    pub(crate) fn accept(&self, path: &str) {
        lock(&self.facts.refused).retain(|(refused, _)| refused != path);
    }

    /// Lets the answers with cells wait, or go on.
    pub(crate) fn hold_cells(&self, held: bool) {
        self.facts.held.send_replace(held);
    }

    /// Refuses nothing any more.
    pub(crate) fn accept_all(&self) {
        lock(&self.facts.refused).clear();
    }

    /// Ends all streams of events.
    pub(crate) fn hang_up(&self) {
        self.facts.hung_up.send_modify(|count| *count += 1);
    }

    /// Waits until something was posted to a path; its body.
    pub(crate) fn posted(&self, path: &str) -> Json {
        let mut posted = self.facts.posted.subscribe();
        let find =
            || lock(&self.facts.posts).iter().find(|(found, _)| found == path).map(|(_, body)| body.clone());
        self._runtime.block_on(crate::support::soon(async {
            loop {
                if let Some(found) = find() {
                    return found;
                }
                posted.changed().await.unwrap();
            }
        }))
    }
}

impl Facts {
    fn dataset(&self) -> Json {
        let mut dataset = samples::dataset(*lock(&self.state));
        dataset["run"] = (*lock(&self.run)).into();
        dataset
    }

    /// A page of the datasets, newest first.
    fn datasets(&self, query: &str) -> Json {
        let newer = |number: usize| json!({"id": format!("018f3c2b{:06x}-0007", 0xff_ffff - number), "number": number});
        let all: Vec<Json> = (0..*lock(&self.newer)).map(newer).chain([json!({"id": DATASET})]).collect();
        let mut page = page("datasets", &all, query);
        let ended = samples::progress("complete", samples::ROWS, 184.0);
        for entry in page["datasets"].as_array_mut().unwrap() {
            *entry = match &entry["number"] {
                Json::Null => self.dataset(),
                number => {
                    let mut dataset = ended.clone();
                    dataset["name"] = format!("newer-{number}").into();
                    dataset["id"] = entry["id"].clone();
                    dataset["run"] = Json::Null;
                    dataset
                }
            };
        }
        page
    }
}

async fn api(State(facts): State<Arc<Facts>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if path == "/readyz" {
        return "ok\n".into_response();
    }
    // Before anything is refused, so that no stream that is begun meanwhile is left out when all of them are ended.
    let hung_up = facts.hung_up.subscribe();
    let bearer = request.headers().get("authorization").and_then(|bearer| bearer.to_str().ok());
    if facts.token.is_some_and(|token| bearer != Some(&format!("Bearer {token}"))) {
        return refused(StatusCode::UNAUTHORIZED, "a token is needed");
    }
    if let Some((_, status)) = lock(&facts.refused).iter().find(|(refused, _)| *refused == path) {
        return refused(*status, "too many requests are under way");
    }
    if request.method() == "POST" {
        return post(&facts, &path, request).await;
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    match parts[..] {
        ["events"] | ["runs", _, "events"] => events(facts, path, hung_up),
        ["runs"] => axum::Json(page("runs", &lock(&facts.runs), &query)).into_response(),
        ["runs", id] => match lock(&facts.runs).iter().find(|run| run["id"] == id) {
            Some(run) => axum::Json(samples::detail(run)).into_response(),
            None => refused(StatusCode::NOT_FOUND, "no such run"),
        },
        ["runs", _, "timeline.html"] | ["datasets", DATASET, "report"] => {
            axum::response::Html(samples::FILE).into_response()
        }
        ["status"] => axum::Json(samples::status()).into_response(),
        ["plans"] => axum::Json(samples::plans()).into_response(),
        ["plans", name] => {
            let mut plan = samples::plan(name);
            plan["latency"]["count"] = (*lock(&facts.timed)).into();
            axum::Json(plan).into_response()
        }
        ["refs"] => axum::Json(names(*lock(&facts.names), &query)).into_response(),
        ["functions"] => axum::Json(samples::functions()).into_response(),
        ["recipes", _, "graph"] => axum::Json(samples::closure()).into_response(),
        ["datasets"] => axum::Json(facts.datasets(&query)).into_response(),
        ["datasets", DATASET] => axum::Json(facts.dataset()).into_response(),
        ["datasets", DATASET, "cells"] => {
            let cells = lock(&facts.cells).clone();
            facts.held.subscribe().wait_for(|held| !held).await.unwrap();
            Bytes::from(cells).into_response()
        }
        ["datasets", DATASET, "rows"] => {
            axum::Json(json!({"rows": *lock(&facts.rows), "next": null})).into_response()
        }
        ["datasets", DATASET, "errors"] => axum::Json(samples::errors()).into_response(),
        _ => refused(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

async fn post(facts: &Facts, path: &str, request: Request) -> Response {
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body: Json = serde_json::from_slice(&body).unwrap();
    let headers: serde_json::Map<String, Json> =
        headers.into_iter().map(|(name, value)| (name, value.into())).collect();
    lock(&facts.posts).push((path.to_owned(), json!({"body": body, "headers": headers})));
    facts.posted.send_modify(|count| *count += 1);
    match path.ends_with("/run") {
        true => {
            let runs = lock(&facts.runs);
            let degraded = runs.iter().find(|run| run["state"] == "degraded").unwrap();
            let id = degraded["id"].as_str().unwrap().to_owned();
            ([("x-run-id", id)], axum::Json(samples::answer())).into_response()
        }
        false => axum::Json(json!({})).into_response(),
    }
}

/// A word of a query.
fn find<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// A page of the runs or datasets, as `limit`, `before` and `state` say.
fn page(field: &str, all: &[Json], query: &str) -> Json {
    let limit = find(query, "limit").map_or(50, |limit| limit.parse().unwrap());
    let fits = |entry: &&Json| {
        find(query, "state").is_none_or(|state| entry["state"] == state)
            && find(query, "before").is_none_or(|before| entry["id"].as_str().unwrap() < before)
    };
    let mut fitting: Vec<&Json> = all.iter().filter(fits).take(limit + 1).collect();
    let next = (fitting.len() > limit).then(|| fitting[limit - 1]["id"].clone());
    fitting.truncate(limit);
    json!({field: fitting, "next": next})
}

/// A page of so many names.
pub(crate) fn names(count: usize, query: &str) -> Json {
    let limit = find(query, "limit").map_or(10_000, |limit| limit.parse().unwrap());
    let after = find(query, "after").unwrap_or_default();
    let all = (2..count).map(|number| (format!("name-{number:06}"), "07".repeat(32)));
    let all = all.chain(samples::NAMES.map(|(name, digits)| (name.to_owned(), digits.repeat(32))));
    let mut names = all.filter(|(name, _)| name.as_str() > after);
    let page: Vec<_> = names.by_ref().take(limit).collect();
    let next = names.next().and(page.last()).map(|(name, _)| name.clone());
    let refs: Vec<Json> =
        page.into_iter().map(|(name, address)| json!({"name": name, "address": address})).collect();
    json!({"refs": refs, "next": next})
}

/// The events of a path, those of the past and those to come.
fn events(facts: Arc<Facts>, path: String, mut hung_up: watch::Receiver<usize>) -> Response {
    let logged = facts.logged.subscribe();
    let ended = async move { drop(hung_up.changed().await) };
    let stream = futures_util::stream::unfold(
        (0, logged, facts, path),
        |(mut at, mut logged, facts, path)| async move {
            loop {
                let next = lock(&facts.log).get(at).cloned();
                match next {
                    Some((found, kind, data)) => {
                        at += 1;
                        if found == path {
                            let text = format!("id: {at}\nevent: {kind}\ndata: {data}\n\n");
                            return Some((
                                Ok::<_, std::io::Error>(Bytes::from(text)),
                                (at, logged, facts, path),
                            ));
                        }
                    }
                    None => logged.changed().await.ok()?,
                }
            }
        },
    );
    // A comment, since a head alone may wait for the first bytes.
    let begun = futures_util::stream::iter([Ok(Bytes::from_static(b":\n\n"))]);
    let body = begun.chain(stream.take_until(Box::pin(ended)));
    ([("content-type", "text/event-stream")], Body::from_stream(body)).into_response()
}

fn refused(status: StatusCode, message: &str) -> Response {
    let code = if status == StatusCode::UNAUTHORIZED { "unauthenticated" } else { "not_found" };
    (status, axum::Json(json!({"error": {"code": code, "message": message}}))).into_response()
}
