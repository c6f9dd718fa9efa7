//! Plans, recipes and datasets on one engine: its limit of runs, and its two pools.

use anabranch_content::Store;
use anabranch_engine::{Config, Engine};
use anabranch_recipe::{Executor, Functions};
use futures_util::future::{join, join_all};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::datasets::{accepted, demo, ended, submit, with_datasets};
use crate::plans::{PROJECT, Shop};
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

/// All threads for recipes and datasets are taken, and more work waits for them. Plans, none of whose nodes may run on a
/// worker here, have threads of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recipes_and_datasets_keep_no_plan_waiting() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let executor = executor(gate.functions(), &Config { batch_threads: 2, ..Config::default() });
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
