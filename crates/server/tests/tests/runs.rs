//! The registry of runs over HTTP: lists, details, pictures, events.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::event::{
    Event, EventKind, FailureReason, ListenerItem, Placement, RunEnding, RunId as EngineRun,
};
use anabranch_engine::timeline::Timeline;
use anabranch_engine::{Config, Dag, Edge, Engine, NodeId};
use anabranch_recipe::{Draft, DraftInput, Executor, FunctionId, Params, UnknownFunction};
use anabranch_server::runs::{
    EndedRun, RunDetail, RunEnd, RunFilter, RunGraph, RunId, RunKind, RunSettings, RunState, RunTimeline,
    Runs, RunsFolder,
};
use anabranch_server::{Service, Settings, Token};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::access::tokens;
use crate::http::Http;
use crate::plans::{Shop, plan};
use crate::support::{Gate, OpenOnDrop, Server, TempFolder, beside, functions, soon, until};

fn ended(name: &str, state: RunState) -> EndedRun {
    EndedRun {
        kind: RunKind::Plan,
        name: name.into(),
        state,
        duration: Duration::from_millis(12),
        degraded: 0,
        failures: 0,
        rows: Some(3),
    }
}

/// Two nodes, one behind the other; the second fails.
fn detail() -> RunDetail {
    let dag = Dag::new(2, &[(NodeId(0), NodeId(1), Edge::Needs)]).unwrap();
    let engine = Engine::new(&Config::default()).unwrap();
    let start = engine.clock().now();
    let events = [
        (0, EventKind::RunStarted(2)),
        (0, EventKind::Started(NodeId(0), Placement::Future)),
        (5, EventKind::Finished(NodeId(0))),
        (5, EventKind::Started(NodeId(1), Placement::Inline)),
        (8, EventKind::Failed(NodeId(1), FailureReason::Timeout)),
        (9, EventKind::RunEnded(RunEnding::Failed)),
    ];
    let event = |(at, kind)| {
        ListenerItem::Event(Event { run: EngineRun(7), at: start + Duration::from_millis(at), kind })
    };
    let timeline = Timeline::new(EngineRun(7), &dag, &events.map(event)).unwrap();
    let timeline = timeline.with_deadline(Duration::from_millis(50));
    let names = ["fetch", "rank <b>"];
    let graph = RunGraph::new(&dag, |node| (names[node.index()].to_owned(), "io".to_owned()));
    RunDetail {
        request_id: None,
        trace_id: None,
        deadline_ms: Some(50.0),
        error: Some("rank: timeout".to_owned()),
        request: Some(json!({ "user": 7 })),
        result: None,
        ledger: vec![json!({ "node": "rank" })],
        graph,
        timeline: Some(RunTimeline::from(&timeline)),
    }
}

async fn on_disk(folder: &Path, settings: RunSettings) -> Http {
    let executor = Executor::in_memory(functions()).unwrap();
    let runs = Runs::open(folder, settings).unwrap();
    let service = Service::new(executor.clone(), Settings::default()).with_runs(runs);
    Http::on(Server::of(executor, service, Arc::default()).await)
}

/// The events of a body until it ends, as lines of `id kind data`.
async fn all_events(answer: Response<Incoming>) -> Vec<String> {
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    events_of(std::str::from_utf8(&body).unwrap())
}

fn events_of(text: &str) -> Vec<String> {
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    };
    let events = text.split("\n\n").filter(|event| event.contains("event:"));
    events.map(|it| format!("{} {} {}", field(it, "id:"), field(it, "event:"), field(it, "data:"))).collect()
}

/// Reads a body until it has this many events.
async fn some_events(body: &mut Incoming, count: usize) -> Vec<String> {
    let mut text = String::new();
    loop {
        let events = events_of(&text);
        if events.len() >= count {
            return events;
        }
        let frame = soon(body.frame()).await.expect("the stream goes on").unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
}

/// A get that takes long is a run in progress, which can be followed and cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_get_is_listed_while_it_runs_and_is_cancelled() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let http = Arc::new(Http::on(Server::with(gate.functions(), Settings::default()).await));
    let blob = http.blob(vec![1; 4096]).await;
    let recipe = json!({ "function": "gate/1.0.0", "inputs": [blob], "params": {} }).to_string();
    let target = http.post("/v1/recipes", recipe).await.json()["address"].as_str().unwrap().to_owned();
    let get = {
        let (http, path) = (Arc::clone(&http), format!("/v1/recipes/{target}/value"));
        beside(async move { http.get(&path, &[]).await })
    };
    let running = soon(async {
        loop {
            let listed = http.get("/v1/runs?state=running&kind=recipe", &[]).await.json();
            if let Some(run) = listed["runs"].get(0) {
                return run.clone();
            }
        }
    })
    .await;
    assert_eq!((&running["name"], &running["duration_ms"]), (&json!(target), &Value::Null));
    let run = running["id"].as_str().unwrap();
    let events = http.open(&format!("/v1/runs/{run}/events"), &[]).await;
    assert_eq!(http.post(&format!("/v1/runs/{run}/cancel"), "{}").await.status, 202);
    let answer = get.done().await;
    assert_eq!((answer.status, &*answer.error().0), (499, "cancelled"));
    let events = all_events(events).await;
    assert!(events[0].starts_with("1 start") && events[1].starts_with("2 end"), "{events:?}");
    let ended = http.get(&format!("/v1/runs/{run}"), &[]).await.json();
    assert_eq!((&ended["state"], &ended["failures"]), (&json!("stopped"), &json!(0)));
    assert!(ended["duration_ms"].as_f64().unwrap() >= 50.0, "{ended}");
    gate.open();
    assert_eq!(http.get(&format!("/v1/recipes/{target}/value"), &[]).await.body, vec![1; 4096]);
}

/// The same for a request for a plan, whose source does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_plan_is_listed_while_it_runs_and_is_cancelled() {
    let shop = Arc::new(Shop::start().await);
    let request = json!({"user_id": 7, "candidates": [101], "request_id": "slow"});
    let answer = {
        let (shop, request) = (Arc::clone(&shop), request.clone());
        beside(async move { shop.run("patient", &request).await })
    };
    let http = &shop.http;
    let running = soon(async {
        loop {
            let listed = http.get("/v1/runs?state=running&kind=plan", &[]).await.json();
            if let Some(run) = listed["runs"].get(0) {
                return run.clone();
            }
        }
    })
    .await;
    assert_eq!((&running["name"], &running["duration_ms"]), (&json!("patient"), &Value::Null));
    let run = running["id"].as_str().unwrap();
    let events = http.open(&format!("/v1/runs/{run}/events"), &[]).await;
    assert_eq!(http.post(&format!("/v1/runs/{run}/cancel"), "{}").await.status, 202);
    let answer = answer.done().await;
    assert_eq!((answer.status, &*answer.error().0), (499, "cancelled"));
    let events = all_events(events).await;
    assert!(events[0].starts_with("1 start") && events[0].contains("\"request_id\":\"slow\""), "{events:?}");
    assert!(events[1].starts_with("2 end") && events[1].contains("\"state\":\"stopped\""), "{events:?}");
    let ended = http.get(&format!("/v1/runs/{run}"), &[]).await.json();
    assert_eq!((&ended["state"], &ended["failures"]), (&json!("stopped"), &json!(0)));
    assert!(ended["duration_ms"].as_f64().unwrap() >= 50.0, "{ended}");
    // A request that ends by itself is one run, whether it was listed or not.
    assert_eq!(shop.run("guarded", &request).await.status, 200);
    let all = http.get("/v1/runs?name=guarded", &[]).await.json();
    let states: Vec<_> = all["runs"].as_array().unwrap().iter().map(|run| run["state"].clone()).collect();
    assert_eq!(states, ["degraded"], "{all}");
}

/// A slow request is noticed some time after it became slow. Its run begins with the request nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_run_takes_as_long_as_its_nodes() {
    let shop = Shop::start().await;
    // The time of the node begins with the node, so it always starts, however late the request is.
    shop.write("slow.plan.json", &plan("slow", "slow", r#""timeout_ms": 90,"#));
    shop.plans.reload().await.unwrap();
    let request = json!({"user_id": 7, "candidates": [101]}).to_string();
    for _ in 0..12 {
        let answer = shop.http.post("/v1/plans/slow/run?trace=true", request.clone()).await;
        assert!(answer.status >= 400, "{:?}", answer.body);
        let all = shop.http.get("/v1/runs?name=slow&limit=1", &[]).await.json();
        let run =
            shop.http.get(&format!("/v1/runs/{}", all["runs"][0]["id"].as_str().unwrap()), &[]).await.json();
        let (whole, nodes) = (&run["duration_ms"], &run["timeline"]["wall_ms"]);
        assert!(whole.as_f64().unwrap() >= nodes.as_f64().unwrap(), "{whole} and {nodes}: {run}");
    }
}

/// Requests are many, and their runs do not displace those of jobs: neither their events nor their files.
#[tokio::test]
async fn slow_requests_do_not_displace_jobs() {
    let folder = TempFolder::new();
    let settings = RunSettings { files_most: 3, ..RunSettings::default() };
    let http = on_disk(folder.path(), settings).await;
    let runs = http.server.service.runs();
    let complete = RunEnd { state: RunState::Complete, degraded: 0, failures: 0, rows: None };
    let job = runs.begin(RunKind::Dataset, "rows");
    let id = job.id();
    job.event("progress", &json!({"rows": 1}));
    job.end(complete, None);
    for _ in 0..100 {
        runs.begin(RunKind::Recipe, "slow").end(complete, None);
        runs.begin(RunKind::Plan, "slow").end(complete, None);
    }
    let events = all_events(http.open(&format!("/v1/runs/{id}/events"), &[]).await).await;
    assert!(events.len() == 2 && events[0].starts_with("1 progress"), "{events:?}");
    // Files are written in order, so the last one shows that there is none of those before it.
    let last = runs.begin(RunKind::Dataset, "last");
    let last_id = last.id();
    last.end(complete, None);
    let stored = RunsFolder::new(folder.path());
    let all = RunFilter { limit: 1_000, ..RunFilter::default() };
    let names = || -> Vec<RunId> { stored.list(&all).unwrap().runs.iter().map(|run| run.id).collect() };
    until(|| names().contains(&last_id)).await;
    assert_eq!(names(), [last_id, id]);
}

#[tokio::test]
async fn runs_are_listed_from_the_latest() {
    let http = Http::start().await;
    let runs = http.server.service.runs();
    let ids: Vec<RunId> =
        ["a", "b", "a"].map(|name| runs.record(ended(name, RunState::Complete), None)).into();
    let failed = runs.record(ended("a", RunState::Failed), None);
    let live = runs.begin(RunKind::Dataset, "rows");

    let listed = async |query: &str| {
        let answer = http.get(&format!("/v1/runs{query}"), &[]).await.json();
        let runs = answer["runs"].as_array().unwrap().clone();
        let ids: Vec<String> = runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
        (ids.join(" "), answer["next"].clone())
    };
    let text = |ids: &[RunId]| ids.iter().map(RunId::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(listed("").await, (text(&[live.id(), failed, ids[2], ids[1], ids[0]]), Value::Null));
    assert_eq!(listed("?kind=dataset").await.0, text(&[live.id()]));
    assert_eq!(listed("?name=a&state=complete").await.0, text(&[ids[2], ids[0]]));
    let (page, next) = listed("?limit=2").await;
    assert_eq!((page, next), (text(&[live.id(), failed]), json!(failed.to_string())));
    assert_eq!(listed(&format!("?limit=2&before={failed}")).await.0, text(&[ids[2], ids[1]]));

    let run = &http.get("/v1/runs?state=failed", &[]).await.json()["runs"][0];
    let started = run["started_ms"].as_u64().unwrap();
    assert_eq!(
        *run,
        json!({
            "id": failed, "kind": "plan", "name": "a", "state": "failed", "started_ms": started, "duration_ms": 12.0,
            "degraded": 0, "failures": 0, "rows": 3, "has_detail": false
        })
    );
    for (query, why) in [
        ("?kind=x", "is not a kind of run"),
        ("?state=x", "is not a state of a run"),
        ("?limit=0", "it may be 1 to 1000"),
        ("?limit=1001", "it may be 1 to 1000"),
        ("?before=7", "is not the id of a run"),
        ("?order=x", "unknown field"),
    ] {
        let answer = http.get(&format!("/v1/runs{query}"), &[]).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.error().1.contains(why), "{query}: {}", answer.error().1);
    }
}

#[tokio::test]
async fn a_run_has_its_details_and_pictures() {
    let http = Http::start().await;
    let id = http.server.service.runs().record(ended("feed", RunState::Failed), Some(detail()));
    let run = http.get(&format!("/v1/runs/{id}"), &[]).await.json();
    assert_eq!(run["state"], "failed");
    assert_eq!(run["has_detail"], true);
    assert_eq!(run["error"], "rank: timeout");
    assert_eq!(run["request"], json!({ "user": 7 }));
    assert_eq!(run["ledger"], json!([{ "node": "rank" }]));
    assert_eq!(run["graph"]["nodes"][1], json!({ "id": "n1", "name": "rank <b>", "kind": "io" }));
    assert_eq!(run["graph"]["edges"], json!([["n0", "n1"]]));
    assert_eq!(run["timeline"]["wall_ms"], 9.0);
    let node = &run["timeline"]["nodes"][1];
    assert_eq!(
        [
            &node["queued_ms"],
            &node["start_ms"],
            &node["end_ms"],
            &node["state"],
            &node["reason"],
            &node["critical"]
        ],
        [&json!(5.0), &json!(5.0), &json!(8.0), &json!("failed"), &json!("timeout"), &json!(true)]
    );
    let page = http.get(&format!("/v1/runs/{id}/timeline.html"), &[]).await;
    let page = std::str::from_utf8(&page.body).unwrap();
    assert!(
        page.contains("plan feed") && page.contains("rank &lt;b&gt;") && page.contains("its timeout"),
        "{page}"
    );
    let picture = http.get(&format!("/v1/runs/{id}/timeline.svg"), &[]).await;
    assert!(picture.body.starts_with(b"<svg") && picture.header("content-type") == "image/svg+xml");
    let trace = http.get(&format!("/v1/runs/{id}/timeline.json"), &[]).await.json();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 4, "{trace}");
    assert_eq!(http.get(&format!("/v1/runs/{id}/timeline.png"), &[]).await.status, 404);

    let bare = http.server.service.runs().record(ended("feed", RunState::Complete), None);
    assert_eq!(http.get(&format!("/v1/runs/{bare}"), &[]).await.json()["timeline"], Value::Null);
    assert!(http.get(&format!("/v1/runs/{bare}/timeline.svg"), &[]).await.error().1.contains("no timeline"));
    assert_eq!(http.get("/v1/runs/000000000001-0000", &[]).await.status, 404);
}

#[tokio::test]
async fn the_folder_has_runs_after_a_restart() {
    let folder = TempFolder::new();
    let first = on_disk(folder.path(), RunSettings::default()).await;
    let runs = first.server.service.runs();
    let kept = runs.record(ended("feed", RunState::Failed), Some(detail()));
    let only_listed = runs.record(ended("feed", RunState::Complete), None);
    let live = runs.begin(RunKind::Dataset, "rows");
    let stopped = live.id();
    drop(live);
    let file = |id: RunId| folder.path().join(format!("{id}.json"));
    until(|| file(kept).exists() && file(stopped).exists()).await;
    drop(first);
    let damaged = folder.path().join("018f3c2a9d4b-0007.json");
    std::fs::write(&damaged, "{\"run\":{},\n").unwrap();
    std::fs::write(folder.path().join("018f3c2a9d4b-0008.json.new"), "").unwrap();

    let second = on_disk(folder.path(), RunSettings::default()).await;
    let page = second.get("/v1/runs", &[]).await.json();
    let ids: Vec<&str> =
        page["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [stopped.to_string(), kept.to_string()], "{only_listed} was in memory only");
    assert_eq!(page["runs"][0]["state"], "stopped");
    let run = second.get(&format!("/v1/runs/{kept}"), &[]).await.json();
    assert_eq!(run["graph"]["nodes"][0]["name"], "fetch");
    assert_eq!(second.get(&format!("/v1/runs/{kept}/timeline.svg"), &[]).await.status, 200);
    assert!(damaged.exists() && !folder.path().join("018f3c2a9d4b-0008.json.new").exists());
    let next = second.server.service.runs().record(ended("feed", RunState::Complete), None);
    assert!(next > stopped);
}

#[tokio::test]
async fn memory_and_files_are_bounded() {
    let folder = TempFolder::new();
    let settings =
        RunSettings { summaries_most: 5, detail_bytes_most: 6_000, files_most: 3, ..RunSettings::default() };
    let http = on_disk(folder.path(), settings).await;
    let runs = http.server.service.runs();
    let ids: Vec<RunId> =
        (0..20).map(|_| runs.record(ended("feed", RunState::Failed), Some(detail()))).collect();
    assert_eq!(runs.list(&RunFilter { limit: 100, ..RunFilter::default() }).runs.len(), 5);
    let last = ids[19];
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    until(|| folder.path().join(format!("{last}.json")).exists() && files() <= 3).await;
    assert!(runs.get(last).await.unwrap().detail.is_some());
    assert!(runs.get(ids[17]).await.unwrap().detail.is_some(), "it is read from its file");
    assert!(runs.get(ids[0]).await.is_none());
}

#[tokio::test]
async fn events_are_followed_resumed_and_end_with_the_run() {
    let http = Http::start().await;
    let runs = http.server.service.runs();
    let live = runs.begin(RunKind::Dataset, "rows");
    let id = live.id();
    let path = format!("/v1/runs/{id}/events");
    let mut following = http.open(&path, &[]).await.into_body();
    live.event("start", &json!({ "rows": 2 }));
    live.event("progress", &json!({ "done": 1 }));
    let events = some_events(&mut following, 2).await;
    assert_eq!(events, [r#"1 start {"rows":2}"#, r#"2 progress {"done":1}"#]);
    live.event("progress", &json!({ "done": 2 }));
    let mut resumed = http.open(&path, &[("last-event-id", "2")]).await.into_body();
    assert_eq!(some_events(&mut resumed, 1).await, [r#"3 progress {"done":2}"#]);
    live.end(RunEnd { state: RunState::Complete, degraded: 0, failures: 0, rows: Some(2) }, None);
    let last = some_events(&mut following, 2).await;
    assert!(last[1].starts_with("4 end {") && last[1].contains(r#""state":"complete""#), "{last:?}");
    assert!(soon(following.frame()).await.is_none(), "the stream ends with the run");

    // It can be read again for a while, from any event.
    assert_eq!(all_events(http.open(&path, &[]).await).await.len(), 4);
    assert_eq!(all_events(http.open(&format!("{path}?after=3"), &[]).await).await.len(), 1);
    let short = runs.record(ended("feed", RunState::Complete), None);
    let end = all_events(http.open(&format!("/v1/runs/{short}/events"), &[]).await).await;
    assert!(end.len() == 1 && end[0].starts_with(" end {"), "{end:?}");
    assert_eq!(http.get(&path, &[("last-event-id", "x")]).await.status, 400);
    assert_eq!(http.get("/v1/runs/000000000001-0000/events", &[]).await.status, 404);
}

#[tokio::test]
async fn a_slow_reader_is_told_what_it_lost() {
    let http = Http::start().await;
    let live = http.server.service.runs().begin(RunKind::Dataset, "rows");
    (0..3_000).for_each(|number| live.event("progress", &number));
    let path = format!("/v1/runs/{}/events", live.id());
    drop(live);
    let events = all_events(http.open(&path, &[]).await).await;
    // 3,000 and the end; 1,024 are kept.
    assert_eq!(events[0], r#"1977 lost {"lost":1977}"#);
    assert_eq!(events.len(), 1 + 1_024);
    assert!(events[1_024].starts_with("3001 end"));
}

#[tokio::test]
async fn one_stream_tells_of_all_runs() {
    let http = Http::start().await;
    let runs = http.server.service.runs();
    runs.record(ended("before", RunState::Complete), None);
    let mut feed = http.open("/v1/events", &[]).await.into_body();
    let live = runs.begin(RunKind::Recipe, "report");
    drop(live);
    let events = some_events(&mut feed, 2).await;
    assert!(events[0].contains("-2 run {") && events[0].contains(r#""state":"running""#), "{events:?}");
    assert!(events[1].contains(r#""name":"report","state":"stopped""#), "{events:?}");
    let again = http.open("/v1/events?after=0", &[]).await;
    assert_eq!(some_events(&mut again.into_body(), 3).await.len(), 3);
}

/// A get that failed keeps its recipes, when they ran, and what they read.
#[tokio::test]
async fn a_failed_get_is_a_run_with_its_recipes() {
    let http = Http::start().await;
    let executor = &http.server.executor;
    let data = executor.put("not packed").await.unwrap().address;
    let draft = |function: &str, input: DraftInput| Draft {
        function: FunctionId::new(function, "1.0.0"),
        inputs: vec![input],
        params: Params::default(),
    };
    let drafts = [
        draft("bitwise_not", DraftInput::Address(data)),
        draft("gzip_decompress", DraftInput::Earlier(0)),
        draft("sha256", DraftInput::Earlier(1)),
    ];
    let added = executor.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    let target = added[2].address;
    let answer = http.get(&format!("/v1/recipes/{target}/value"), &[]).await;
    assert!(answer.status >= 400, "{}", answer.status);
    let listed = http.get("/v1/runs?kind=recipe", &[]).await.json();
    let id = listed["runs"][0]["id"].as_str().unwrap();
    let run = http.get(&format!("/v1/runs/{id}"), &[]).await.json();
    assert_eq!([&run["state"], &run["has_detail"]], [&json!("failed"), &json!(true)]);
    assert_eq!(run["request"], json!({ "target": target.to_string(), "address": target.to_string() }));
    let of = |list: &Value, fields: [&str; 3]| -> Vec<Value> {
        let nodes = list.as_array().unwrap().iter();
        nodes.map(|node| fields.iter().map(|field| node[*field].clone()).collect()).collect()
    };
    assert_eq!(
        of(&run["graph"]["nodes"], ["id", "name", "kind"]),
        [
            json!(["n0", "bitwise_not/1.0.0", "cpu"]),
            json!(["n1", "gzip_decompress/1.0.0", "cpu"]),
            json!(["n2", "sha256/1.0.0", "cpu"]),
            json!(["v0", data.to_string()[..12], "blob"]),
        ]
    );
    assert_eq!(run["graph"]["edges"], json!([["n0", "n1"], ["n1", "n2"], ["v0", "n0"]]));
    assert_eq!(
        of(&run["timeline"]["nodes"], ["id", "state", "critical"]),
        [json!(["n0", "finished", true]), json!(["n1", "failed", true]), json!(["n2", "not_started", false])]
    );
    let page = http.get(&format!("/v1/runs/{id}/timeline.html"), &[]).await;
    assert!(page.status == 200 && page.body.windows(15).any(|part| part == b"gzip_decompress"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("sandbox allow-scripts; default-src 'none'"), "{policy}");
}

#[tokio::test]
async fn a_run_is_cancelled() {
    let http = Http::start().await;
    let live = http.server.service.runs().begin(RunKind::Dataset, "rows");
    let path = format!("/v1/runs/{}/cancel", live.id());
    let cancelled = live.cancelled();
    assert_eq!(http.post(&path, "{}").await.status, 202);
    soon(cancelled).await;
    assert!(live.is_cancelled());
    drop(live);
    let again = http.post(&path, "{}").await;
    assert_eq!(again.error(), ("failed_precondition".to_owned(), again.error().1));
    assert!(again.error().1.ends_with("has ended: stopped"));
}

/// A silent stream has comments, is not taken for a stalled call, and ends when the server shuts down.
#[tokio::test]
async fn a_silent_stream_lives_until_the_server_shuts_down() {
    let server = Server::on_test_time(functions(), Settings::default()).await;
    let mut http = Http::on(server);
    let clock = Arc::clone(&http.server.clock);
    let mut feed = http.open("/v1/events", &[]).await.into_body();
    let mut comments = 0;
    while comments < 40 {
        let frame = clock.steps(Duration::from_secs(16), feed.frame()).await.unwrap().unwrap();
        assert_eq!(frame.data_ref().unwrap(), ":\n\n");
        comments += 1;
    }
    http.server.stop();
    while let Some(frame) = soon(feed.frame()).await {
        assert_eq!(frame.unwrap().data_ref().unwrap(), ":\n\n");
    }
    clock.steps(Duration::from_millis(10), http.server.served()).await;
}

/// Readers are bounded, and a reader that left gives its place back.
#[tokio::test]
async fn readers_are_bounded() {
    let folder = TempFolder::new();
    let http = on_disk(folder.path(), RunSettings { readers_most: 1, ..RunSettings::default() }).await;
    let first = http.open("/v1/events", &[]).await;
    let refused = http.get("/v1/events", &[]).await;
    assert_eq!((refused.status, &*refused.error().0), (429, "resource_exhausted"));
    drop(first);
    loop {
        let again = http.open("/v1/events", &[]).await;
        if again.status() == 200 {
            break;
        }
    }
}

/// One client cannot hold all streams of events.
#[tokio::test]
async fn a_client_has_half_of_the_readers() {
    let folder = TempFolder::new();
    let (access, [local, read, run, _]) = tokens("readers");
    let server = Server::set_up(functions(), Settings::default(), |service| {
        let settings = RunSettings { readers_most: 4, ..RunSettings::default() };
        service.with_access(access).with_runs(Runs::open(folder.path(), settings).unwrap())
    })
    .await;
    let http = Http::on(server);
    let open = async |token: &Token| {
        let bearer = format!("Bearer {}", token.as_str());
        http.open("/v1/events", &[("authorization", &bearer)]).await
    };
    let held = [open(&read).await, open(&read).await];
    assert_eq!(open(&read).await.status(), 429);
    let others = [open(&local).await, open(&local).await];
    assert!(held.iter().chain(&others).all(|answer| answer.status() == 200));
    assert_eq!(open(&run).await.status(), 503, "all are taken");
}

/// Ids of events are of one process. With an id of an earlier one, a client is told that it missed some.
#[tokio::test]
async fn a_client_that_returns_after_a_restart_is_told_that_events_were_lost() {
    let of = |event: &str| event.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>();
    let first = Http::start().await;
    let runs = first.server.service.runs();
    (0..5).for_each(|_| _ = runs.record(ended("old", RunState::Complete), None));
    let mut feed = first.open("/v1/events?after=0", &[]).await.into_body();
    let events = some_events(&mut feed, 5).await;
    let seen = of(&events[1])[0].clone();
    let mut resumed = first.open("/v1/events", &[("last-event-id", &seen)]).await.into_body();
    assert_eq!(some_events(&mut resumed, 3).await, events[2..]);
    let seen = of(&events[4])[0].clone();
    drop(first);

    let second = Http::start().await;
    let runs = second.server.service.runs();
    (0..2).for_each(|_| _ = runs.record(ended("new", RunState::Complete), None));
    for resume in [seen.as_str(), "7"] {
        let mut feed = second.open("/v1/events", &[("last-event-id", resume)]).await.into_body();
        let events = some_events(&mut feed, 3).await;
        assert!(events[0].contains(r#" lost {"lost":null}"#), "{events:?}");
        assert!(
            events[1].contains("\"name\":\"new\"") && events[2].contains("\"name\":\"new\""),
            "{events:?}"
        );
        let lost = of(&events[0])[0].clone();
        let mut resumed = second.open("/v1/events", &[("last-event-id", &lost)]).await.into_body();
        assert_eq!(some_events(&mut resumed, 2).await, events[1..]);
    }
    for wrong in ["x", "-", "1-", "zz-1", "1-2-3"] {
        assert_eq!(second.get("/v1/events", &[("last-event-id", wrong)]).await.status, 400, "{wrong}");
    }
}
