//! Plans, recipes and datasets on one engine: its limit of runs, and its two pools.

use std::pin::pin;

use anabranch_content::Store;
use anabranch_engine::options::Class;
use anabranch_engine::{Config, Engine};
use anabranch_recipe::{Executor, Functions};
use anabranch_server::proto::plans::plans_client::PlansClient;
use anabranch_server::proto::plans::run_many_response::Result as RunResult;
use anabranch_server::{Code, Settings, Target, ValuePiece};
use futures_util::StreamExt as _;
use futures_util::future::{join, join_all};
use hyper::Method;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::datasets::{accepted, demo, ended, submit, with_datasets};
use crate::http::JSON;
use crate::plans::{PROJECT, Shop};
use crate::plans_grpc::request;
use crate::support::{Gate, OpenOnDrop, TempFolder, functions, soon, until};

fn executor(functions: Functions, config: &Config) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    Executor::new(store, functions, Engine::new(config).unwrap(), anabranch_recipe::Config::default())
}

#[tokio::test]
async fn a_full_engine_refuses_plans_and_says_when_to_try_again() {
    let folder = Shop::files(PROJECT);
    let settings = Shop::settings(&folder);
    let executor = executor(functions(), &Config { max_runs: 1, ..Config::default() });
    let shop = Shop::serving(folder, settings, executor, |service| service).await;
    let request = json!({"user_id": 7, "candidates": [101]});
    // A run that never ends, for as long as its client is there.
    let mut slow = shop.http.server.connect().await;
    let head = "POST /v1/plans/patient/run HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let body = request.to_string();
    slow.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
    let refused = soon(async {
        loop {
            let answer = shop.run("rank", &request).await;
            if answer.status != 200 {
                return answer;
            }
        }
    })
    .await;
    let (word, message) = refused.error();
    assert_eq!(
        (refused.status, refused.header("retry-after"), &*word),
        (503, "1", "unavailable"),
        "{message}"
    );
    assert!(message.contains("already has 1 active runs"), "{message}");
    drop(slow);
    soon(async { while shop.run("rank", &request).await.status != 200 {} }).await;
}

/// A shop with so few slots that a client may have one, and none may wait for one.
async fn crowded(gate: &Gate) -> Shop {
    let executor = executor(gate.functions(), &Config::default());
    let folder = Shop::files(PROJECT);
    let settings = Shop::settings(&folder);
    let bounds = Settings { in_flight_most: 2, queue_most: 0, ..Settings::default() };
    Shop::bounded(folder, settings, bounds, executor, |service| service).await
}

/// The address of a recipe that waits for the gate.
async fn gated(shop: &Shop, text: &'static str) -> String {
    let leaf = shop.http.blob(text).await;
    let recipe = json!({ "function": "gate/1.0.0", "inputs": [leaf] }).to_string();
    shop.http.post("/v1/recipes", recipe).await.json()["address"].as_str().unwrap().to_owned()
}

pub(crate) async fn has_metric(shop: &Shop, line: &str) -> bool {
    let page = shop.http.get("/metrics", &[]).await;
    String::from_utf8_lossy(&page.body).lines().any(|found| found == line)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_for_recipes_has_slots_for_its_plans() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let shop = crowded(&gate).await;
    let address = gated(&shop, "leaf").await;
    let path = format!("/v1/recipes/{address}/value");
    let value = shop.http.get(&path, &[]);
    let plans = async {
        soon(async { while !has_metric(&shop, "anabranch_requests_in_flight 1").await {} }).await;
        assert_eq!(shop.http.get("/v1/refs", &[]).await.status, 429, "the client has its share");
        let answer = shop.run("rank", &json!({"user_id": 7, "candidates": [101]})).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let mut client = PlansClient::new(shop.http.server.channel().await);
        client.run(request("rank")).await.unwrap();
        let many = client.run_many(futures_util::stream::iter([request("rank")])).await.unwrap();
        let answers: Vec<_> = many.into_inner().map(Result::unwrap).collect().await;
        assert!(matches!(answers[0].result, Some(RunResult::Response(_))), "{answers:?}");
        gate.open();
    };
    let (value, ()) = join(value, plans).await;
    assert_eq!((value.status, &*value.body), (200, &b"leaf"[..]));
}

/// The request for them has returned its slot with the headers of its response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_value_of_a_batch_takes_a_slot() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let shop = crowded(&gate).await;
    let [first, second] = [gated(&shop, "first").await, gated(&shop, "second").await];
    let client = shop.http.server.client().await;
    let mut many = client.get_many([first, second].map(|address| Target::from(&*address))).await.unwrap();
    let refused = "anabranch_requests_shed_total{by=\"client\"} 1";
    soon(async { while !has_metric(&shop, refused).await {} }).await;
    assert_eq!(shop.http.get("/v1/refs", &[]).await.status, 429);
    gate.open();
    let mut failed = Vec::new();
    while let Some(piece) = soon(many.next()).await {
        if let (place, ValuePiece::Failed { code, .. }) = piece.unwrap() {
            failed.push((place, code));
        }
    }
    assert!(matches!(failed[..], [(0 | 1, Code::ResourceExhausted)]), "{failed:?}");
}

#[tokio::test]
async fn each_request_of_a_stream_takes_a_slot() {
    let shop = crowded(&Gate::default()).await;
    let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
    let requests = futures_util::stream::unfold(requests, async |mut requests| {
        let request = requests.recv().await?;
        Some((request, requests))
    });
    let mut client = PlansClient::new(shop.http.server.channel().await);
    let mut answers = client.run_many(Box::pin(requests)).await.unwrap().into_inner();
    let patient = json!({"user_id": 7, "candidates": [101]});
    let mut run = pin!(shop.run("patient", &patient));
    tokio::select! {
        answer = &mut run => panic!("its reads are never answered: {:?}", answer.body),
        () = soon(async { while !has_metric(&shop, "anabranch_requests_in_flight 1").await {} }) => {}
    }
    sender.send(request("rank")).unwrap();
    let answer = soon(answers.message()).await.unwrap().unwrap();
    assert!(
        matches!(&answer.result, Some(RunResult::Error(error)) if error.code == i32::from(Code::ResourceExhausted)),
        "{answer:?}"
    );
}

/// The threads for plans are taken. Bodies and drawings of everything else have threads of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_plans_wait_for_the_threads_of_plans() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let executor = executor(functions(), &Config { cpu_threads: 1, ..Config::default() });
    let folder = Shop::files(PROJECT);
    let (settings, data) = (Shop::settings(&folder), TempFolder::new());
    let set_up = |service| with_datasets(service, &executor, data.path(), |_| {});
    let shop = Shop::serving(folder, settings, executor.clone(), set_up).await;
    let http = &shop.http;
    let traced = http.post("/v1/plans/rank/run?trace=true", r#"{"user_id": 7, "candidates": [101]}"#).await;
    let run = traced.header("x-run-id").to_owned();
    let held = gate.clone();
    executor.engine().pool(Class::Latency).submit(Box::new(move || held.wait()));
    let leaf = http.blob("leaf").await;
    let spaces = " ".repeat(20_000);
    let recipe = json!({ "function": "concat/1.0.0", "inputs": [leaf] });
    assert_eq!(http.post("/v1/recipes", format!("{recipe}{spaces}")).await.status, 201);
    let meaning = json!({ "address": leaf });
    let named = http.send(Method::PUT, "/v1/refs/name", &[JSON], format!("{meaning}{spaces}")).await;
    assert_eq!(named.status, 200);
    accepted(&submit(http, &demo(1)).await);
    assert_eq!(http.get(&format!("/v1/runs/{run}/timeline.svg"), &[]).await.status, 200);
}

/// The one thread for recipes and datasets is taken, and more work waits for them. Plans, none of whose nodes may run on a
/// worker here, have threads of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recipes_and_datasets_keep_no_plan_waiting() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let executor = executor(gate.functions(), &Config { batch_threads: 1, ..Config::default() });
    let folder = Shop::files(&format!("{PROJECT}\n[engine]\ninline_threshold_us = 0\n"));
    let (settings, data) = (Shop::settings(&folder), TempFolder::new());
    let set_up = |service| with_datasets(service, &executor, data.path(), |_| {});
    let shop = Shop::serving(folder, settings, executor.clone(), set_up).await;
    let http = &shop.http;
    let id = accepted(&submit(http, &demo(50)).await);
    let built = ended(http, &id).await;
    assert_eq!(built["state"], "complete", "{built}");

    let mut values = Vec::new();
    for number in 0..5 {
        let leaf = http.blob(format!("leaf {number}")).await;
        let recipe = json!({ "function": "gate/1.0.0", "inputs": [leaf] }).to_string();
        let address = http.post("/v1/recipes", recipe).await.json()["address"].as_str().unwrap().to_owned();
        values.push(address);
    }
    let gets =
        values.iter().map(async |address| http.get(&format!("/v1/recipes/{address}/value"), &[]).await);
    let dataset = demo(60);
    let batch = join(join_all(gets), submit(http, &dataset));
    let plans = async {
        until(|| executor.status().computing == 5).await;
        for _ in 0..20 {
            let request = json!({"user_id": 7, "candidates": [101, 102, 103]});
            let answer = soon(shop.run("rank", &request)).await;
            let body = answer.json();
            assert_eq!(
                (answer.status, body["candidates"].as_array().map(Vec::len)),
                (200, Some(3)),
                "{body}"
            );
            assert!(body["ledger"].as_array().is_none_or(Vec::is_empty), "{body}");
        }
        gate.open();
    };
    let ((values, submitted), ()) = join(batch, plans).await;
    for (number, value) in values.iter().enumerate() {
        assert_eq!((value.status, &*value.body), (200, format!("leaf {number}").as_bytes()));
    }
    assert_eq!(ended(http, &accepted(&submitted)).await["state"], "complete");
}
