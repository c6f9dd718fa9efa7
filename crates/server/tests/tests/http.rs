//! HTTP, spoken by hand.

use anabranch_recipe::{Address, Functions};
use anabranch_server::Settings;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::deriva_wire::Deriva;
use crate::support::{Gate, OpenOnDrop, Server, noise, soon, until};

pub(crate) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    pub(crate) server: Server,
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: hyper::HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The word of the error, and its sentence.
    pub(crate) fn error(&self) -> (String, String) {
        let error = &self.json()["error"];
        (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    }
}

/// The type of a body that a route reads as JSON.
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

impl Http {
    pub(crate) async fn start() -> Http {
        Http::on(Server::start().await)
    }

    pub(crate) fn on(server: Server) -> Http {
        Http { client: Client::builder(TokioExecutor::new()).build_http(), server }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.server.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let answer: Response<Incoming> = soon(self.client.request(request)).await.unwrap();
        let (head, body) = answer.into_parts();
        let body = soon(body.collect()).await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// An answer whose body is read piece by piece.
    pub(crate) async fn open(&self, path: &str, headers: &[(&str, &str)]) -> Response<Incoming> {
        let mut request = Request::builder().uri(format!("{}{path}", self.server.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        soon(self.client.request(request.body(Full::default()).unwrap())).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, path, headers, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, path, &[JSON], body).await
    }

    pub(crate) async fn blob(&self, bytes: impl Into<Bytes>) -> String {
        self.post("/v1/blobs", bytes).await.json()["address"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn blobs() {
    let http = Http::start().await;
    let bytes = noise(2_000_000, 1);
    let address = Address::of(&bytes).to_string();
    let first = http.send(Method::PUT, "/v1/blobs", &[], bytes.clone()).await;
    assert_eq!((first.status, first.header("location")), (201, &*format!("/v1/blobs/{address}")));
    assert_eq!(first.json(), json!({ "address": address, "size": 2_000_000, "new": true }));
    let again = http.post("/v1/blobs", bytes.clone()).await;
    assert_eq!((again.status, &again.json()["new"]), (200, &json!(false)));
    let path = format!("/v1/blobs/{address}");
    let got = http.get(&path, &[]).await;
    assert_eq!((got.status, got.header("content-length")), (200, "2000000"));
    assert_eq!(got.header("etag"), format!("\"{address}\""));
    assert!(got.header("cache-control").contains("immutable") && got.body == bytes);
    let head = http.send(Method::HEAD, &path, &[], "").await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, "2000000", 0));
    let empty = http.blob("").await;
    let got = http.get(&format!("/v1/blobs/{empty}"), &[]).await;
    assert_eq!((got.status, got.header("content-length"), got.body.len()), (200, "0", 0));
}

#[tokio::test]
async fn parts_and_tags() {
    let http = Http::start().await;
    let bytes = noise(1_000_000, 2);
    let path = format!("/v1/blobs/{}", http.blob(bytes.clone()).await);
    for (range, status, content_range, expected) in [
        ("bytes=0-9", 206, "bytes 0-9/1000000", 0..10),
        ("bytes=999990-", 206, "bytes 999990-999999/1000000", 999_990..1_000_000),
        ("bytes=-500000", 206, "bytes 500000-999999/1000000", 500_000..1_000_000),
        ("bytes=0-9,20-29", 200, "", 0..1_000_000),
    ] {
        let part = http.get(&path, &[("range", range)]).await;
        assert_eq!((part.status, part.header("content-range")), (status, content_range), "{range}");
        assert!(part.body == bytes[expected], "{range}");
        assert_eq!(part.header("content-length"), part.body.len().to_string());
    }
    let beyond = http.get(&path, &[("range", "bytes=1000000-")]).await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, "bytes */1000000"));
    let tag = http.get(&path, &[]).await.header("etag").to_owned();
    let same = http.get(&path, &[("if-none-match", &tag)]).await;
    assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, &*tag));
    assert_eq!(http.get(&path, &[("if-none-match", "\"other\"")]).await.status, 200);
    let stale = http.get(&path, &[("range", "bytes=0-9"), ("if-range", "\"other\"")]).await;
    assert_eq!((stale.status, stale.body.len()), (200, 1_000_000));
    let head = http.send(Method::HEAD, &path, &[("range", "bytes=0-9")], "").await;
    assert_eq!((head.status, head.header("content-length")), (206, "10"));
}

#[tokio::test]
async fn recipes() {
    let http = Http::start().await;
    let leaf = http.blob("some text").await;
    let body = json!([
        { "function": "uppercase/1.0.0", "inputs": [leaf] },
        { "function": "concat/1.0.0", "inputs": [0, leaf], "params": {} },
    ]);
    let added = http.post("/v1/recipes", body.to_string()).await;
    assert_eq!((added.status, added.json()[1]["new"].clone()), (201, json!(true)));
    let top = added.json()[1]["address"].as_str().unwrap().to_owned();
    assert_eq!(http.post("/v1/recipes", body.to_string()).await.status, 200);
    let before = http.get(&format!("/v1/recipes/{top}"), &[]).await.json();
    assert_eq!((&before["recipe"]["function"], &before["memo"]), (&json!("concat/1.0.0"), &Value::Null));
    assert_eq!(before["recipe"]["inputs"][1], json!(leaf));
    let path = format!("/v1/recipes/{top}/value");
    let value = http.get(&path, &[]).await;
    assert_eq!((value.status, &*value.body), (200, &b"SOME TEXTsome text"[..]));
    assert_eq!(value.header("etag"), format!("\"{}\"", Address::of(b"SOME TEXTsome text")));
    let part = http.get(&path, &[("range", "bytes=5-8")]).await;
    assert_eq!((part.status, &*part.body), (206, &b"TEXT"[..]));
    assert_eq!(http.get(&path, &[("if-none-match", value.header("etag"))]).await.status, 304);
    assert_eq!(http.send(Method::HEAD, &path, &[], "").await.header("content-length"), "18");
    let after = http.get(&format!("/v1/recipes/{top}"), &[]).await.json();
    assert_eq!(after["memo"]["size"], json!(18));
    let one = json!({ "function": "x/1", "params": { "a": { "$bytes": "AAE=" }, "b": [1, 2.5, true] } });
    assert_eq!(http.post("/v1/recipes", one.to_string()).await.status, 409);
    let kept = http.post("/v1/recipes?unknown_function=accept", one.to_string()).await;
    assert_eq!((kept.status, &kept.json()["dangling"]), (201, &json!([])));
    let address = kept.json()["address"].as_str().unwrap().to_owned();
    let described = http.get(&format!("/v1/recipes/{address}"), &[]).await.json();
    assert_eq!(described["recipe"]["params"], one["params"]);
    assert_eq!(http.get(&format!("/v1/recipes/{address}/value"), &[]).await.error().0, "failed_precondition");
}

#[tokio::test]
async fn names() {
    let http = Http::start().await;
    let (one, two) = (http.blob("1").await, http.blob("2").await);
    for address in [&one, &two] {
        let body = json!({ "address": address }).to_string();
        let set = http.send(Method::PUT, "/v1/refs/a%2Fname", &[JSON], body).await;
        assert_eq!((set.status, &set.json()["address"]), (200, &json!(address)));
    }
    let shown = http.get("/v1/refs/a%2Fname", &[]).await.json();
    assert_eq!((&shown["name"], shown["history"].as_array().unwrap().len()), (&json!("a/name"), 2));
    let listed = http.get("/v1/refs", &[]).await.json();
    assert_eq!(listed, json!({ "refs": [{ "name": "a/name", "address": two }], "next": null }));
    assert_eq!(http.get("/v1/recipes/a%2Fname/value", &[]).await.body, "2");
    assert_eq!(http.send(Method::DELETE, "/v1/refs/a%2Fname", &[], "").await.status, 204);
    assert_eq!(http.send(Method::DELETE, "/v1/refs/a%2Fname", &[], "").await.status, 404);
    assert_eq!(http.get("/v1/refs/a%2Fname", &[]).await.json()["address"], Value::Null);
    let body = format!(r#"{{"address":"{two}"}}"#);
    for (headers, status) in [
        (("if-match", format!("\"{one}\"")), 412),
        (("if-none-match", "*".to_owned()), 200),
        (("if-none-match", "*".to_owned()), 412),
        (("if-match", format!("\"{two}\"")), 200),
        (("if-match", "nonsense".to_owned()), 400),
    ] {
        let set =
            http.send(Method::PUT, "/v1/refs/guarded", &[JSON, (headers.0, &headers.1)], body.clone()).await;
        assert_eq!(set.status, status, "{headers:?}");
    }
    for (address, status) in [(&one, 412), (&two, 204), (&two, 404)] {
        let expected = format!("\"{address}\"");
        let dropped = http.send(Method::DELETE, "/v1/refs/guarded", &[("if-match", &expected)], "").await;
        assert_eq!(dropped.status, status, "{expected}");
    }
    let wrong = http.send(Method::PUT, "/v1/refs/x", &[JSON], r#"{"address":"12"}"#).await;
    assert_eq!(
        (wrong.status, wrong.error().1),
        (400, "`address`: an address has 64 hex digits, this has 2".to_owned())
    );
}

#[tokio::test]
async fn what_is_wrong_says_so() {
    let http = Http::start().await;
    let unknown = "0".repeat(64);
    let deep = "[".repeat(1000);
    for (method, path, body, status, word) in [
        ("GET", "/v1/blobs/xyz", "", 400, "invalid_argument"),
        ("GET", &*format!("/v1/blobs/{unknown}"), "", 404, "not_found"),
        ("GET", &*format!("/v1/recipes/{unknown}"), "", 404, "not_found"),
        ("GET", &*format!("/v1/recipes/{unknown}/value"), "", 404, "not_found"),
        ("GET", &*format!("/v1/recipes/{unknown}/value?timeout=soon"), "", 400, "invalid_argument"),
        ("GET", &*format!("/v1/recipes/{unknown}/value?tiemout=1s"), "", 400, "invalid_argument"),
        ("GET", "/v1/recipes/nobody/value", "", 404, "not_found"),
        ("GET", "/v1/refs/nobody", "", 404, "not_found"),
        ("GET", "/v1/nowhere", "", 404, "not_found"),
        ("GET", "/v1/refs/%ff", "", 400, "invalid_argument"),
        ("DELETE", "/v1/refs/%ff", "", 400, "invalid_argument"),
        ("GET", "/v1/recipes/%ff", "", 400, "invalid_argument"),
        ("GET", "/v1/recipes/%ff/value", "", 400, "invalid_argument"),
        ("GET", "/v1/blobs/%ff", "", 400, "invalid_argument"),
        ("GET", "/v1/refs?limit=0", "", 400, "invalid_argument"),
        ("GET", "/v1/refs?page=2", "", 400, "invalid_argument"),
        ("DELETE", "/v1/status", "", 405, "method_not_allowed"),
        ("POST", "/v1/recipes", "{", 400, "invalid_argument"),
        ("POST", "/v1/recipes", &deep, 400, "invalid_argument"),
        ("POST", "/v1/recipes", r#"{"function":"concat"}"#, 400, "invalid_argument"),
        ("POST", "/v1/recipes", r#"{"function":"concat/1.0.0","inputs":[0]}"#, 400, "invalid_argument"),
        ("POST", "/v1/recipes", r#"{"function":"concat/1.0.0","input":[]}"#, 400, "invalid_argument"),
        (
            "POST",
            "/v1/recipes",
            r#"{"function":"concat/1.0.0","params":{"a":null}}"#,
            400,
            "invalid_argument",
        ),
        ("POST", "/v1/recipes?unknown_function=maybe", "{}", 400, "invalid_argument"),
    ] {
        let answer = http.send(method.parse().unwrap(), path, &[JSON], body.to_owned()).await;
        assert_eq!((answer.status, &*answer.error().0), (status, word), "{method} {path} {body:.80}");
    }
}

/// A message repeats what is wrong with a request, but not megabytes of it. Over gRPC it is a header.
#[tokio::test]
async fn messages_have_a_bound() {
    let http = Http::start().await;
    let long = "x".repeat(1 << 20);
    for (body, end) in [
        (format!(r#"{{"{long}":1}}"#), "`params` at line 1 column 1048579"),
        (format!(r#"{{"function":"{long}"}}"#), "write `name/version` at line 1 column 1048591"),
        (format!(r#"{{"function":"concat/1.0.0","params":{{"{long}":1}}}}"#), "unknown; it takes none"),
    ] {
        let refused = http.post("/v1/recipes", body).await;
        let message = refused.error().1;
        assert!(refused.status == 400 && refused.body.len() < 70_000, "{} bytes", refused.body.len());
        assert!(
            message.contains("xxx ... (") && message.ends_with(end),
            "{}",
            &message[message.len() - 200..]
        );
    }
    let client = http.server.client().await;
    let refused = client.get(anabranch_server::Target::Name(long), 0..u64::MAX, None).await.unwrap_err();
    assert_eq!(refused.code(), Some(anabranch_server::Code::NotFound), "{refused:.200}");
    assert!(refused.to_string().contains("left out) ... xxx"), "{refused:.200}");
}

#[tokio::test]
async fn bodies_have_a_bound() {
    let settings = Settings { body_most: 100, blob_most: 1000, ..Settings::default() };
    let http = Http::on(Server::with(Functions::builtin(), settings).await);
    let large = http.post("/v1/blobs", vec![0; 1001]).await;
    assert_eq!((large.status, &*large.error().0), (413, "too_large"));
    let large = http.post("/v1/recipes", vec![b' '; 101]).await;
    assert_eq!((large.status, &*large.error().0), (413, "too_large"));
    assert_eq!(http.server.executor.status().store.blobs, 0);
}

#[tokio::test]
async fn status_and_health() {
    let http = Http::start().await;
    http.blob("x").await;
    let status = http.get("/v1/status", &[]).await.json();
    assert_eq!((&status["blobs"], &status["blob_bytes"]), (&json!(1), &json!(1)));
    assert_eq!(http.get("/healthz", &[]).await.body, "ok\n");
    assert_eq!(http.get("/readyz", &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_with_a_time_limit() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let http = Http::on(Server::with(gate.functions(), Settings::default()).await);
    let leaf = http.blob(vec![1; 4096]).await;
    let body = json!({ "function": "gate/1.0.0", "inputs": [leaf] }).to_string();
    let slow = http.post("/v1/recipes", body).await.json()["address"].as_str().unwrap().to_owned();
    let late = http.get(&format!("/v1/recipes/{slow}/value?timeout=50ms"), &[]).await;
    assert_eq!((late.status, &*late.error().0), (504, "deadline_exceeded"));
    until(|| http.server.executor.status().computing == 0).await;
    gate.open();
    assert_eq!(http.get(&format!("/v1/recipes/{slow}/value?timeout=1m"), &[]).await.body.len(), 4096);
}

/// A recipe that was put over Deriva's service answers to Deriva's address.
#[tokio::test]
async fn recipes_of_deriva() {
    let http = Http::start().await;
    let deriva = Deriva(http.server.channel().await);
    let leaf = deriva.leaf("leaf").await;
    let below = deriva.recipe("uppercase", &[&leaf]).await;
    let address = |bytes: Vec<u8>| Address::from_bytes(bytes.try_into().unwrap());
    let top = address(deriva.recipe("concat", &[&below, &below]).await);
    let value = http.get(&format!("/v1/recipes/{top}/value"), &[]).await;
    assert_eq!((value.status, &*value.body), (200, &b"LEAFLEAF"[..]));
    let described = http.get(&format!("/v1/recipes/{top}"), &[]).await;
    assert_eq!(described.status, 200);
    let described = described.json();
    assert_eq!(described["recipe"]["function"], "concat/1.0.0");
    assert_eq!(described["memo"]["size"], 8);
    let added =
        json!({ "function": "concat/1.0.0", "inputs": [top.to_string(), address(below).to_string()] });
    let added = http.post("/v1/recipes", added.to_string()).await.json();
    let value = http.get(&format!("/v1/recipes/{}/value", added["address"].as_str().unwrap()), &[]).await;
    assert_eq!((value.status, &*value.body), (200, &b"LEAFLEAFLEAF"[..]));
}

#[tokio::test]
async fn names_come_in_pages() {
    let http = Http::start().await;
    let address = http.blob("1").await;
    let client = http.server.client().await;
    let names: Vec<String> = (0..5).map(|number| format!("name {number}")).collect();
    for name in &names {
        client.set_ref(name, Some(address.parse().unwrap())).await.unwrap();
    }
    let listed = async |query: &str| {
        let page = http.get(&format!("/v1/refs{query}"), &[]).await.json();
        let names: Vec<Value> =
            page["refs"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
        (Value::from(names), page["next"].clone())
    };
    assert_eq!(listed("").await, (json!(names), Value::Null));
    assert_eq!(listed("?limit=2").await, (json!(names[..2]), json!("name 1")));
    assert_eq!(listed("?limit=2&after=name%201").await, (json!(names[2..4]), json!("name 3")));
    assert_eq!(listed("?limit=2&after=name%203").await, (json!(names[4..]), Value::Null));
    assert_eq!(listed("?limit=5").await, (json!(names), Value::Null));
    let (page, next) = client.refs_page("name 0", 3).await.unwrap();
    assert_eq!((page.len(), &*page[0].0, next.as_deref()), (3, "name 1", Some("name 3")));
    assert_eq!(client.refs().await.unwrap().len(), 5);
}

/// As the command line does, and not only when the value is wanted.
#[tokio::test]
async fn recipes_are_checked_when_they_are_added() {
    let http = Http::start().await;
    let leaf = http.blob("text").await;
    for (function, params, message) in [
        ("grep/1.0.0", json!({ "patern": "x" }), "`grep/1.0.0`: parameter `patern`: unknown; it takes"),
        ("grep/1.0.0", json!({}), "`grep/1.0.0`: parameter `pattern`: missing"),
        (
            "uppercase/1.0.0",
            json!({ "note": "x" }),
            "`uppercase/1.0.0`: parameter `note`: unknown; it takes none",
        ),
    ] {
        let body = json!({ "function": function, "inputs": [leaf], "params": params }).to_string();
        let refused = http.post("/v1/recipes", body.clone()).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.error().1.starts_with(message), "{}", refused.error().1);
        let params = params.as_object().unwrap().iter().map(|(name, value)| {
            (name.clone(), anabranch_recipe::Value::Text(value.as_str().unwrap().to_owned()))
        });
        let draft = anabranch_recipe::Draft {
            function: function.parse().unwrap(),
            inputs: vec![anabranch_recipe::DraftInput::Address(leaf.parse().unwrap())],
            params: params.collect(),
        };
        let client = http.server.client().await;
        let refused = client.add_all(&[draft], anabranch_recipe::UnknownFunction::Accept).await.unwrap_err();
        assert!(refused.to_string().starts_with(message), "{refused}");
    }
    let body = json!({ "function": "uppercase/1.0.0", "inputs": [] }).to_string();
    assert_eq!(http.post("/v1/recipes", body).await.status, 400, "too few inputs");
    assert_eq!(http.server.executor.status().store.derivations, 0);
}
