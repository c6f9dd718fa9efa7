//! Random requests to every route of the OpenAPI document: each is answered, never with a fault of the server, and with the
//! shape that the document says.

use anabranch_testkit::Rng;
use serde_json::{Value, json};

use anabranch_recipe::Executor;

use crate::datasets::{accepted, demo, ended, submit, with_datasets};
use crate::guard::send;
use crate::openapi::verify;
use crate::plans::{PROJECT, Shop};
use crate::support::{TempFolder, functions};

/// Requests per operation.
const REQUESTS: usize = 24;

/// A text for a path or a query, as a client may write it.
pub(crate) fn text(rng: &mut Rng) -> String {
    const TEXTS: [&str; 14] = [
        "cheapest",
        "a",
        "0",
        "-1",
        "18446744073709551616",
        "%00",
        "%ff",
        "..%2f..%2fetc",
        "%F0%9F%8C%8A",
        "true",
        "10ms",
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "af1349",
        "018f3c2a9d4b-0007",
    ];
    match rng.percent(10) {
        true => "x".repeat(rng.within(1..2_000) as usize),
        false => (*rng.choose(&TEXTS)).to_owned(),
    }
}

/// A text for a parameter: any, one of those that exist, or one that its schema allows.
fn parameter(rng: &mut Rng, schema: &Value, known: &[String]) -> String {
    if rng.percent(30) {
        return text(rng);
    }
    if rng.percent(40) && schema["type"] == "string" && !known.is_empty() {
        return rng.choose(known).clone();
    }
    if let Some(words) = schema["enum"].as_array() {
        return rng.choose(words).as_str().unwrap().to_owned();
    }
    match (schema["type"].as_str().unwrap(), schema["pattern"].as_str()) {
        ("boolean", _) => rng.percent(50).to_string(),
        ("integer", _) => {
            let least = schema["minimum"].as_u64().unwrap();
            let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
            let near = rng.within(least..least + 20).min(most);
            rng.choose(&[least, most, near]).to_string()
        }
        (_, Some(pattern)) if pattern.contains("us|ms") => format!("{}ms", rng.within(0..9_999)),
        (_, Some(pattern)) if pattern.contains("{12}-") => {
            format!("{:012x}-{:04x}", rng.bits() >> 16, rng.bits() as u16)
        }
        (_, Some(pattern)) if pattern.contains("{64}") => format!("{:016x}", rng.bits()).repeat(4),
        _ => text(rng),
    }
}

/// A JSON value of some depth.
fn value(rng: &mut Rng, depth: u32) -> Value {
    match rng.within(0..if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.percent(50)),
        2 => json!(rng.bits()),
        3 => json!(-1.5e300),
        4 => json!(text(rng)),
        5 => json!(""),
        6 => (0..rng.within(0..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => (0..rng.within(0..4))
            .map(|_| (text(rng), value(rng, depth - 1)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// A body: fields that the schema names with any values, or nothing like it.
fn body(rng: &mut Rng, schema: &Value) -> Vec<u8> {
    if rng.percent(10) {
        return (0..rng.within(0..300)).map(|_| rng.bits() as u8).collect();
    }
    if rng.percent(20) {
        return value(rng, 4).to_string().into_bytes();
    }
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut filled = serde_json::Map::new();
    for name in fields.keys() {
        if rng.percent(70) {
            filled.insert(name.clone(), value(rng, 3));
        }
    }
    Value::Object(filled).to_string().into_bytes()
}

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

/// Some of the headers.
fn headers(rng: &mut Rng) -> Vec<String> {
    let mut written = Vec::new();
    for (name, values) in HEADERS {
        if rng.percent(20) {
            written.push(format!("{name}: {}", rng.choose(values)));
        }
    }
    written
}

/// The seed of the random inputs, which `PROPTEST_RNG_SEED` chooses.
pub(crate) fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").map_or(7, |seed| seed.parse().unwrap())
}

/// A server with plans, recipes and datasets, and the names and ids in it.
pub(crate) async fn fixture(data: &TempFolder) -> (Shop, Vec<String>) {
    let executor = Executor::in_memory(functions()).unwrap();
    let folder = Shop::files(PROJECT);
    let settings = Shop::settings(&folder);
    let with_jobs = |service| {
        with_datasets(service, &executor, data.path(), |settings| {
            settings.rows_most = 10;
            settings.kept_most = 100;
        })
    };
    let shop = Shop::serving(folder, settings, executor.clone(), with_jobs).await;
    let job = accepted(&submit(&shop.http, &demo(3)).await);
    let run = ended(&shop.http, &job).await["run"].as_str().unwrap().to_owned();
    let blob = shop.http.blob("hello").await;
    let recipe = json!({ "function": "identity/1.0.0", "inputs": [blob], "params": {} }).to_string();
    let recipe = shop.http.post("/v1/recipes", recipe).await.json()["address"].as_str().unwrap().to_owned();
    (shop, vec![job, run, blob, recipe, "rank".to_owned(), "timeline.json".to_owned()])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_any_request() {
    let data = TempFolder::new();
    let (shop, known) = fixture(&data).await;
    let server = &shop.http.server;
    let (_, document) = send(server, "GET /openapi.json", &[], b"").await;
    let document: Value = serde_json::from_str(&document).unwrap();
    let seed = seed();
    let mut rng = Rng::new(seed);
    let (mut sent, mut checked) = (0, 0);
    for (path, operations) in document["paths"].as_object().unwrap() {
        // It has no end.
        for (method, operation) in operations.as_object().unwrap().iter().filter(|_| path != "/v1/events") {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
            let schema = &document["components"]["schemas"][name];
            for _ in 0..REQUESTS {
                // The dataset is needed until the end.
                let known = if method == "delete" { &[] } else { &*known };
                let (line, is_json) = line(&mut rng, (method, path), operation, known);
                let kind = if rng.percent(90) { "application/json" } else { "text/plain" };
                let body = body(&mut rng, schema);
                let mut headers = headers(&mut rng);
                headers.push(format!("Content-Type: {kind}"));
                let sent_headers: Vec<&str> = headers.iter().map(String::as_str).collect();
                let (status, answer) = send(server, &line, &sent_headers, &body).await;
                let told = || {
                    let body = String::from_utf8_lossy(&body);
                    format!("seed {seed}: {line}\n{headers:?}\n{body}\n{status}: {answer}")
                };
                // Some ask for less time than anything takes.
                assert!(
                    status < 500
                        || status == 504 && headers.iter().any(|it| it.starts_with("Request-Timeout")),
                    "{}",
                    told()
                );
                if status >= 400 && method != "head" {
                    let error: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{}", told()));
                    assert!(error["error"]["message"].is_string(), "{}", told());
                }
                if (200..300).contains(&status) && is_json {
                    let value: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{}", told()));
                    verify(&document, method, path, status, &value);
                    checked += 1;
                }
                sent += 1;
            }
        }
    }
    assert!(sent > 500 && checked > 100, "{sent} requests, {checked} answers of JSON");
}

/// The line of a request, and whether its answer can only be JSON.
fn line(rng: &mut Rng, (method, path): (&str, &str), operation: &Value, known: &[String]) -> (String, bool) {
    let mut line = path.to_owned();
    let mut words = Vec::new();
    for param in operation["parameters"].as_array().unwrap() {
        let (name, value) = (param["name"].as_str().unwrap(), parameter(rng, &param["schema"], known));
        match param["in"].as_str().unwrap() {
            "path" => line = line.replace(&format!("{{{name}}}"), &value),
            _ if rng.percent(40) => words.push(format!("{name}={value}")),
            _ => {}
        }
    }
    let content = operation["responses"]["2XX"]["content"].as_object();
    let is_json =
        content.is_some_and(|content| content.len() == 1 && content.contains_key("application/json"));
    (format!("{} {line}?{}", method.to_uppercase(), words.join("&")), is_json)
}
