//! Dataset jobs over HTTP: accepted, built, continued, cancelled, refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use anabranch_dataset::output::RowFile;
use anabranch_engine::options::Class;
use anabranch_model::{HttpClient, HttpSettings};
use anabranch_recipe::Executor;
use anabranch_server::runs::{RunSettings, Runs};
use anabranch_server::{DatasetSettings, Datasets, Service, Settings};
use anabranch_testkit::{ModelFault, ModelFaultKind, ModelScript, ModelServer};
use http_body_util::BodyExt as _;
use hyper::Method;
use serde_json::{Value, json};

use crate::http::{Answer, Http, JSON};
use crate::support::{Gate, OpenOnDrop, PATIENCE, Server, TempFolder, functions, soon, until};

/// A server with dataset jobs in a folder.
pub(crate) async fn start(data: &Path, change: impl FnOnce(&mut DatasetSettings)) -> Http {
    let executor = Executor::in_memory(functions()).unwrap();
    let service = Service::new(executor.clone(), Settings::default());
    let service = with_datasets(service, &executor, data, change);
    Http::on(Server::of(executor, service, Arc::default()).await)
}

/// A service that builds datasets in a folder, too.
pub(crate) fn with_datasets(
    service: Service,
    executor: &Executor,
    data: &Path,
    change: impl FnOnce(&mut DatasetSettings),
) -> Service {
    let engine = executor.engine();
    let runs = Runs::open(&data.join("runs"), RunSettings::default()).unwrap();
    let mut settings = DatasetSettings::new(data.join("datasets"));
    change(&mut settings);
    let client = HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock())).unwrap();
    let datasets = Datasets::open(settings, engine, client, &runs).unwrap();
    service.with_runs(runs).with_datasets(datasets)
}

pub(crate) const TOPICS: &str = "
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ topic }}.'}
";

pub(crate) fn demo(rows: u64) -> Value {
    json!({ "config": TOPICS, "rows": rows, "seed": 7, "demo": true, "name": "poems" })
}

pub(crate) async fn submit(http: &Http, body: &Value) -> Answer {
    http.post("/v1/datasets", body.to_string()).await
}

async fn show(http: &Http, id: &str) -> Value {
    http.get(&format!("/v1/datasets/{id}"), &[]).await.json()
}

/// Waits for the end of a job, and returns it.
pub(crate) async fn ended(http: &Http, id: &str) -> Value {
    let run = show(http, id).await["run"].as_str().unwrap().to_owned();
    // The stream ends with the run.
    let events = http.get(&format!("/v1/runs/{run}/events"), &[]).await;
    assert!(std::str::from_utf8(&events.body).unwrap().contains("event: end"), "{:?}", events.body);
    show(http, id).await
}

pub(crate) fn accepted(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{:?}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_built_and_read() {
    let data = TempFolder::new();
    let http = start(data.path(), |_| {}).await;
    let answer = submit(&http, &demo(50)).await;
    let id = accepted(&answer);
    assert_eq!(answer.header("location"), format!("/v1/datasets/{id}"));
    let done = ended(&http, &id).await;
    assert_eq!(
        [&done["state"], &done["name"], &done["rows"], &done["rows_done"], &done["error"]],
        [&json!("complete"), &json!("poems"), &json!(50), &json!(50), &Value::Null]
    );
    let kinds: Vec<&str> =
        done["columns"].as_array().unwrap().iter().map(|column| column["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["sampler", "llm"]);
    assert_eq!(done["config"], TOPICS);
    let run = done["run"].as_str().unwrap();
    let shown = http.get(&format!("/v1/runs/{run}"), &[]).await.json();
    assert_eq!(
        [&shown["kind"], &shown["name"], &shown["state"], &shown["rows"]],
        [&json!("dataset"), &json!("poems"), &json!("complete"), &json!(50)]
    );

    let path = format!("/v1/datasets/{id}");
    let page = http.get(&format!("{path}/rows?limit=20&after=40"), &[]).await.json();
    assert_eq!((page["rows"].as_array().unwrap().len(), &page["next"]), (10, &Value::Null));
    let first = http.get(&format!("{path}/rows?limit=20"), &[]).await.json();
    assert_eq!((first["rows"].as_array().unwrap().len(), &first["next"]), (20, &json!(20)));
    assert!(["tea", "coffee"].contains(&first["rows"][0]["topic"].as_str().unwrap()));
    let lines = http.get(&format!("{path}/download"), &[]).await;
    assert_eq!(lines.body.iter().filter(|byte| **byte == b'\n').count(), 50);
    let csv = http.get(&format!("{path}/download?format=csv"), &[]).await;
    assert!(csv.body.starts_with(b"topic,poem\n"), "{:?}", csv.body);
    let parquet = http.get(&format!("{path}/download?format=parquet"), &[]).await;
    assert!(parquet.body.starts_with(b"PAR1"));
    let files = http.get(&format!("{path}/files"), &[]).await.json();
    let names: Vec<&str> =
        files["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"parquet-files/batch_00000.parquet"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("journal")), "{names:?}");
    let file = http.get(&format!("{path}/files/parquet-files/batch_00000.parquet"), &[]).await;
    assert_eq!((file.header("accept-ranges"), &file.body), ("bytes", &parquet.body));
    let of_file = async |range: &str| {
        let path = format!("{path}/files/parquet-files/batch_00000.parquet");
        http.get(&path, &[("range", range)]).await
    };
    let (end, size) = (of_file("bytes=-4").await, parquet.body.len());
    assert_eq!((end.status, &*end.body), (206, &b"PAR1"[..]));
    assert_eq!(end.header("content-range"), format!("bytes {}-{}/{size}", size - 4, size - 1));
    assert_eq!(of_file("bytes=4-9").await.body, parquet.body[4..10]);
    assert_eq!(of_file(&format!("bytes={size}-")).await.status, 416);
    let report = http.get(&format!("{path}/report"), &[]).await;
    assert!(report.header("content-type").starts_with("text/html") && report.status == 200);
    assert_eq!(http.get(&format!("{path}/errors"), &[]).await.json()["errors"], json!([]));
    assert_eq!(http.get("/v1/datasets", &[]).await.json()["datasets"][0]["id"], json!(id));

    for outside in ["../spec.json", "..%2Fspec.json", "journal/x", "%2Fetc%2Fpasswd"] {
        assert_eq!(http.get(&format!("{path}/files/{outside}"), &[]).await.status, 404, "{outside}");
    }
    assert_eq!(http.send(Method::DELETE, &path, &[], "").await.status, 204);
    assert_eq!(http.get(&path, &[]).await.status, 404);
    assert_eq!(std::fs::read_dir(data.path().join("datasets")).unwrap().count(), 0);
}

/// A dataset of several files is downloaded as one, in every format.
#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_several_files_is_downloaded_as_one() {
    let data = TempFolder::new();
    let http = start(data.path(), |_| {}).await;
    let mut body = demo(50);
    body["config"] = format!("{TOPICS}run: {{buffer_size: 20}}\n").into();
    let id = accepted(&submit(&http, &body).await);
    assert_eq!(ended(&http, &id).await["state"], "complete");
    let path = format!("/v1/datasets/{id}");
    let rows = http.get(&format!("{path}/rows"), &[]).await.json()["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 50);
    let download = async |format: &str| {
        let answer = http.get(&format!("{path}/download?format={format}"), &[]).await;
        assert_eq!(answer.status, 200, "{format}: {:?}", answer.body);
        answer.body
    };
    let lines = download("jsonl").await;
    let lines = std::str::from_utf8(&lines).unwrap().lines();
    assert_eq!(lines.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>(), rows);
    let csv = download("csv").await;
    let headers = std::str::from_utf8(&csv).unwrap().lines().filter(|line| *line == "topic,poem").count();
    assert!(headers == 1 && csv.starts_with(b"topic,poem\n"), "one header for all files");
    let file = data.path().join("all.parquet");
    std::fs::write(&file, download("parquet").await).unwrap();
    let mut read = Vec::new();
    for table in RowFile::open(&file).unwrap() {
        let table = table.unwrap();
        read.extend((0..table.ids.len()).map(|row| table.row(row).to_json()));
    }
    let read: Vec<Value> = read.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(read, rows);
}

/// The changes of events make up the cells, and the page of a dataset that was built has cells and curves, also after a
/// restart.
#[tokio::test(flavor = "multi_thread")]
async fn cells_come_with_events_and_stay_after_the_build() {
    let data = TempFolder::new();
    let http = start(data.path(), |_| {}).await;
    let id = accepted(&submit(&http, &demo(300)).await);
    let done = ended(&http, &id).await;
    let events = http.get(&format!("/v1/runs/{}/events", done["run"].as_str().unwrap()), &[]).await;
    let text = std::str::from_utf8(&events.body).unwrap();
    let progress = text.split("\n\n").filter_map(|event| event.split_once("event: progress\ndata: "));
    let mut cells = vec![0_u8; 600];
    for (_, event) in progress {
        let event: Value = serde_json::from_str(event).unwrap();
        for group in event["cells"].as_array().unwrap() {
            let numbers: Vec<usize> =
                group.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect();
            let mut at = numbers[0] * 2;
            for run in numbers[1..].chunks(2) {
                cells[at..at + run[1]].fill(run[0] as u8);
                at += run[1];
            }
        }
    }
    assert_eq!(cells, [2; 600], "all are finished");

    let read = async |http: &Http| {
        let cells = http.get(&format!("/v1/datasets/{id}/cells?from=10&to=20"), &[]).await;
        let history = show(http, &id).await["history"].clone();
        (cells.status, cells.header("x-columns").to_owned(), cells.body.to_vec(), history)
    };
    let (status, columns, bytes, history) = read(&http).await;
    assert_eq!((status, &*columns, bytes), (200, "2", vec![2; 20]));
    assert_eq!(history[0].as_array().unwrap().len(), 5, "{history}");
    drop(http);
    let http = start(data.path(), |_| {}).await;
    let (status, _, bytes, again) = read(&http).await;
    assert_eq!((status, bytes, again), (200, vec![2; 20], history));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_makes_one_dataset() {
    let data = TempFolder::new();
    let key = [("content-type", "application/json"), ("idempotency-key", "order-7")];
    let id = {
        let http = start(data.path(), |_| {}).await;
        let first = http.send(Method::POST, "/v1/datasets", &key, demo(5).to_string()).await;
        let again = http.send(Method::POST, "/v1/datasets", &key, demo(5).to_string()).await;
        assert_eq!(accepted(&first), accepted(&again));
        let other = http.send(Method::POST, "/v1/datasets", &key, demo(6).to_string()).await;
        assert_eq!(other.status, 409);
        let id = accepted(&first);
        ended(&http, &id).await;
        id
    };
    let http = start(data.path(), |_| {}).await;
    let after_restart = http.send(Method::POST, "/v1/datasets", &key, demo(5).to_string()).await;
    assert_eq!(accepted(&after_restart), id);
    assert_eq!(http.get("/v1/datasets", &[]).await.json()["datasets"].as_array().unwrap().len(), 1);
}

/// A models file for the server of a test.
fn models_file(data: &Path, url: &str) -> PathBuf {
    let path = data.join("models.yaml");
    let text = format!(
        "providers:\n  - {{name: here, endpoint: '{url}', api_key: some-key}}\nmodel_configs:\n  \
         - {{alias: writer, model: small, provider: here, inference_parameters: {{max_parallel_requests: 4}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// Each row asks for something else.
const NUMBERED: &str = "
columns:
  - {name: id, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ id }}.'}
";

/// A job whose server shuts down is continued as a part of its trace, and no call is paid for twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_continued_after_a_restart() {
    let data = TempFolder::new();
    // Replies behind the twentieth wait until the build is told to stop.
    let gate = Arc::new((Mutex::new((0, false)), Condvar::new()));
    let waits = Arc::clone(&gate);
    let traces = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&traces);
    let reply = move |call: &anabranch_testkit::ModelCall| {
        let parent = call.headers.iter().find(|(name, _)| name == "traceparent");
        heard.lock().unwrap().push(parent.map(|(_, value)| value.clone()));
        let mut state = waits.0.lock().unwrap();
        state.0 += 1;
        if state.0 > 20 {
            drop(waits.1.wait_timeout_while(state, PATIENCE, |(_, open)| !*open).unwrap());
        }
        "a poem".to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    let models = models_file(data.path(), &model.endpoint());
    let body = json!({ "config": NUMBERED, "rows": 300, "name": "poems" });
    let id = {
        let mut http = start(data.path(), |settings| settings.models = Some(models.clone())).await;
        let headers = [JSON, ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")];
        let submitted = http.send(Method::POST, "/v1/datasets", &headers, body.to_string()).await;
        let (id, run) = (accepted(&submitted), submitted.json()["run"].as_str().unwrap().to_owned());
        let mut events = http.open(&format!("/v1/runs/{run}/events"), &[]).await.into_body();
        until(|| model.calls() > 20).await;
        http.server.service.datasets().unwrap().stop();
        let mut text = String::new();
        while !text.contains("event: stopping") {
            let frame = soon(events.frame()).await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        gate.0.lock().unwrap().1 = true;
        gate.1.notify_all();
        http.server.stop();
        http.server.served().await;
        id
    };
    assert!(!data.path().join("datasets").join(&id).join("end.json").exists());
    assert!(model.paid() < 100, "{}", model.paid());
    let http = start(data.path(), |settings| settings.models = Some(models)).await;
    let done = ended(&http, &id).await;
    assert_eq!([&done["state"], &done["rows_done"]], [&json!("complete"), &json!(300)]);
    assert_eq!((model.paid(), model.repeated()), (300, 0), "each row is paid for once");
    let traces = traces.lock().unwrap();
    let is_part = |parent: &Option<String>| {
        parent.as_ref().is_some_and(|parent| parent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"))
    };
    assert!(traces.len() >= 300 && traces.iter().all(is_part), "{traces:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn model_servers_are_told_the_trace() {
    let data = TempFolder::new();
    let traces = Arc::new(Mutex::new(BTreeSet::new()));
    let heard = Arc::clone(&traces);
    let reply = move |call: &anabranch_testkit::ModelCall| {
        let header = |name: &str| {
            let found = call.headers.iter().find(|(header, _)| header == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        heard.lock().unwrap().insert((header("traceparent"), header("tracestate")));
        "a poem".to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    let models = models_file(data.path(), &model.endpoint());
    let http = start(data.path(), |settings| settings.models = Some(models)).await;
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let header = format!("00-{trace}-{parent}-01");
    let run = async |headers: &[(&str, &str)], seed: u64| {
        let body = json!({ "config": NUMBERED, "rows": 3, "seed": seed }).to_string();
        let headers = [&[JSON], headers].concat();
        let submitted = http.send(Method::POST, "/v1/datasets", &headers, body).await;
        assert_eq!(ended(&http, &accepted(&submitted)).await["state"], "complete");
        let told = std::mem::take(&mut *traces.lock().unwrap());
        assert_eq!(told.len(), 1, "{told:?}");
        told.into_iter().next().unwrap()
    };
    let (told, state) = run(&[("traceparent", &header), ("tracestate", "a=1")], 1).await;
    let span = told.strip_prefix(&format!("00-{trace}-")).and_then(|rest| rest.strip_suffix("-01")).unwrap();
    assert!(span.len() == 16 && span != parent, "{told}");
    assert_eq!(state, "a=1");
    assert_eq!(run(&[], 2).await, (String::new(), String::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_wait_in_order_and_are_cancelled() {
    let data = TempFolder::new();
    let faults = vec![ModelFault { percent: 100, times: None, kind: ModelFaultKind::Hang }];
    let model = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
    let models = models_file(data.path(), &model.endpoint());
    let http = start(data.path(), |settings| {
        settings.models = Some(models);
        settings.builds_most = 1;
    })
    .await;
    let stuck = json!({ "config": NUMBERED, "rows": 3, "name": "stuck" });
    let first = accepted(&submit(&http, &stuck).await);
    let second = accepted(&submit(&http, &demo(3)).await);
    until(|| model.calls() == 3).await;
    assert_eq!(show(&http, &first).await["state"], "running");
    let cells = http.get(&format!("/v1/datasets/{first}/cells"), &[]).await;
    assert_eq!((cells.header("x-columns"), &cells.body[..]), ("2", &[2, 1, 2, 1, 2, 1][..]));
    assert_eq!(show(&http, &second).await["state"], "queued");
    assert_eq!(http.post(&format!("/v1/datasets/{second}/cancel"), "{}").await.status, 202);
    let cancelled = show(&http, &second).await;
    assert_eq!(cancelled["state"], "stopped");
    let again = http.post(&format!("/v1/datasets/{second}/cancel"), "{}").await;
    assert_eq!(again.status, 409, "{:?}", again.body);
    let not_yet = http.send(Method::DELETE, &format!("/v1/datasets/{first}"), &[], "").await;
    assert_eq!(not_yet.status, 409);
}

/// A build that cannot write its files says why.
#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_build_has_its_cause() {
    let data = TempFolder::new();
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let waits = gate.clone();
    let reply = move |_: &anabranch_testkit::ModelCall| {
        waits.wait();
        "a poem".to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    let models = models_file(data.path(), &model.endpoint());
    let http = start(data.path(), |settings| {
        settings.models = Some(models);
        settings.builds_most = 1;
    })
    .await;
    accepted(&submit(&http, &json!({ "config": NUMBERED, "rows": 1 })).await);
    let queued = accepted(&submit(&http, &demo(3)).await);
    std::fs::write(data.path().join("datasets").join(&queued).join("output"), "no folder").unwrap();
    gate.open();
    let failed = ended(&http, &queued).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("output") && error.contains("(os error "), "{error}");
}

/// The texts of unfinished rows have a bound, as those of a request have.
#[tokio::test(flavor = "multi_thread")]
async fn a_build_of_too_large_values_is_stopped() {
    let data = TempFolder::new();
    let http = start(data.path(), |settings| settings.memory_most = 1 << 20).await;
    let config = |times: u32| {
        json!({
            "columns": [
                { "name": "id", "column_type": "sampler", "sampler_type": "uuid", "params": {} },
                { "name": "long", "column_type": "expression", "expr": format!("{{{{ id * {times} }}}}") },
            ],
        })
    };
    let build = async |times| {
        let id = accepted(&submit(&http, &json!({ "config": config(times), "rows": 20_000 })).await);
        ended(&http, &id).await
    };
    let stopped = build(1_000).await;
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    let error = stopped["error"].as_str().unwrap();
    assert!(error.contains("the values of unfinished row groups take more than 1 MiB"), "{error}");
    // Four times the bound in all, and less than it in three row groups: what is written does not count any more.
    assert_eq!(build(4).await["state"], "complete");
}

/// The console reads lists every few seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_does_not_read_the_folders_of_ended_jobs_again() {
    let data = TempFolder::new();
    let http = start(data.path(), |_| {}).await;
    let id = accepted(&submit(&http, &demo(5)).await);
    ended(&http, &id).await;
    let listed = async || http.get("/v1/datasets", &[]).await.json()["datasets"][0].clone();
    let first = listed().await;
    assert_eq!((&first["rows_written"], first["columns"].as_array().unwrap().len()), (&json!(5), 2));
    let output = data.path().join("datasets").join(&id).join("output");
    std::fs::rename(&output, data.path().join("away")).unwrap();
    assert_eq!(listed().await, first);
}

/// Counters do not vanish with the build.
#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_finished_builds_are_counted() {
    let data = TempFolder::new();
    let http = start(data.path(), |_| {}).await;
    for (rows, calls) in [(5, 5), (3, 8)] {
        let id = accepted(&submit(&http, &json!({ "config": NUMBERED, "rows": rows, "demo": true })).await);
        ended(&http, &id).await;
        let page = http.get("/metrics", &[]).await.body;
        let page = std::str::from_utf8(&page).unwrap();
        let line = format!("anabranch_dataset_calls_total{{model=\"writer\"}} {calls}\n");
        assert!(page.contains(&line), "{page}");
        assert!(page.contains("# TYPE anabranch_dataset_calls_total counter\n"));
        let line = format!("anabranch_model_call_seconds_count{{model=\"writer\"}} {calls}\n");
        assert!(page.contains(&line), "{page}");
    }
}

/// Either route cancels a queued job at once, and for good.
#[tokio::test(flavor = "multi_thread")]
async fn a_queued_job_is_cancelled_by_its_run() {
    let data = TempFolder::new();
    let faults = vec![ModelFault { percent: 100, times: None, kind: ModelFaultKind::Hang }];
    let model = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
    let models = models_file(data.path(), &model.endpoint());
    let http = start(data.path(), |settings| {
        settings.models = Some(models);
        settings.builds_most = 1;
    })
    .await;
    accepted(&submit(&http, &json!({ "config": NUMBERED, "rows": 3 })).await);
    let queued = submit(&http, &demo(3)).await;
    let (id, run) = (accepted(&queued), queued.json()["run"].as_str().unwrap().to_owned());
    assert_eq!(http.post(&format!("/v1/runs/{run}/cancel"), "{}").await.status, 202);
    assert_eq!(show(&http, &id).await["state"], "stopped");
    assert!(data.path().join("datasets").join(&id).join("end.json").exists());
    let again = http.post(&format!("/v1/runs/{run}/cancel"), "{}").await;
    assert_eq!(again.status, 409, "{:?}", again.body);
}

/// Rows are read while recipes take all threads for batch work.
#[tokio::test(flavor = "multi_thread")]
async fn reads_do_not_wait_for_recipes() {
    let data = TempFolder::new();
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let executor = Executor::in_memory(gate.functions()).unwrap();
    let service = Service::new(executor.clone(), Settings::default());
    let service = with_datasets(service, &executor, data.path(), |_| {});
    let http = Http::on(Server::of(executor, service, Arc::default()).await);
    let id = accepted(&submit(&http, &demo(2)).await);
    let run = ended(&http, &id).await["run"].as_str().unwrap().to_owned();
    let pool = Arc::clone(http.server.executor.engine().pool(Class::Batch));
    for _ in 0..64 {
        let gate = gate.clone();
        pool.submit(Box::new(move || gate.wait()));
    }
    let path = format!("/v1/datasets/{id}");
    for part in ["", "/rows", "/cells", "/report", "/files", "/errors"] {
        assert_eq!(http.get(&format!("{path}{part}"), &[]).await.status, 200, "{part}");
    }
    assert_eq!(http.get(&format!("/v1/runs/{run}"), &[]).await.status, 200);
}

/// Whoever may read a dataset is not told the keys of its models.
#[tokio::test(flavor = "multi_thread")]
async fn keys_in_configurations_are_masked() {
    let data = TempFolder::new();
    let model = ModelServer::start(ModelScript::default());
    let http = start(data.path(), |settings| settings.allow_custom = true).await;
    let config = format!(
        "{NUMBERED}providers:\n  - name: here\n    endpoint: '{}'\n    api_key: sk-very-secret\n    \
         extra_headers: {{X-Tenant: tenant-secret}}\nmodel_configs:\n  - {{alias: writer, model: small, provider: here}}\n",
        model.endpoint()
    );
    let id = accepted(&submit(&http, &json!({ "config": config, "rows": 2 })).await);
    let done = ended(&http, &id).await;
    assert_eq!(done["state"], "complete", "{done}");
    assert!(done["config"].as_str().unwrap().contains("alias: writer"), "{done}");
    let run = done["run"].as_str().unwrap();
    let mut paths = vec![format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events"), "/metrics".to_owned()];
    for part in ["", "/rows", "/errors", "/report", "/files", "/download"] {
        paths.push(format!("/v1/datasets/{id}{part}"));
    }
    for file in http.get(&format!("/v1/datasets/{id}/files"), &[]).await.json()["files"].as_array().unwrap() {
        paths.push(format!("/v1/datasets/{id}/files/{}", file["name"].as_str().unwrap()));
    }
    for path in paths {
        let answer = http.get(&path, &[]).await;
        assert_eq!(answer.status, 200, "{path}");
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!text.contains("very-secret") && !text.contains("tenant-secret"), "{path}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_configurations_are_refused() {
    let data = TempFolder::new();
    let seeds = data.path().join("seeds");
    std::fs::create_dir_all(&seeds).unwrap();
    std::fs::write(seeds.join("words.csv"), "word\nriver\n").unwrap();
    std::fs::write(data.path().join("secret.csv"), "word\nsecret\n").unwrap();
    let http = start(data.path(), |settings| {
        settings.files = vec![seeds];
        settings.rows_most = 1_000;
        settings.config_most = 4_096;
        settings.cells_most = 1_000;
    })
    .await;
    let seeded = |path: &str| {
        json!({
            "config": {
                "seed_config": { "source": { "seed_type": "local", "path": path } },
                "columns": [{ "name": "shout", "column_type": "expression", "expr": "{{ word }}!" }],
            },
            "rows": 1,
        })
    };
    let custom = "columns:\n  - {name: x, column_type: custom, generator_function: f, worker: {command: [sh, -c, id]}}";
    let providers = format!(
        "{TOPICS}providers:\n  - {{name: p, endpoint: 'http://169.254.169.254', provider_type: openai}}\n"
    );
    let secret = data.path().join("secret.csv").display().to_string();
    for (body, status, why) in [
        (json!({ "config": custom, "rows": 1 }), 409, "the custom column `x` is not allowed here"),
        (json!({ "config": providers, "rows": 1 }), 409, "`providers` is not allowed here"),
        (json!({ "config": TOPICS, "models": {}, "rows": 1 }), 409, "`models` is not allowed here"),
        (seeded("../secret.csv"), 400, "is not in a folder that seeds may be read from"),
        (seeded(&secret), 400, "is not in a folder that seeds may be read from"),
        (seeded("/etc/passwd"), 400, "is not in a folder that seeds may be read from"),
        (json!({ "config": TOPICS, "rows": 1 }), 400, "no model is configured for `writer`"),
        (json!({ "config": TOPICS, "rows": 1_001, "demo": true }), 400, "one dataset may have 1 to 1000"),
        (json!({ "config": TOPICS, "rows": 0, "demo": true }), 400, "one dataset may have 1 to 1000"),
        (
            json!({ "config": TOPICS, "rows": 501, "demo": true }),
            400,
            "would have 1002 cells, and may have 1000",
        ),
        (json!({ "config": TOPICS, "demo": true }), 400, "say how many rows"),
        (json!({ "config": "x".repeat(5_000), "rows": 1 }), 413, "more than 4 KiB"),
        (json!({ "config": "columns: [", "rows": 1 }), 400, "config.yaml:"),
        (json!({ "config": 7, "rows": 1 }), 400, "`config` is an object, or YAML as text"),
        (json!({ "config": TOPICS, "rows": 1, "colour": 1 }), 400, "unknown field"),
        (json!({ "config": TOPICS, "rows": 1, "budget": { "deadline": "soon" } }), 400, "`budget.deadline`"),
    ] {
        let answer = submit(&http, &body).await;
        let message = answer.error().1;
        assert!(answer.status == status && message.contains(why), "{body}: {} {message}", answer.status);
        assert!(!message.contains("secret\n") && !message.contains(".new/"), "{message}");
    }
    assert_eq!(http.get("/v1/datasets", &[]).await.json()["datasets"], json!([]));
    assert_eq!(http.get("/v1/runs", &[]).await.json()["runs"], json!([]), "what is refused is not a run");
    assert_eq!(std::fs::read_dir(data.path().join("datasets")).unwrap().count(), 0);
    let fine = accepted(&submit(&http, &seeded("words.csv")).await);
    assert_eq!(ended(&http, &fine).await["state"], "complete");
    let rows = http.get(&format!("/v1/datasets/{fine}/rows"), &[]).await.json();
    assert_eq!(rows["rows"], json!([{ "word": "river", "shout": "river!" }]));
    assert_eq!(http.get("/v1/datasets/x", &[]).await.status, 400);
    let none = Http::start().await;
    assert_eq!(none.get("/v1/datasets", &[]).await.status, 501);
}
