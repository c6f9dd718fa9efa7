//! The document of HTTP is true: answers have the shapes that it says.

use serde_json::{Value, json};

use crate::datasets::{accepted, demo, ended, submit};
use crate::guard::send;
use crate::plans::Shop;
use crate::support::{Server, TempFolder};

/// Whether a value has the shape of a schema: the part of JSON Schema that the document uses.
pub(crate) fn check(schema: &Value, value: &Value, all: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return check(&all[name], value, all).map_err(|problem| format!("{name}: {problem}"));
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| check(choice, value, all).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { Err(format!("{fitting} choices fit {value}")) };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    // An integer is a number.
    let is_kind = |wanted: &Value| wanted == kind || (wanted == "number" && kind == "integer");
    let fits = match &schema["type"] {
        Value::Array(wanted) => wanted.iter().any(is_kind),
        Value::Null => true,
        wanted => is_kind(wanted),
    };
    if !fits {
        return Err(format!("{value} is not {}", schema["type"]));
    }
    let number = match value {
        Value::String(text) => Some((text.chars().count() as f64, ["minLength", "maxLength"])),
        value => value.as_f64().map(|number| (number, ["minimum", "maximum"])),
    };
    if let Some((number, bounds)) = number {
        let [least, most] = bounds.map(|bound| schema[bound].as_f64());
        if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
            return Err(format!("{value} is not in the bounds"));
        }
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Err(format!("{value} is none of {}", schema["enum"]));
    }
    for item in value.as_array().into_iter().flatten() {
        check(&schema["items"], item, all)?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            return Err(format!("{name} is missing"));
        }
    }
    for (name, field) in fields {
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(false)) => return Err(format!("{name} is not in the schema")),
            (Value::Null, other) => check(other, field, all)?,
            (schema, _) => check(schema, field, all).map_err(|problem| format!("{name}: {problem}"))?,
        }
    }
    Ok(())
}

/// The status and the JSON of an answer.
async fn ask(server: &Server, line: &str, body: &str) -> (u16, Value) {
    let (status, body) = send(server, line, &["Content-Type: application/json"], body.as_bytes()).await;
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

/// Checks an answer of a route.
pub(crate) fn verify(document: &Value, method: &str, path: &str, status: u16, value: &Value) {
    let answer = if status < 300 { "2XX" } else { "default" };
    let content = &document["paths"][path][method]["responses"][answer]["content"];
    let schema = &content["application/json"]["schema"];
    assert!(!schema.is_null(), "{method} {path}");
    check(schema, value, &document["components"]["schemas"])
        .unwrap_or_else(|problem| panic!("{method} {path} {status}: {problem}"));
}

#[tokio::test]
async fn answers_about_plans_and_runs_have_the_shapes_of_the_document() {
    let shop = Shop::start().await;
    let server = &shop.http.server;
    let (_, document) = ask(server, "GET /openapi.json", "").await;
    let request = r#"{"user_id": 7, "candidates": [1, 2]}"#;
    check(&document["components"]["schemas"]["PlanRequest"], &json!({"user_id": 7}), &Value::Null).unwrap();
    let (status, answer) = ask(server, "POST /v1/plans/rank/run?trace=true", request).await;
    verify(&document, "post", "/v1/plans/{name}/run", status, &answer);
    let (status, runs) = ask(server, "GET /v1/runs?kind=plan&limit=1", "").await;
    verify(&document, "get", "/v1/runs", status, &runs);
    let run = runs["runs"][0]["id"].as_str().expect("the traced run is kept").to_owned();
    for (line, path) in [
        ("GET /v1/plans".to_owned(), "/v1/plans"),
        ("GET /v1/plans/rank".to_owned(), "/v1/plans/{name}"),
        ("POST /v1/plans/rank/reload".to_owned(), "/v1/plans/{name}/reload"),
        ("POST /v1/plans/nobody/run".to_owned(), "/v1/plans/{name}/run"),
        (format!("GET /v1/runs/{run}"), "/v1/runs/{id}"),
        ("GET /v1/functions".to_owned(), "/v1/functions"),
    ] {
        let (status, answer) = ask(server, &line, "").await;
        verify(&document, &line.split(' ').next().unwrap().to_lowercase(), path, status, &answer);
    }
}

/// The headers that the server reads and sends are in the document.
#[tokio::test]
async fn the_document_has_the_headers() {
    let server = Server::start().await;
    let (_, document) = ask(&server, "GET /openapi.json", "").await;
    let read = |method: &str, path: &str| -> Vec<String> {
        let all = document["paths"][path][method]["parameters"].as_array().unwrap().iter();
        let headers = all.filter(|param| param["in"] == "header");
        headers.map(|param| param["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(read("get", "/healthz"), ["X-Request-Id", "traceparent"]);
    for (method, path, header) in [
        ("get", "/v1/blobs/{address}", "Range"),
        ("get", "/v1/recipes/{target}/value", "If-None-Match"),
        ("put", "/v1/refs/{name}", "If-Match"),
        ("delete", "/v1/refs/{name}", "If-Match"),
        ("post", "/v1/plans/{name}/run", "Request-Timeout"),
        ("post", "/v1/datasets", "Idempotency-Key"),
        ("get", "/v1/runs/{id}/events", "Last-Event-ID"),
        ("get", "/v1/events", "Last-Event-ID"),
    ] {
        assert!(read(method, path).iter().any(|name| name == header), "{method} {path}: {header}");
    }
    let sent = |method: &str, path: &str, answer: &str, header: &str| {
        !document["paths"][path][method]["responses"][answer]["headers"][header].is_null()
    };
    assert!(sent("get", "/v1/blobs/{address}", "2XX", "ETag"));
    assert!(sent("post", "/v1/datasets", "2XX", "Location"));
    assert!(sent("delete", "/v1/refs/{name}", "2XX", "X-Request-Id"));
    assert!(sent("get", "/v1/runs", "default", "Retry-After"));
}

/// A header whose values the document restricts is refused with another value. Other headers are then ignored.
#[tokio::test(flavor = "multi_thread")]
async fn headers_are_refused_as_the_document_says() {
    let data = TempFolder::new();
    let http = crate::datasets::start(data.path(), |_| {}).await;
    let server = &http.server;
    let (_, document) = ask(server, "GET /openapi.json", "").await;
    let blob = http.blob("hello").await;
    let run = ended(&http, &accepted(&submit(&http, &demo(1)).await)).await["run"].clone();
    let run = run.as_str().unwrap();
    let (name, job) = (json!({ "address": blob }).to_string(), demo(1).to_string());
    let mut tried = 0;
    for (line, path, body) in [
        ("GET /healthz", "/healthz", ""),
        (&format!("GET /v1/blobs/{blob}"), "/v1/blobs/{address}", ""),
        (&format!("GET /v1/recipes/{blob}/value"), "/v1/recipes/{target}/value", ""),
        (&format!("GET /v1/runs/{run}/events"), "/v1/runs/{id}/events", ""),
        ("PUT /v1/refs/a", "/v1/refs/{name}", &name),
        ("DELETE /v1/refs/a", "/v1/refs/{name}", ""),
        ("POST /v1/datasets", "/v1/datasets", &job),
    ] {
        let method = line.split(' ').next().unwrap().to_lowercase();
        let all = document["paths"][path][&method]["parameters"].as_array().unwrap().iter();
        for param in all.filter(|param| param["in"] == "header") {
            let is_restricted = !param["schema"]["pattern"].is_null() || param["schema"]["type"] == "integer";
            let header = format!("{}: ? \u{e9}", param["name"].as_str().unwrap());
            let headers = ["Content-Type: application/json", &header];
            let (status, answer) = send(server, line, &headers, body.as_bytes()).await;
            assert_eq!(status == 400, is_restricted, "{line} {header}: {status} {answer}");
            tried += 1;
        }
    }
    assert_eq!(tried, 26);
}

/// The schema of a body accepts what the route accepts.
#[tokio::test]
async fn bodies_are_accepted_as_the_document_says() {
    let shop = Shop::start().await;
    let server = &shop.http.server;
    let (_, document) = ask(server, "GET /openapi.json", "").await;
    let recipe = |value: Value| json!({"function": "identity/1.0.0", "params": {"x": value}});
    let list = |place: Value| {
        let reader = json!({ "function": "concat/1.0.0", "inputs": [place] });
        json!([{ "function": "concat/1.0.0", "inputs": [] }, reader])
    };
    for (line, schema, body) in [
        ("POST /v1/plans/rank/run", "PlanRequest", json!({"user_id": "a".repeat(256), "candidates": [1]})),
        ("POST /v1/plans/rank/run", "PlanRequest", json!({"user_id": "a".repeat(257), "candidates": [1]})),
        ("POST /v1/plans/rank/run", "PlanRequest", json!({"user_id": 7, "candidates": {"id": [1, 2]}})),
        ("POST /v1/plans/rank/run", "PlanRequest", json!({"user_id": 7, "candidates": {}})),
        ("POST /v1/plans/rank/run", "PlanRequest", json!({"user_id": 7, "candidates": {"id": null}})),
        ("POST /v1/recipes", "Recipe", recipe(Value::Null)),
        ("POST /v1/recipes", "Recipe", recipe(json!([1, [null]]))),
        ("POST /v1/recipes", "Recipes", list(json!(0.0))),
        ("POST /v1/recipes", "Recipes", list(json!(0.5))),
        ("POST /v1/recipes", "Recipes", list(json!(-1))),
    ] {
        let schemas = &document["components"]["schemas"];
        let fits = check(&schemas[schema], &body, schemas);
        let (status, answer) = ask(server, line, &body.to_string()).await;
        assert_eq!(status < 300, fits.is_ok(), "{body}: {status} {answer}, {fits:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_about_datasets_have_the_shapes_of_the_document() {
    let data = TempFolder::new();
    let http = crate::datasets::start(data.path(), |_| {}).await;
    let server = &http.server;
    let (_, document) = ask(server, "GET /openapi.json", "").await;
    let body = demo(3);
    check(&json!({ "$ref": "#/components/schemas/Submission" }), &body, &document["components"]["schemas"])
        .unwrap();
    let (status, submitted) = ask(server, "POST /v1/datasets", &body.to_string()).await;
    verify(&document, "post", "/v1/datasets", status, &submitted);
    let id = submitted["id"].as_str().unwrap();
    // It may be queued, being built, or built.
    let (status, shown) = ask(server, &format!("GET /v1/datasets/{id}"), "").await;
    verify(&document, "get", "/v1/datasets/{id}", status, &shown);
    ended(&http, id).await;
    for part in ["", "/{id}", "/{id}/rows", "/{id}/errors", "/{id}/files", "/{id}/cancel"] {
        let path = format!("/v1/datasets{part}");
        let method = if part.ends_with("cancel") { "POST" } else { "GET" };
        let (status, answer) = ask(server, &format!("{method} {}", path.replace("{id}", id)), "").await;
        assert_eq!(status, if method == "POST" { 409 } else { 200 }, "{path}: {answer}");
        verify(&document, &method.to_lowercase(), &path, status, &answer);
    }
    let (status, failed) = ask(server, "POST /v1/datasets", "{}").await;
    verify(&document, "post", "/v1/datasets", status, &failed);
}

#[tokio::test]
async fn a_method_that_a_route_does_not_have_is_refused_as_such() {
    let server = Server::start().await;
    let (_, document) = ask(&server, "GET /openapi.json", "").await;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let line = path.replace("{file}", "timeline.svg").replace(['{', '}'], "");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            if operations[method.to_lowercase()].is_null() {
                let (status, body) = send(&server, &format!("{method} {line}"), &[], b"").await;
                assert_eq!(status, 405, "{method} {path}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn answers_have_the_shapes_of_the_document() {
    let server = Server::start().await;
    let ask = async |line: &str, body: &str| ask(&server, line, body).await;
    let (_, document) = ask("GET /openapi.json", "").await;
    let schemas = &document["components"]["schemas"];
    let verify = |method: &str, path: &str, status, value: &Value| {
        verify(&document, method, path, status, value);
    };
    let (status, blob) = ask("POST /v1/blobs", "hello").await;
    verify("post", "/v1/blobs", status, &blob);
    let address = blob["address"].as_str().unwrap();
    let recipe = json!({ "function": "identity/1.0.0", "inputs": [address], "params": {} });
    for body in [&recipe, &json!([recipe])] {
        check(&json!({ "$ref": "#/components/schemas/Recipes" }), body, schemas).unwrap();
        let (status, added) = ask("POST /v1/recipes", &body.to_string()).await;
        verify("post", "/v1/recipes", status, &added);
    }
    let (_, added) = ask("POST /v1/recipes", &recipe.to_string()).await;
    let target = added["address"].as_str().unwrap();
    for _ in 0..2 {
        let (status, described) = ask(&format!("GET /v1/recipes/{target}"), "").await;
        verify("get", "/v1/recipes/{target}", status, &described);
        assert_eq!(send(&server, &format!("GET /v1/recipes/{target}/value"), &[], b"").await.1, "hello");
        let (status, graph) = ask(&format!("GET /v1/recipes/{target}/graph"), "").await;
        assert_eq!(status, 200, "{graph}");
        verify("get", "/v1/recipes/{target}/graph", status, &graph);
    }
    let name = json!({ "address": target });
    check(&json!({ "$ref": "#/components/schemas/NewName" }), &name, schemas).unwrap();
    for (line, path, body) in [
        ("PUT /v1/refs/a", "/v1/refs/{name}", name.to_string()),
        ("GET /v1/refs/a", "/v1/refs/{name}", String::new()),
        ("GET /v1/refs/b", "/v1/refs/{name}", String::new()),
        ("GET /v1/refs", "/v1/refs", String::new()),
        ("GET /v1/refs?limit=0", "/v1/refs", String::new()),
        ("GET /v1/status", "/v1/status", String::new()),
        ("GET /v1/config", "/v1/config", String::new()),
        ("GET /openapi.json", "/openapi.json", String::new()),
    ] {
        let (status, answer) = ask(line, &body).await;
        verify(&line.split(' ').next().unwrap().to_lowercase(), path, status, &answer);
    }
    assert_eq!(send(&server, "DELETE /v1/refs/a", &[], b"").await, (204, String::new()));
}
