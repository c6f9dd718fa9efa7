//! Random requests to every route of the OpenAPI document: each is answered, and never with a fault of the server.

use anabranch_testkit::Rng;
use serde_json::{Value, json};

use crate::guard::send;
use crate::plans::Shop;

/// Requests per operation.
const REQUESTS: usize = 24;

/// A text for a path or a query, as a client may write it.
fn text(rng: &mut Rng) -> String {
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

/// A text for a parameter: any, or one that its schema allows.
fn parameter(rng: &mut Rng, schema: &Value) -> String {
    if rng.percent(40) {
        return text(rng);
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

#[tokio::test]
async fn every_route_answers_any_request() {
    let shop = Shop::start().await;
    let server = &shop.http.server;
    let (_, document) = send(server, "GET /openapi.json", &[], b"").await;
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut rng = Rng::new(7);
    let mut sent = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        // It has no end.
        for (method, operation) in operations.as_object().unwrap().iter().filter(|_| path != "/v1/events") {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
            let schema = &document["components"]["schemas"][name];
            for _ in 0..REQUESTS {
                let mut line = path.clone();
                let mut words = Vec::new();
                for param in operation["parameters"].as_array().unwrap() {
                    let (name, value) =
                        (param["name"].as_str().unwrap(), parameter(&mut rng, &param["schema"]));
                    match param["in"].as_str().unwrap() {
                        "path" => line = line.replace(&format!("{{{name}}}"), &value),
                        _ if rng.percent(40) => words.push(format!("{name}={value}")),
                        _ => {}
                    }
                }
                let line = format!("{} {line}?{}", method.to_uppercase(), words.join("&"));
                let kind = if rng.percent(90) { "application/json" } else { "text/plain" };
                let body = body(&mut rng, schema);
                let (status, answer) = send(server, &line, &[&format!("Content-Type: {kind}")], &body).await;
                let told = || format!("{line}\n{}\n{status}: {answer}", String::from_utf8_lossy(&body));
                // 501: this server builds no datasets.
                assert!(status < 500 || status == 501, "{}", told());
                if status >= 400 && method != "head" {
                    let error: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{}", told()));
                    assert!(error["error"]["message"].is_string(), "{}", told());
                }
                sent += 1;
            }
        }
    }
    assert!(sent > 500, "{sent} requests");
}
