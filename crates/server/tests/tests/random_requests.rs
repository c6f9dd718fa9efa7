//! Random requests to every route of the OpenAPI document: each is answered, never with a fault of the server, and with the
//! status, the media type and the shape that the document says. Every operation succeeds at least once.

use std::time::Duration;

use anabranch_recipe::Executor;
use anabranch_server::CanarySettings;
use anabranch_testkit::{ModelFault, ModelFaultKind, ModelScript, ModelServer, Rng};
use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::datasets::{TOPICS, accepted, demo, ended, submit, with_datasets};
use crate::guard::send;
use crate::http::JSON;
use crate::openapi::check;
use crate::plans::{PROJECT, Shop, plan};
use crate::random_values::{Schemas, any, change, text};
use crate::support::{TempFolder, functions, soon, until};

/// Requests per operation.
const REQUESTS: usize = 40;

/// The parts of a stream of events that are read.
const FRAMES: usize = 3;

/// Headers that routes read, with values as clients may write them.
const HEADERS: [(&str, &[&str]); 8] = [
    (
        "Accept",
        &["*/*", "application/json", "application/x-ndjson", "text/html;q=0.5, */*;q=0.1", ";;,", "\u{fffd}"],
    ),
    (
        "Range",
        &[
            "bytes=0-3",
            "bytes=-1",
            "bytes=5-1",
            "bytes=0-0,2-3",
            "bytes=99999999999999999999-",
            "lines=1",
            "bytes=",
        ],
    ),
    (
        "If-Match",
        &[
            "*",
            "\"\"",
            "\"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262\"",
            "W/\"x\"",
            "x",
        ],
    ),
    ("If-None-Match", &["*", "\"x\", W/\"y\"", "x"]),
    ("Request-Timeout", &["10s", "0ms", "1ns", "-1s", "soon", "99999999999999999999h", ""]),
    ("Last-Event-ID", &["0", "7", "-1", "18446744073709551616", "x", ""]),
    ("Idempotency-Key", &["order-7", "", "\t", "\u{1f30a}"]),
    ("X-Request-Id", &["r-1", "", "a b", "\u{1f30a}"]),
];

/// The seed of the random inputs, which `PROPTEST_RNG_SEED` chooses.
pub(crate) fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").map_or(7, |seed| seed.parse().unwrap())
}

/// A server with plans, recipes and datasets.
pub(crate) struct Fixture {
    pub(crate) shop: Shop,
    job: String,
    /// The run that built it.
    run: String,
    /// A run of a plan, with a timeline.
    traced: String,
    blob: String,
    recipe: String,
    /// It never answers.
    model: ModelServer,
    _data: TempFolder,
}

impl Fixture {
    pub(crate) async fn start() -> Fixture {
        let data = TempFolder::new();
        let faults = vec![ModelFault { percent: 100, times: None, kind: ModelFaultKind::Hang }];
        let model = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
        let models = format!(
            "model_configs: [{{alias: stuck, model: small, provider: here}}]\n\
             providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
            model.endpoint()
        );
        std::fs::write(data.path().join("models.yaml"), models).unwrap();
        let executor = Executor::in_memory(functions()).unwrap();
        let folder = Shop::files(PROJECT);
        let mut settings = Shop::settings(&folder);
        settings.canary = Some(CanarySettings { share: 0.5, trial: Duration::from_secs(3600) });
        let with_jobs = |service| {
            with_datasets(service, &executor, data.path(), |settings| {
                settings.models = Some(data.path().join("models.yaml"));
                // Two of them are taken by builds that do not end.
                settings.builds_most = 4;
                settings.rows_most = 10;
                settings.kept_most = 200;
            })
        };
        let shop = Shop::serving(folder, settings, executor.clone(), with_jobs).await;
        let job = accepted(&submit(&shop.http, &demo(3)).await);
        let run = ended(&shop.http, &job).await["run"].as_str().unwrap().to_owned();
        let request = json!({ "user_id": 7, "candidates": [101] }).to_string();
        let traced = shop.http.post("/v1/plans/rank/run?trace=true", request).await;
        let traced = traced.header("x-run-id").to_owned();
        let blob = shop.http.blob("hello").await;
        let recipe = json!({ "function": "identity/1.0.0", "inputs": [blob], "params": {} }).to_string();
        let recipe =
            shop.http.post("/v1/recipes", recipe).await.json()["address"].as_str().unwrap().to_owned();
        Fixture { shop, job, run, traced, blob, recipe, model, _data: data }
    }

    /// Ids, addresses and names that exist.
    pub(crate) fn names(&self) -> Vec<String> {
        let [job, run, blob, recipe] = [&self.job, &self.run, &self.blob, &self.recipe].map(Clone::clone);
        vec![job, run, blob, recipe, "rank".to_owned(), "timeline.json".to_owned()]
    }

    /// Values of parameters with which an operation can succeed. What it consumes is made first.
    async fn targets(&self, method: &str, path: &str) -> Vec<(&'static str, Vec<String>)> {
        let http = &self.shop.http;
        let dataset = path.starts_with("/v1/datasets");
        let mut ids =
            if dataset { vec![self.job.clone()] } else { vec![self.run.clone(), self.traced.clone()] };
        let mut names = vec!["rank".to_owned()];
        match (method, path) {
            ("post", "/v1/plans/{name}/promote" | "/v1/plans/{name}/rollback") => {
                // Each of these texts is a version of its own.
                self.shop.write(
                    "rank.plan.json",
                    &format!("{}{}", plan("rank", "product", ""), "\n".repeat(path.len())),
                );
                self.shop.plans.reload().await.unwrap();
            }
            ("post", "/v1/runs/{id}/cancel" | "/v1/datasets/{id}/cancel") => {
                let body = json!({ "config": TOPICS.replace("writer", "stuck"), "rows": 2 });
                let calls = self.model.calls();
                let answer = submit(http, &body).await;
                accepted(&answer);
                until(|| self.model.calls() > calls).await;
                ids = vec![answer.json()[if dataset { "id" } else { "run" }].as_str().unwrap().to_owned()];
            }
            ("delete", "/v1/datasets/{id}") => {
                ids.clear();
                for _ in 0..3 {
                    let id = accepted(&submit(http, &demo(1)).await);
                    ended(http, &id).await;
                    ids.push(id);
                }
            }
            (_, "/v1/datasets/{id}/files/{name}") => {
                let files = http.get(&format!("/v1/datasets/{}/files", self.job), &[]).await.json();
                names = vec![files["files"][0]["name"].as_str().unwrap().to_owned()];
            }
            (_, "/v1/refs/{name}") => {
                names = ["a", "b/c", "d"].map(str::to_owned).to_vec();
                for name in &names {
                    let name = encoded(name);
                    let body = json!({ "address": self.blob }).to_string();
                    let set = http.send(Method::PUT, &format!("/v1/refs/{name}"), &[JSON], body).await;
                    assert_eq!(set.status, 200, "{:?}", set.body);
                }
            }
            _ => {}
        }
        vec![
            ("id", ids),
            ("name", names),
            ("address", vec![self.blob.clone()]),
            ("target", vec![self.recipe.clone()]),
            ("path", vec!["main.js".to_owned()]),
        ]
    }
}

/// A text as a part of a path or a query.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A request.
struct Sent {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
    /// The body, if it is JSON that is sent as JSON.
    json: Option<Value>,
}

/// Makes requests for one operation.
struct Requests<'a> {
    method: &'a str,
    path: &'a str,
    operation: &'a Value,
    targets: Vec<(&'static str, Vec<String>)>,
    schemas: Schemas<'a>,
}

impl Requests<'_> {
    /// A request that fits the document.
    fn valid(&self, rng: &mut Rng) -> Sent {
        let line = self.line(rng, |rng, name, schema| self.parameter(rng, name, schema));
        let mut headers = self.headers(rng);
        let kinds: Vec<&String> = content(self.operation).into_iter().flat_map(|all| all.keys()).collect();
        if !kinds.is_empty() && rng.percent(30) {
            headers.push(format!("Accept: {}", rng.choose(&kinds)));
        }
        match self.operation["requestBody"]["content"].as_object().and_then(|kinds| kinds.iter().next()) {
            Some((kind, content)) if kind == "application/json" => {
                headers.push(format!("Content-Type: {kind}"));
                let json = self.schemas.value(rng, &content["schema"]);
                Sent { line, headers, body: json.to_string().into_bytes(), json: Some(json) }
            }
            Some((kind, _)) => {
                headers.push(format!("Content-Type: {kind}"));
                let body = (0..rng.within(0..300)).map(|_| rng.bits() as u8).collect();
                Sent { line, headers, body, json: None }
            }
            None => Sent { line, headers, body: Vec::new(), json: None },
        }
    }

    /// A request that is wrong in some of its parts.
    fn changed(&self, rng: &mut Rng) -> Sent {
        let mut sent = self.valid(rng);
        if rng.percent(50) {
            // Some of these texts are no parts of a path.
            sent.line = self.line(rng, |rng, name, schema| match rng.percent(50) {
                true => text(rng),
                false => self.parameter(rng, name, schema),
            });
        }
        for (name, values) in HEADERS {
            if rng.percent(20) {
                sent.headers.retain(|header| !header.starts_with(name));
                sent.headers.push(format!("{name}: {}", rng.choose(values)));
            }
        }
        match (rng.within(0..10), &mut sent.json) {
            (0, _) => {
                sent.body = (0..rng.within(0..300)).map(|_| rng.bits() as u8).collect();
                sent.json = None;
            }
            (1, json) => {
                sent.headers.retain(|header| !header.starts_with("Content-Type"));
                sent.headers.push("Content-Type: text/plain".to_owned());
                *json = None;
            }
            (2, Some(json)) => *json = any(rng, 4),
            (3..8, Some(json)) => change(rng, json),
            _ => {}
        }
        if let Some(json) = &sent.json {
            sent.body = json.to_string().into_bytes();
        }
        sent
    }

    /// A parameter: a known one, or one that its schema allows.
    fn parameter(&self, rng: &mut Rng, name: &str, schema: &Value) -> String {
        let known = self.targets.iter().find(|(known, _)| *known == name);
        let value = match known {
            Some((_, known)) if rng.percent(80) => rng.choose(known).clone(),
            _ => self.written(rng, schema),
        };
        encoded(&value)
    }

    /// A value of a parameter as text.
    fn written(&self, rng: &mut Rng, schema: &Value) -> String {
        match self.schemas.value(rng, schema) {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// Some of the headers that the operation reads.
    fn headers(&self, rng: &mut Rng) -> Vec<String> {
        let all = self.operation["parameters"].as_array().unwrap();
        let mut headers = Vec::new();
        for param in all.iter().filter(|param| param["in"] == "header") {
            if rng.percent(15) {
                let value = self.written(rng, &param["schema"]);
                headers.push(format!("{}: {value}", param["name"].as_str().unwrap()));
            }
        }
        headers
    }

    fn line(&self, rng: &mut Rng, value: impl Fn(&mut Rng, &str, &Value) -> String) -> String {
        let mut line = self.path.to_owned();
        let mut words = Vec::new();
        for param in self.operation["parameters"].as_array().unwrap() {
            let name = param["name"].as_str().unwrap();
            match param["in"].as_str().unwrap() {
                "path" => line = line.replace(&format!("{{{name}}}"), &value(rng, name, &param["schema"])),
                "query" if rng.percent(40) => {
                    words.push(format!("{name}={}", value(rng, "", &param["schema"])));
                }
                _ => {}
            }
        }
        let query = if words.is_empty() { String::new() } else { format!("?{}", words.join("&")) };
        format!("{} {line}{query}", self.method.to_uppercase())
    }
}

/// The bodies of the good answers of an operation, by media type.
fn content(operation: &Value) -> Option<&serde_json::Map<String, Value>> {
    operation["responses"]["2XX"]["content"].as_object()
}

/// An answer.
struct Received {
    status: u16,
    /// Without its parameters.
    kind: Option<String>,
    body: Vec<u8>,
}

/// The answer to a request. Of a stream of events, the first parts; a run begins while they are read.
async fn exchange(shop: &Shop, sent: &Sent) -> Received {
    let mut stream = shop.http.server.connect().await;
    let headers: String = sent.headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = sent.body.len();
    let head = format!(
        "{} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n",
        sent.line
    );
    stream.write_all(&[head.as_bytes(), &sent.body].concat()).await.unwrap();
    let (mut answer, mut has_begun_a_run) = (Vec::new(), false);
    while soon(stream.read_buf(&mut answer)).await.unwrap() > 0 {
        let text = String::from_utf8_lossy(&answer);
        if text.contains("content-type: text/event-stream") {
            if text.matches("\n\n").count() >= FRAMES || text.contains("event: run") {
                break;
            }
            if !has_begun_a_run && text.contains(":\n\n") {
                has_begun_a_run = true;
                let request = json!({ "user_id": 7, "candidates": [101] }).to_string();
                assert_eq!(shop.http.post("/v1/plans/guarded/run?trace=true", request).await.status, 200);
            }
        }
    }
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    let kind = kind.map(|kind| kind.split(';').next().unwrap().to_owned());
    Received { status: head["HTTP/1.1 ".len()..][..3].parse().unwrap(), kind, body: answer.split_off(end) }
}

/// Checks an answer. The error says what is wrong.
fn judge(document: &Value, requests: &Requests<'_>, sent: &Sent, answer: &Received) -> Result<(), String> {
    let Received { status, kind, body } = answer;
    let is_head = sent.line.starts_with("HEAD ");
    // Some ask for less time than anything takes.
    let asks_for_time =
        sent.line.contains("timeout=") || sent.headers.iter().any(|it| it.starts_with("Request-Timeout"));
    if *status >= 500 && !(*status == 504 && asks_for_time) {
        return Err("a fault of the server".to_owned());
    }
    if is_head && !body.is_empty() {
        return Err("an answer to HEAD has no body".to_owned());
    }
    let (path, method) = (requests.path, requests.method);
    let schemas = requests.schemas.all;
    match status {
        200..300 => {
            let kinds = content(requests.operation);
            match (kind, kinds) {
                (None, None) => {}
                (Some(kind), Some(kinds)) if kinds.contains_key(kind) => {}
                _ => return Err(format!("the document has no good answer of the type {kind:?}")),
            }
            let schema = kind.as_ref().map(|kind| &kinds.unwrap()[kind]["schema"]);
            if !is_head && let Some(schema) = schema.filter(|schema| !schema["$ref"].is_null()) {
                let value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
                check(schema, &value, schemas)?;
            }
            let wanted = &requests.operation["requestBody"]["content"]["application/json"]["schema"];
            if let Some(json) = &sent.json {
                check(wanted, json, schemas).map_err(|why| format!("the body was accepted: {why}"))?;
            }
        }
        // The client has it already.
        304 if requests.operation["responses"]["304"].is_object()
            && sent.headers.iter().any(|it| it.starts_with("If-None-Match")) => {}
        400.. => {
            if kind.as_deref() != Some("application/json") {
                return Err(format!("an error of the type {kind:?}"));
            }
            if !is_head {
                let value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
                check(
                    &document["paths"][path][method]["responses"]["default"]["content"]["application/json"]["schema"],
                    &value,
                    schemas,
                )?;
            }
        }
        _ => return Err("the document has no such status".to_owned()),
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_any_request() {
    let fixture = Fixture::start().await;
    let (_, document) = send(&fixture.shop.http.server, "GET /openapi.json", &[], b"").await;
    let document: Value = serde_json::from_str(&document).unwrap();
    let known = [
        ("function", vec![json!("identity/1.0.0")]),
        ("inputs", vec![json!([fixture.blob]), json!([fixture.recipe])]),
        ("params", vec![json!({}), json!({ "x": [1, "two"] })]),
        ("address", vec![json!(fixture.blob), json!(fixture.recipe)]),
        ("user_id", vec![json!(7), json!("reader")]),
        ("candidates", vec![json!([101, 102]), json!({ "id": [101] })]),
        ("param_overrides", vec![json!({ "budget": 9.5 }), Value::Null]),
        ("plan", vec![json!("rank"), Value::Null]),
        ("config", vec![json!(TOPICS)]),
        ("models", vec![Value::Null]),
        ("rows", vec![json!(1), json!(2)]),
        ("demo", vec![json!(true)]),
        ("Submission", vec![demo(1)]),
    ];
    let seed = seed();
    let mut rng = Rng::new(seed);
    let mut never = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let schemas = Schemas { all: &document["components"]["schemas"], known: &known };
            let targets = fixture.targets(method, path).await;
            let requests = Requests { method, path, operation, targets, schemas };
            let mut good = 0;
            for turn in 0..REQUESTS {
                let mut sent =
                    if turn % 2 == 0 { requests.valid(&mut rng) } else { requests.changed(&mut rng) };
                if method == "get" && rng.percent(20) {
                    sent.line = sent.line.replacen("GET", "HEAD", 1);
                }
                let answer = exchange(&fixture.shop, &sent).await;
                if let Err(problem) = judge(&document, &requests, &sent, &answer) {
                    let (told, body) =
                        (String::from_utf8_lossy(&answer.body), String::from_utf8_lossy(&sent.body));
                    let (line, headers) = (&sent.line, &sent.headers);
                    panic!("seed {seed}: {line}\n{headers:?}\n{body}\n{}: {problem}\n{told}", answer.status);
                }
                good += usize::from((200..300).contains(&answer.status));
            }
            if good == 0 {
                never.push(format!("{method} {path}"));
            }
        }
        let line = format!("OPTIONS {}", path.replace(['{', '}'], ""));
        let (status, body) = send(&fixture.shop.http.server, &line, &["Origin: http://localhost"], b"").await;
        assert!(status == 405 && body.contains("\"error\""), "{line}: {status} {body}");
    }
    assert_eq!(never, [""; 0], "seed {seed}: these never succeed");
}
