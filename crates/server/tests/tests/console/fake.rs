//! An API with the answers of the real one, and data that a test chose: many runs, a large dataset, a run that went wrong.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
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
    pub(crate) runs: Vec<Json>,
    pub(crate) cells: Mutex<Vec<u8>>,
    /// The state of the dataset.
    state: Mutex<&'static str>,
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
            runs: samples::runs(),
            cells: Mutex::new(samples::cells()),
            state: Mutex::new("running"),
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

    pub(crate) fn set_state(&self, state: &'static str) {
        *lock(&self.facts.state) = state;
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

async fn api(State(facts): State<Arc<Facts>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    if path == "/readyz" {
        return "ok\n".into_response();
    }
    let bearer = request.headers().get("authorization").and_then(|bearer| bearer.to_str().ok());
    if facts.token.is_some_and(|token| bearer != Some(&format!("Bearer {token}"))) {
        return refused(StatusCode::UNAUTHORIZED, "a token is needed");
    }
    if request.method() == "POST" {
        return post(&facts, &path, request).await;
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    match parts[..] {
        ["events"] | ["runs", _, "events"] => events(facts, path),
        ["runs"] => axum::Json(page(&facts.runs, &query)).into_response(),
        ["runs", id] => match facts.runs.iter().find(|run| run["id"] == id) {
            Some(run) => axum::Json(samples::detail(run)).into_response(),
            None => refused(StatusCode::NOT_FOUND, "no such run"),
        },
        ["runs", _, "timeline.html"] | ["datasets", DATASET, "report"] => {
            axum::response::Html(samples::FILE).into_response()
        }
        ["status"] => axum::Json(samples::status()).into_response(),
        ["plans"] => axum::Json(samples::plans()).into_response(),
        ["plans", name] => axum::Json(samples::plan(name)).into_response(),
        ["refs"] => axum::Json(samples::refs()).into_response(),
        ["functions"] => axum::Json(samples::functions()).into_response(),
        ["recipes", _, "graph"] => axum::Json(samples::closure()).into_response(),
        ["datasets"] => {
            axum::Json(json!({"datasets": [samples::dataset(*lock(&facts.state))]})).into_response()
        }
        ["datasets", DATASET] => axum::Json(samples::dataset(*lock(&facts.state))).into_response(),
        ["datasets", DATASET, "cells"] => Bytes::from(lock(&facts.cells).clone()).into_response(),
        ["datasets", DATASET, "rows"] => axum::Json(samples::rows()).into_response(),
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
            let degraded = facts.runs.iter().find(|run| run["state"] == "degraded").unwrap();
            let id = degraded["id"].as_str().unwrap().to_owned();
            ([("x-run-id", id)], axum::Json(samples::answer())).into_response()
        }
        false => axum::Json(json!({})).into_response(),
    }
}

/// A page of the runs, as `limit`, `before` and `state` say.
fn page(runs: &[Json], query: &str) -> Json {
    let find = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let limit = find("limit").map_or(100, |limit| limit.parse().unwrap());
    let fits = |run: &&Json| {
        find("state").is_none_or(|state| run["state"] == state)
            && find("before").is_none_or(|before| run["id"].as_str().unwrap() < before)
    };
    let mut fitting: Vec<&Json> = runs.iter().filter(fits).take(limit + 1).collect();
    let next = (fitting.len() > limit).then(|| fitting[limit - 1]["id"].clone());
    fitting.truncate(limit);
    json!({"runs": fitting, "next": next})
}

/// The events of a path, those of the past and those to come.
fn events(facts: Arc<Facts>, path: String) -> Response {
    let logged = facts.logged.subscribe();
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
    ([("content-type", "text/event-stream")], Body::from_stream(stream)).into_response()
}

fn refused(status: StatusCode, message: &str) -> Response {
    let code = if status == StatusCode::UNAUTHORIZED { "unauthenticated" } else { "not_found" };
    (status, axum::Json(json!({"error": {"code": code, "message": message}}))).into_response()
}
