//! Ids, headers, metrics.

use anabranch_recipe::{Executor, Functions};
use anabranch_server::Settings;
use hyper::{HeaderMap, Method};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use serde_json::json;

use crate::access::{GuardedServer, bearer, guarded};
use crate::datasets::{accepted, demo, ended, with_datasets};
use crate::guard::send;
use crate::http::JSON;
use crate::plans::{PROJECT, Shop};
use crate::support::{Server, TempFolder, soon};

async fn head(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap) {
    let client =
        HttpClient::builder(TokioExecutor::new()).build_http::<http_body_util::Empty<bytes::Bytes>>();
    let mut request = hyper::Request::get(format!("{}{path}", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = soon(client.request(request.body(http_body_util::Empty::new()).unwrap())).await.unwrap();
    (answer.status().as_u16(), answer.headers().clone())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).unwrap_or_else(|| panic!("no {name} in {headers:?}")).to_str().unwrap()
}

#[tokio::test]
async fn every_answer_has_an_id_and_the_headers_of_all() {
    let GuardedServer { server, tokens: [local, ..] } =
        guarded("headers", Settings::default(), Functions::builtin()).await;
    let token = format!("Bearer {}", local.as_str());
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (path, headers, status) in [
        ("/healthz", &[][..], 200),
        ("/v1/refs", &[("authorization", token.as_str())], 200),
        ("/v1/refs", &[], 401),
        ("/v1/refs", &[("host", "evil.example")], 421),
        ("/v1/nothing", &[("authorization", token.as_str())], 404),
    ] {
        let mut sent = headers.to_vec();
        sent.extend([("x-request-id", "mine-1"), ("traceparent", trace)]);
        let (found, headers) = head(&server, path, &sent).await;
        assert_eq!(found, status, "{path}");
        assert_eq!(text(&headers, "x-request-id"), "mine-1");
        assert_eq!(text(&headers, "traceparent"), trace);
        assert_eq!(text(&headers, "x-content-type-options"), "nosniff");
        assert_eq!(text(&headers, "referrer-policy"), "no-referrer");
        assert!(text(&headers, "content-security-policy").contains("frame-ancestors 'none'"));
        assert_eq!(headers.get("cache-control").is_some(), path != "/healthz", "{path}");
        if status == 401 {
            assert_eq!(text(&headers, "www-authenticate"), "Bearer realm=\"anabranch\"");
        }
    }
    let (_, one) = head(&server, "/healthz", &[("x-request-id", "a b")]).await;
    let (_, two) = head(&server, "/healthz", &[]).await;
    assert_ne!(text(&one, "x-request-id"), text(&two, "x-request-id"));
    assert_ne!(text(&one, "x-request-id"), "a b");
}

/// The id of a request: of the header, else of the body, else made by the server.
#[tokio::test]
async fn a_request_has_one_id() {
    let shop = Shop::start().await;
    let path = "/v1/plans/rank/run?trace=true";
    let send = async |header: Option<&str>, body: Option<&str>| {
        let headers: Vec<_> = header.map(|id| ("x-request-id", id)).into_iter().chain([JSON]).collect();
        let request = match body {
            Some(id) => json!({"user_id": 7, "candidates": [101], "request_id": id}),
            None => json!({"user_id": 7, "candidates": [101]}),
        };
        let answer = shop.http.send(Method::POST, path, &headers, request.to_string()).await;
        assert_eq!(answer.status, 200);
        let run = shop.http.get(&format!("/v1/runs/{}", answer.header("x-run-id")), &[]).await.json();
        let [header, recorded] = [answer.header("x-request-id"), run["request_id"].as_str().unwrap()];
        assert_eq!(header, recorded);
        (header.to_owned(), answer.json()["request_id"].as_str().unwrap().to_owned())
    };
    let same = |id: &str| (id.to_owned(), id.to_owned());
    assert_eq!(send(Some("of-header"), Some("of-body")).await, same("of-header"));
    assert_eq!(send(Some("of-header"), None).await, same("of-header"));
    assert_eq!(send(None, Some("of-body")).await, same("of-body"));
    assert_eq!(send(Some("not an id"), Some("of-body")).await, same("of-body"));
    let (made, again) = (send(None, None).await, send(None, None).await);
    assert!(made.0 == made.1 && again.0 == again.1 && made != again, "{made:?} {again:?}");
    // A text that cannot be a header comes back in the body alone.
    let (header, body) = send(None, Some("two words")).await;
    assert!(body == "two words" && header != body, "{header}");
    // A request that fails has its id, too.
    let failed = shop.run("broken", &json!({"user_id": 7, "candidates": [101], "request_id": "late"})).await;
    assert_eq!((failed.status, failed.header("x-request-id")), (502, "late"));
}

/// A trace leads to its runs.
#[tokio::test(flavor = "multi_thread")]
async fn runs_have_the_id_of_their_trace() {
    let folder = Shop::files(PROJECT);
    let (settings, data) = (Shop::settings(&folder), TempFolder::new());
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let set_up = |service| with_datasets(service, &executor, data.path(), |_| {});
    let shop = Shop::serving(folder, settings, executor.clone(), set_up).await;
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let header = format!("00-{id}-00f067aa0ba902b7-01");
    let headers = [JSON, ("traceparent", &*header)];
    let send = async |path: &str, body: String| shop.http.send(Method::POST, path, &headers, body).await;
    let request = json!({"user_id": 7, "candidates": [101]}).to_string();
    let ran = send("/v1/plans/rank/run?trace=true", request).await;
    let shown = async |run: &str| shop.http.get(&format!("/v1/runs/{run}"), &[]).await.json();
    assert_eq!(shown(ran.header("x-run-id")).await["trace_id"], id);
    let job = accepted(&send("/v1/datasets", demo(1).to_string()).await);
    let run = ended(&shop.http, &job).await["run"].as_str().unwrap().to_owned();
    assert_eq!(shown(&run).await["trace_id"], id);
}

#[tokio::test]
async fn blobs_are_not_kept_by_shared_caches() {
    let GuardedServer { server, tokens: [local, ..] } =
        guarded("caches", Settings::default(), Functions::builtin()).await;
    let address = server.executor.put("x").await.unwrap().address;
    let token = format!("Bearer {}", local.as_str());
    let (status, headers) =
        head(&server, &format!("/v1/blobs/{address}"), &[("authorization", &token)]).await;
    assert_eq!((status, text(&headers, "cache-control")), (200, "private, max-age=31536000, immutable"));
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_status() {
    let GuardedServer { server, tokens: [local, ..] } =
        guarded("metrics", Settings::default(), Functions::builtin()).await;
    let token = bearer(&local);
    for _ in 0..3 {
        assert_eq!(send(&server, "GET /v1/refs/nobody", &[&token], b"").await.0, 404);
    }
    assert_eq!(send(&server, "POST /v1/blobs", &[&token], b"12345").await.0, 201);
    assert_eq!(send(&server, "GET /v1/refs", &[], b"").await.0, 401);
    let address = anabranch_server::ServerAddress {
        token: Some(local.clone()),
        ..anabranch_server::ServerAddress::new(&server.url)
    };
    anabranch_server::Client::connect_to(&address).await.unwrap().status().await.unwrap();
    let expected = [
        "anabranch_requests_total{method=\"GET\",route=\"/v1/refs/{name}\",status=\"404\"} 3",
        "anabranch_requests_total{method=\"POST\",route=\"/v1/blobs\",status=\"201\"} 1",
        "anabranch_requests_total{method=\"GET\",route=\"/v1/refs\",status=\"401\"} 1",
        "anabranch_requests_total{method=\"gRPC\",route=\"/anabranch.recipe.v1.Recipes/Status\",status=\"0\"} 1",
        "anabranch_request_seconds_count{method=\"GET\",route=\"/v1/refs/{name}\"} 3",
        // The blob, and an empty message of gRPC.
        "anabranch_received_bytes_total 10",
        "anabranch_store_blobs 1",
        "anabranch_requests_in_flight 0",
    ];
    // A request is counted when its answer has been read, which the server may learn later than the client.
    soon(async {
        loop {
            let page = send(&server, "GET /metrics", &[&token], b"").await.1;
            let lines: Vec<&str> = page.lines().collect();
            assert!(!page.contains(local.as_str()));
            if expected.iter().all(|line| lines.contains(line)) {
                break;
            }
        }
    })
    .await;
}
