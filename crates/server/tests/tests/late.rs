//! Requests for plans whose time passes, and sources that fail.

use std::sync::Arc;
use std::time::Duration;

use anabranch_server::proto::plans::RunRequest;
use anabranch_server::proto::plans::run_many_response::Result::Error;
use futures_util::StreamExt as _;
use hyper::Method;
use serde_json::{Value, json};
use tonic::{Code, Request};

use crate::http::JSON;
use crate::one_engine::has_metric;
use crate::plans::{PROJECT, Shop, request};
use crate::plans_grpc;
use crate::support::{TestClock, soon};

/// A shop whose endpoint counts its reads in flight. Its time stands still until the test advances the clock.
async fn start(clock: &Arc<TestClock>) -> Shop {
    Shop::on_test_time(&format!("{PROJECT}max_inflight = 64\n"), clock).await
}

/// The answer to a call whose read is never answered. Time passes only while it waits for the read.
async fn late<T>(shop: &Shop, clock: &TestClock, call: impl Future<Output = T>) -> T {
    let reads = async |count: usize| {
        let line = format!("anabranch_plan_limit_in_flight{{endpoint=\"catalog\"}} {count}");
        soon(async { while !has_metric(shop, &line).await {} }).await;
    };
    let pass = async {
        reads(1).await;
        loop {
            clock.advance(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    };
    let answer = tokio::select! {
        answer = soon(call) => answer,
        () = pass => unreachable!("time does not end"),
    };
    reads(0).await;
    answer
}

#[tokio::test]
async fn late_and_broken_sources() {
    let clock = Arc::default();
    let shop = start(&clock).await;
    let answer = late(&shop, &clock, shop.run("guarded", &request())).await;
    let body = answer.json();
    assert_eq!((answer.status, body["candidates"].as_array().unwrap().len()), (200, 4));
    assert_eq!(
        (&body["ledger"][0]["node"], &body["ledger"][0]["reason"]),
        (&json!("items"), &json!("timeout"))
    );

    // The run names the node of its graph that an entry is about.
    let path = "/v1/plans/guarded/run?trace=true";
    let kept = shop.http.send(Method::POST, path, &[JSON], request().to_string());
    let kept = late(&shop, &clock, kept).await;
    let run = shop.http.get(&format!("/v1/runs/{}", kept.header("x-run-id")), &[]).await.json();
    let entry = &run["ledger"][0];
    let of =
        |list: &Value| list.as_array().unwrap().iter().find(|node| node["id"] == entry["stage"]).cloned();
    let (node, times) = (of(&run["graph"]["nodes"]).unwrap(), of(&run["timeline"]["nodes"]).unwrap());
    assert_eq!((&entry["node"], &entry["name"]), (&json!("items"), &node["name"]));
    assert_eq!(times["state"], "fell_back");

    for (path, headers) in [
        ("/v1/plans/patient/run?timeout=30ms", vec![JSON]),
        ("/v1/plans/patient/run", vec![JSON, ("request-timeout", "30ms")]),
        ("/v1/plans/patient/run", vec![JSON, ("grpc-timeout", "30m")]),
    ] {
        let call = shop.http.send(Method::POST, path, &headers, request().to_string());
        let late = late(&shop, &clock, call).await;
        assert_eq!((late.status, late.error().0.as_str()), (504, "deadline_exceeded"), "{headers:?}");
        assert!(late.error().1.contains("items"), "{}", late.error().1);
    }
    let broken = shop.run("broken", &request()).await;
    assert_eq!((broken.status, broken.error().0.as_str()), (502, "source_failed"));
    assert!(broken.error().1.contains("items"), "{}", broken.error().1);

    let listed = shop.http.get("/v1/plans", &[]).await.json();
    let of = |name: &str| {
        listed["plans"].as_array().unwrap().iter().find(|plan| plan["name"] == name).unwrap().clone()
    };
    assert_eq!((&of("guarded")["degraded_rate"], &of("guarded")["requests"]), (&json!(1.0), &json!(2)));
    assert_eq!((&of("patient")["error_rate"], &of("patient")["in_flight"]), (&json!(1.0), &json!(0)));
    let metrics = shop.plans.metrics();
    for line in [
        "anabranch_plan_served_requests_total{plan=\"patient\",outcome=\"deadline\"} 3",
        "anabranch_plan_served_requests_total{plan=\"broken\",outcome=\"failed\"} 1",
        "anabranch_plan_latency_seconds_count{plan=\"guarded\"} 2",
        "anabranch_plan_latency_seconds_bucket{plan=\"guarded\",le=\"+Inf\"} 2",
        "anabranch_plan_degraded_total{plan=\"guarded\",node=\"items\",reason=\"timeout\",fallback=\"pass\"} 2",
        "anabranch_plan_load_problem{plan=\"rank\"} 0",
    ] {
        assert!(metrics.contains(&format!("{line}\n")), "{line}\n{metrics}");
    }
}

/// A call for the plan whose reads are never answered. `grpc-timeout` is kept by the client of this test itself, too.
fn timed<T>(message: T) -> Request<T> {
    let mut call = Request::new(message);
    call.metadata_mut().insert("request-timeout", "30ms".parse().unwrap());
    call
}

fn patient() -> RunRequest {
    plans_grpc::request("patient")
}

#[tokio::test]
async fn a_call_of_grpc_has_its_deadline() {
    let clock = Arc::default();
    let shop = start(&clock).await;
    let mut client = plans_grpc::client(&shop).await;
    let status = late(&shop, &clock, client.run(timed(patient()))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status.message().contains("items"), "{status}");
}

#[tokio::test]
async fn the_deadline_of_a_stream_is_that_of_its_requests() {
    let clock = Arc::default();
    let shop = start(&clock).await;
    let mut client = plans_grpc::client(&shop).await;
    let answers = client.run_many(timed(futures_util::stream::iter([patient()])));
    let answers = async { answers.await.unwrap().into_inner().map(Result::unwrap).collect::<Vec<_>>().await };
    let answers = late(&shop, &clock, answers).await;
    assert!(
        matches!(&answers[0].result, Some(Error(error)) if error.code == i32::from(Code::DeadlineExceeded)),
        "{answers:?}"
    );
}
