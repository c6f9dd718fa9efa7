//! The same data and the same read: the same answer, whatever it comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_plan::source::{
    Http, HttpConfig, Keys, Memory, MemoryData, Pattern, Read, Redis, RedisConfig, Source, seed,
};
use anabranch_rows::Kind;
use anabranch_testkit::{FakeServer, RedisCluster, RedisServer};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};

use crate::sources::{self, HANGS, clock, fetch, fields, redis, show};

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value.to_string())),
        (-1e6..1e6).prop_map(|value: f64| json!(value)),
        any::<bool>().prop_map(|value| json!(value)),
        "[a-z\"\\\\é \n]{0,6}".prop_map(|value| json!(value)),
    ]
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => (0..20i64).prop_map(|id| json!(id)),
        4 => any::<i64>().prop_map(|id| json!(id.to_string())),
        1 => Just(json!("no id")),
    ]
}

/// Ids by name of kind: what keys hold.
fn data() -> impl Strategy<Value = Value> {
    let hash = proptest::collection::btree_map("[abc]", value(), 0..4);
    let list = proptest::collection::vec(id(), 0..5);
    let scored = proptest::collection::btree_map("[0-9]{1,2}", -3..3i32, 0..5);
    let keys = |prefix: &'static str| move |id: i64| format!("{prefix}:{id}");
    (
        proptest::collection::btree_map((0..8i64).prop_map(keys("h")), hash, 0..8),
        proptest::collection::btree_map((0..8i64).prop_map(keys("l")), list, 0..8),
        proptest::collection::btree_map((0..8i64).prop_map(keys("z")), scored, 0..8),
    )
        .prop_map(|(hashes, lists, zsets)| json!({"hashes": hashes, "lists": lists, "zsets": zsets}))
}

fn reads() -> Vec<(Pattern, Read)> {
    let kinds = [Kind::Text, Kind::Int, Kind::Float, Kind::Bool];
    let mut reads: Vec<(Pattern, Read)> =
        kinds.iter().map(|kind| (Pattern::of_id("h:"), fields(&[("a", *kind), ("b", Kind::Text)]))).collect();
    for limit in [0, 2, 9] {
        reads.push((Pattern::of_id("l:"), Read::List { limit }));
        reads.push((Pattern::of_id("z:"), Read::Scored { limit }));
    }
    reads.push((Pattern::of_id("h:"), Read::List { limit: 3 }));
    reads
}

/// A server that answers from `data` as the HTTP source asks; values as they are in the data.
fn serve(data: &Value) -> FakeServer {
    let data = data.clone();
    FakeServer::start(move |talk| {
        while let Some(body) = talk.http_request() {
            let asked: Value = serde_json::from_str(&body).unwrap();
            let limit = asked["limit"].as_u64().unwrap_or(0) as usize;
            let keys = asked["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap());
            let answer = match asked["read"].as_str().unwrap() {
                "fields" => json!({"rows": keys.map(|key| data["hashes"][key].clone()).collect::<Vec<_>>()}),
                "list" => {
                    let list = |key| first(data["lists"][key].as_array().cloned().unwrap_or_default(), limit);
                    json!({"lists": keys.map(list).collect::<Vec<_>>()})
                }
                _ => {
                    let list = |key| first(scored(&data["zsets"][key]), limit);
                    json!({"lists": keys.map(list).collect::<Vec<_>>()})
                }
            };
            talk.http_reply("200 OK", &answer.to_string());
        }
    })
}

fn first(mut items: Vec<Value>, limit: usize) -> Vec<Value> {
    items.truncate(limit);
    items
}

fn scored(set: &Value) -> Vec<Value> {
    let empty = serde_json::Map::new();
    let members: BTreeMap<(i64, &str), ()> = set
        .as_object()
        .unwrap_or(&empty)
        .iter()
        .map(|(member, score)| ((score.as_i64().unwrap(), member.as_str()), ()))
        .collect();
    members.keys().rev().map(|(score, member)| json!({"id": member, "score": score})).collect()
}

#[tokio::test]
async fn all_sources_agree() {
    let (server, cluster) = (RedisServer::start(), RedisCluster::start(3));
    let single = redis(server.port());
    let many = RedisConfig { cluster: true, ..sources::config(cluster.nodes()[1].port()) };
    let many = Redis::new(many, clock());
    let config = Config { rng_seed: RngSeed::Fixed(5), ..Config::default() };
    let mut runner = TestRunner::new(config);
    for _ in 0..25 {
        let json = data().new_tree(&mut runner).unwrap().current();
        let data = Arc::new(MemoryData::from_json("data.json", &json.to_string()).unwrap());
        server.command(&["FLUSHALL"]);
        cluster.nodes().iter().for_each(|node| _ = node.command(&["FLUSHALL"]));
        seed(&data, &single).await.unwrap();
        seed(&data, &many).await.unwrap();
        let memory = Memory::new("ep_test", data, clock());
        let web = serve(&json);
        let mut config = HttpConfig::new(format!("http://127.0.0.1:{}/read", web.port()));
        config.response_timeout = HANGS;
        let http = Http::new(config, clock());
        for (pattern, read) in reads() {
            let ids = proptest::collection::vec(0..9i64, 0..6).new_tree(&mut runner).unwrap().current();
            let keys = Keys::Ids(ids);
            let expected = show(&fetch(&memory.bind(&pattern, &read), keys.clone()).await);
            let sources: [(&str, &dyn Source); 2] = [("single", &single), ("cluster", &many)];
            for (name, source) in sources {
                let found = show(&fetch(&source.bind(&pattern, &read), keys.clone()).await);
                assert_eq!(found, expected, "{name}: {pattern} {read:?} {keys:?} of {json}");
            }
            let found = fetch(&http.bind(&pattern, &read), keys.clone()).await;
            assert_eq!(show(&found), expected, "http: {pattern} {read:?} {keys:?} of {json}");
        }
    }
}
