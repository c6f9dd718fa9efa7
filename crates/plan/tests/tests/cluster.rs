//! A Redis Cluster: slots that move, servers that go.

use anabranch_plan::source::{Error, Keys, MemoryData, Redis, RedisConfig, Source, seed};
use anabranch_testkit::RedisCluster;

use crate::sources::{ask, clock, config, country, fetch, show, until, users};

const USERS: i64 = 60;

fn data() -> MemoryData {
    let hashes: Vec<String> =
        (0..USERS).map(|id| format!(r#""user:{id}": {{"country": "c{id}"}}"#)).collect();
    MemoryData::from_json("data.json", &format!(r#"{{"hashes": {{{}}}}}"#, hashes.join(","))).unwrap()
}

/// The pattern of all users' countries.
fn all() -> String {
    (0..USERS).map(|id| format!("\"c{id}\"")).collect::<Vec<_>>().join("\n")
}

async fn ask_all(redis: &Redis) -> String {
    ask(redis, &users(), &country(), &(0..USERS).collect::<Vec<_>>()).await
}

#[tokio::test]
async fn a_cluster_answers_like_one_server() {
    let mut cluster = RedisCluster::start(3);
    let ports: Vec<u16> = cluster.nodes().iter().map(|node| node.port()).collect();
    let redis = Redis::new(RedisConfig { cluster: true, ..config(ports[0]) }, clock());
    seed(&data(), &redis).await.unwrap();
    assert_eq!(ask_all(&redis).await, all());
    let told = Redis::new(RedisConfig { cluster: true, ..config(ports[1]) }, clock());
    let bound = told.bind(&users(), &country());
    let reply = fetch(&bound, Keys::Ids((0..USERS).collect())).await;
    assert_eq!(show(&reply), all());
    let reply = reply.unwrap();
    assert_eq!((reply.trips, reply.commands), (3, USERS as u32));

    cluster.move_slot_of("user:7");
    assert_eq!(ask_all(&redis).await, all());
    assert_eq!(ask_all(&told).await, all());
    cluster.half_move_slot_of("user:11");
    assert_eq!(ask_all(&redis).await, all());
    assert_eq!(ask_all(&told).await, all());

    for node in cluster.nodes() {
        node.command(&["SAVE"]);
    }
    cluster.node_mut(2).kill();
    let reply = fetch(&bound, Keys::Ids((0..USERS).collect())).await;
    assert!(matches!(reply, Err(Error::Connect { .. } | Error::Broken { .. })), "{reply:?}");
    cluster.node_mut(2).restart();
    cluster.wait_until_ready();
    until(&told, &country(), &(0..USERS).collect::<Vec<_>>(), &all()).await;
    until(&redis, &country(), &(0..USERS).collect::<Vec<_>>(), &all()).await;
}
