//! The trace of a request, as the HTTP sources of its plan see it.

use std::sync::{Arc, Mutex};

use anabranch_server::proto::plans::plans_client::PlansClient;
use anabranch_server::proto::plans::{Rows, RunRequest, run_many_response, run_request};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use hyper::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::http::JSON;
use crate::plans::Shop;
use crate::support::soon;

/// The headers and the keys of each trip.
type Trips = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

/// A catalog behind HTTP; dropping it stops it.
struct Catalog {
    trips: Trips,
    url: String,
    _served: JoinSet<()>,
}

impl Catalog {
    async fn start() -> Catalog {
        let trips = Trips::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/read", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/read", post(answer)).with_state(Arc::clone(&trips));
        let mut served = JoinSet::new();
        served.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Catalog { trips, url, _served: served }
    }

    fn take(&self) -> Vec<(HeaderMap, Value)> {
        std::mem::take(&mut self.trips.lock().unwrap())
    }
}

/// Each product has the price 1.
async fn answer(State(trips): State<Trips>, headers: HeaderMap, Json(read): Json<Value>) -> Json<Value> {
    let rows: Vec<Value> = read["keys"].as_array().unwrap().iter().map(|_| json!({"price": 1.0})).collect();
    trips.lock().unwrap().push((headers, read["keys"].clone()));
    Json(json!({ "rows": rows }))
}

/// Two nodes read the same products.
const TWICE: &str = r#"{"schema_version": 1, "plan_name": "twice", "outputs": ["all", "some"], "nodes": [
  {"node_id": "brought", "op": "core::candidates", "inputs": [], "params": {"columns": []}},
  {"node_id": "first", "op": "core::take", "inputs": ["brought"], "params": {"count": 2}},
  {"node_id": "all", "op": "core::lookup", "inputs": ["brought"],
    "params": {"endpoint": "catalog", "key": "product:{id}", "fields": ["price"]}},
  {"node_id": "some", "op": "core::lookup", "inputs": ["first"],
    "params": {"endpoint": "catalog", "key": "product:{id}", "fields": ["price"]}}]}"#;

#[tokio::test]
async fn http_sources_are_told_the_trace() {
    let catalog = Catalog::start().await;
    let project = format!(
        "[plan]\nenv = \"dev\"\n[plan.endpoints.catalog]\nsource = \"http\"\nurl = \"{}\"\n",
        catalog.url
    );
    let shop = Shop::of(&project, |_| {}).await;
    shop.write("twice.plan.json", TWICE);
    shop.plans.reload().await.unwrap();
    let run = async |headers: &[(&str, &str)]| {
        let body = json!({"user_id": 7, "candidates": [1, 2, 3]}).to_string();
        let headers = [&[JSON], headers].concat();
        let answer = shop.http.send(Method::POST, "/v1/plans/twice/run", &headers, body).await;
        assert_eq!((answer.status, answer.json()["ledger"].clone()), (200, json!([])));
        let trips = catalog.take();
        let keys: usize = trips.iter().map(|(_, keys)| keys.as_array().unwrap().len()).sum();
        assert_eq!(keys, 3, "what one node has read the other does not read again");
        let text = |headers: &HeaderMap, name: &str| {
            headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        let mut traces: Vec<[String; 2]> = trips
            .iter()
            .map(|(headers, _)| ["traceparent", "tracestate"].map(|name| text(headers, name)))
            .collect();
        traces.dedup();
        assert_eq!(traces.len(), 1, "{traces:?}");
        traces.remove(0)
    };
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let header = format!("00-{trace}-{parent}-01");
    let [told, state] = run(&[("traceparent", &header), ("tracestate", "a=1,b=2")]).await;
    let own = told.strip_prefix(&format!("00-{trace}-")).and_then(|rest| rest.strip_suffix("-01")).unwrap();
    assert!(own.len() == 16 && own != parent, "{told}");
    assert_eq!(state, "a=1,b=2");
    let [again, _] = run(&[("traceparent", &header)]).await;
    assert_ne!(told, again, "each request is a part of its own");
    assert_eq!(run(&[]).await, ["", ""]);
    assert_eq!(run(&[("traceparent", "00-1-2-3"), ("tracestate", "a=1")]).await, ["", ""]);
    over_grpc(&shop, &catalog, trace, parent).await;
}

/// Calls of gRPC pass their trace on, too.
async fn over_grpc(shop: &Shop, catalog: &Catalog, trace: &str, parent: &str) {
    let header = format!("00-{trace}-{parent}-01");
    let mut client = PlansClient::new(shop.http.server.channel().await);
    let request = || RunRequest {
        plan: "twice".to_owned(),
        user: Some(run_request::User::UserId(7)),
        candidates: Some(Rows { ids: vec![1, 2, 3], columns: Vec::new() }),
        ..RunRequest::default()
    };
    let mut told = Vec::new();
    let mut hear = || {
        let trips = catalog.take();
        assert!(!trips.is_empty());
        for (headers, _) in trips {
            assert_eq!(headers["tracestate"], "a=1", "{headers:?}");
            told.push(headers["traceparent"].to_str().unwrap().to_owned());
        }
    };
    let mut once = tonic::Request::new(request());
    let mut many = tonic::Request::new(futures_util::stream::iter([request(), request()]));
    for metadata in [once.metadata_mut(), many.metadata_mut()] {
        metadata.insert("traceparent", header.parse().unwrap());
        metadata.insert("tracestate", "a=1".parse().unwrap());
    }
    client.run(once).await.unwrap();
    hear();
    let mut answers = client.run_many(many).await.unwrap().into_inner();
    for _ in 0..2 {
        assert!(matches!(
            soon(answers.message()).await.unwrap().unwrap().result,
            Some(run_many_response::Result::Response(_))
        ));
    }
    hear();
    let is_part = |told: &String| told.starts_with(&format!("00-{trace}-")) && !told.contains(parent);
    assert!(told.iter().all(is_part), "{told:?}");
}
