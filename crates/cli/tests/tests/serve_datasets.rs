//! Datasets of a real server: submitted, killed with it, continued, listed as runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anabranch_testkit::{ModelCall, ModelScript, ModelServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::binary::in_folder;
use crate::recipe::empty;
use crate::recipe_served::Server;

/// No wait of a test is as long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(600);

/// Calls in flight at the same time.
const PARALLEL: usize = 4;

/// One request over a connection of its own: the status and the body.
fn http(server: &Server, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let host = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn get(server: &Server, path: &str) -> Value {
    let (status, body) = http(server, "GET", path, "", "");
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn submit(server: &Server, key: &str, body: &Value) -> String {
    let headers = format!("Idempotency-Key: {key}\r\n");
    let (status, answer) = http(server, "POST", "/v1/datasets", &headers, &body.to_string());
    assert_eq!(status, 202, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["id"].as_str().unwrap().to_owned()
}

/// Waits for the end of a job: the stream of its run ends with it.
fn ended(server: &Server, id: &str) -> Value {
    let run = get(server, &format!("/v1/datasets/{id}"))["run"].as_str().unwrap().to_owned();
    let (status, events) = http(server, "GET", &format!("/v1/runs/{run}/events"), "", "");
    assert!(status == 200 && events.contains("event: end"), "{events}");
    get(server, &format!("/v1/datasets/{id}"))
}

const NUMBERED: &str = "
columns:
  - {name: id, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ id }}.'}
";

fn models(folder: &Path, model: &ModelServer) {
    let text = format!(
        "model_configs: [{{alias: writer, model: small, provider: here, \
         inference_parameters: {{max_parallel_requests: {PARALLEL}}}}}]\n\
         providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
        model.endpoint()
    );
    std::fs::write(folder.join("models.yaml"), text).unwrap();
}

#[test]
fn a_killed_server_continues_its_datasets() {
    let folder = empty("serve_datasets_kill");
    // Replies behind the 40th wait until the server was killed.
    let gate = Arc::new((Mutex::new((0, false)), Condvar::new()));
    let waits = Arc::clone(&gate);
    let reply = move |_: &ModelCall| {
        let mut state = waits.0.lock().unwrap();
        state.0 += 1;
        waits.1.notify_all();
        if state.0 > 40 {
            drop(waits.1.wait_timeout_while(state, PATIENCE, |(_, open)| !*open).unwrap());
        }
        "a poem".to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    models(&folder, &model);
    let options = ["--dataset-models", "models.yaml", "--anonymous", "admin"];
    let body = json!({ "config": NUMBERED, "rows": 200, "name": "poems" });
    let first = Server::begin_with(&folder, &options);
    let id = submit(&first, "order-1", &body);
    drop(gate.1.wait_timeout_while(gate.0.lock().unwrap(), PATIENCE, |(calls, _)| *calls <= 40).unwrap());
    first.end(Signal::KILL);
    gate.0.lock().unwrap().1 = true;
    gate.1.notify_all();

    let second = Server::begin_with(&folder, &options);
    assert_eq!(submit(&second, "order-1", &body), id, "the key is remembered");
    let done = ended(&second, &id);
    assert_eq!([&done["state"], &done["rows_done"]], [&json!("complete"), &json!(200)]);
    assert!(model.repeated() <= PARALLEL, "only calls in flight are paid for twice: {}", model.repeated());
    let (_, lines) = http(&second, "GET", &format!("/v1/datasets/{id}/download"), "", "");
    assert_eq!(lines.lines().count(), 200);
    assert_eq!(second.end(Signal::TERM), Some(0));

    let listed = in_folder(&folder, &["runs", "--json"], "");
    let run: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        [&run["kind"], &run["name"], &run["state"]],
        [&json!("dataset"), &json!("poems"), &json!("complete")]
    );
    let shown = in_folder(&folder, &["run", "show", run["id"].as_str().unwrap()], "");
    assert!(shown.stdout.starts_with("dataset poems: complete after "), "{}", shown.stdout);
    let table = in_folder(&folder, &["runs", "--kind", "dataset", "--limit", "1"], "");
    assert!(table.stdout.contains("poems") && table.stdout.lines().count() == 3, "{}", table.stdout);
}

/// Jobs that were accepted before the server was killed are built by the next one, one after the other.
#[test]
fn accepted_datasets_outlive_a_server_that_is_killed() {
    let folder = empty("serve_datasets_accepted");
    // The first job is stuck until the server was killed, so the others are queued then.
    let gate = Arc::new((Mutex::new((0, false)), Condvar::new()));
    let waits = Arc::clone(&gate);
    let reply = move |_: &ModelCall| {
        let mut state = waits.0.lock().unwrap();
        state.0 += 1;
        waits.1.notify_all();
        if state.0 > 10 {
            drop(waits.1.wait_timeout_while(state, PATIENCE, |(_, open)| !*open).unwrap());
        }
        "a poem".to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    models(&folder, &model);
    let options = ["--dataset-models", "models.yaml", "--anonymous", "admin", "--dataset-builds", "1"];
    let first = Server::begin_with(&folder, &options);
    let body = |seed: usize| json!({ "config": NUMBERED, "rows": 30, "seed": seed, "name": format!("poems-{seed}") });
    let ids: Vec<String> = (0..3).map(|seed| submit(&first, &format!("order-{seed}"), &body(seed))).collect();
    first.end(Signal::KILL);
    gate.0.lock().unwrap().1 = true;
    gate.1.notify_all();

    let second = Server::begin_with(&folder, &options);
    for (seed, id) in ids.iter().enumerate() {
        let done = ended(&second, id);
        assert_eq!([&done["state"], &done["rows_done"]], [&json!("complete"), &json!(30)], "{seed}: {done}");
        assert_eq!(submit(&second, &format!("order-{seed}"), &body(seed)), *id, "the key is remembered");
    }
    assert!(model.repeated() <= PARALLEL, "only calls in flight are paid for twice: {}", model.repeated());
    assert_eq!(model.paid() - model.repeated(), 90);
    assert_eq!(second.end(Signal::TERM), Some(0));
}

/// A command that waits goes on when the server is killed and started again, at the same address.
#[test]
fn a_command_waits_for_a_server_that_is_started_again() {
    let folder = empty("serve_datasets_wait");
    let gate = Arc::new((Mutex::new((0, false)), Condvar::new()));
    let waits = Arc::clone(&gate);
    let reply = move |_: &ModelCall| {
        let mut state = waits.0.lock().unwrap();
        state.0 += 1;
        waits.1.notify_all();
        if state.0 > 10 {
            drop(waits.1.wait_timeout_while(state, PATIENCE, |(_, open)| !*open).unwrap());
        }
        "a poem".to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    models(&folder, &model);
    std::fs::write(folder.join("poems.yaml"), NUMBERED).unwrap();
    let options = ["--data", "store", "--dataset-models", "models.yaml"];
    let first = Server::begin_at(&folder, &Server::own_address(), &options);
    let address = first.url.strip_prefix("http://").unwrap().to_owned();
    let waiting = std::thread::scope(|threads| {
        let waiting = threads.spawn(|| {
            let submit = ["dataset", "submit", "poems.yaml", "--rows", "30", "--data", "store", "--wait"];
            in_folder(&folder, &submit, "")
        });
        drop(gate.1.wait_timeout_while(gate.0.lock().unwrap(), PATIENCE, |(calls, _)| *calls <= 10).unwrap());
        first.end(Signal::KILL);
        gate.0.lock().unwrap().1 = true;
        gate.1.notify_all();
        let _second = Server::begin_at(&folder, &address, &options);
        waiting.join().unwrap()
    });
    assert_eq!(waiting.code, 0, "{}", waiting.shown());
    assert!(
        waiting.stderr.contains("trying again") && waiting.stderr.contains("complete: 30 rows"),
        "{}",
        waiting.shown()
    );
}
