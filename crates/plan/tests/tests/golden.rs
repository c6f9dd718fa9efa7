//! rankd's own plans answer as rankd did: from memory, from a Redis, and from a cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_engine::clock::SystemClock;
use anabranch_plan::project::DataFile;
use anabranch_plan::source::{MemoryData, Redis, RedisConfig, seed};
use anabranch_plan::{Engine, Error, Problem, Request, RowsFrom, Setup};
use anabranch_testkit::{RedisCluster, RedisServer, patient};
use serde_json::Value;

use crate::compat;
use crate::sources::HANGS;

/// A copy of the registry in which no source runs out of time, however busy the machine is.
fn patient_registry(folder: &Path) -> PathBuf {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let copy = std::env::temp_dir().join(format!("anabranch-golden-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(folder.join("registry")).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        std::fs::write(copy.join(entry.file_name()), patient(&text)).unwrap();
    }
    copy
}

fn engine(folder: &Path, rows: RowsFrom) -> Engine {
    let registry = patient_registry(folder);
    let setup = Setup {
        registry: Some(registry.clone()),
        plans: Some(folder.join("plans")),
        test_ops: true,
        rows,
        ..Setup::default()
    };
    let engine = Engine::load(setup.config().unwrap().0).unwrap();
    std::fs::remove_dir_all(&registry).unwrap();
    engine
}

/// Every golden answer, and every other plan at least runs.
async fn answers(folder: &Path, rows: RowsFrom) {
    let engine = engine(folder, rows);
    let golden: Value = serde_json::from_slice(&std::fs::read(folder.join("golden.json")).unwrap()).unwrap();
    for case in golden.as_array().unwrap() {
        let name = case["plan"].as_str().unwrap();
        let plan = engine.plan(name).unwrap();
        let request = Request::parse(case["request"].to_string(), engine.registries()).unwrap();
        let answer = plan.run(request).await.unwrap();
        let mut bytes = Vec::new();
        answer.write_json(&engine.registries().keys, &mut bytes);
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        let candidates = answer["candidates"].as_array().unwrap();
        let ids: Value = candidates.iter().map(|candidate| candidate["id"].clone()).collect();
        assert_eq!(ids, case["ids"], "{name}");
        if let Some(scores) = case.get("final_score") {
            let found: Value = candidates.iter().map(|row| row["fields"]["final_score"].clone()).collect();
            assert_eq!(&found, scores, "{name}");
        }
    }
    for (name, _) in compat::plans("plans") {
        let request = Request::new(1, engine.registries());
        engine.plan(&name).unwrap().run(request).await.unwrap();
    }
}

#[tokio::test]
async fn from_memory() {
    let Some(folder) = compat::folder() else { return };
    let data = DataFile { file: folder.join("data.json"), pattern: None };
    answers(&folder, RowsFrom::Data(vec![data])).await;
}

async fn filled(folder: &Path, mut config: RedisConfig) {
    (config.connect_timeout, config.response_timeout) = (HANGS, HANGS);
    let text = std::fs::read_to_string(folder.join("data.json")).unwrap();
    let data = MemoryData::from_json("data.json", &text).unwrap();
    seed(&data, &Redis::new(config, Arc::new(SystemClock))).await.unwrap();
}

#[tokio::test]
async fn from_redis() {
    let Some(folder) = compat::folder() else { return };
    let server = RedisServer::start();
    filled(&folder, RedisConfig::new("127.0.0.1", server.port())).await;
    answers(&folder, RowsFrom::Redis(format!("127.0.0.1:{}", server.port()))).await;
}

#[tokio::test]
async fn from_a_cluster() {
    let Some(folder) = compat::folder() else { return };
    let cluster = RedisCluster::start(3);
    let url = format!("redis-cluster://{}", cluster.nodes()[0].address());
    filled(&folder, RedisConfig::parse_url(&url).unwrap()).await;
    answers(&folder, RowsFrom::Redis(url)).await;
}

#[tokio::test]
async fn what_rankd_refuses_is_refused_with_its_place() {
    let Some(folder) = compat::folder() else { return };
    let engine = engine(&folder, RowsFrom::Nowhere);
    let rejected = compat::plans("rejected");
    assert!(!rejected.is_empty());
    for (name, text) in rejected {
        let Err(Error::Plan(problems)) = engine.compile(&text, &folder) else { panic!("{name} was taken") };
        let named = ["node `", "capabilities_required", "extensions", "pred_table"];
        let has_place = |problem: &Problem| named.iter().any(|named| problem.place.contains(named));
        assert!(problems.errors.iter().all(has_place), "{name}: {problems}");
    }
}
