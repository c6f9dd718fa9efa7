//! Late reads of a real Redis, of whose connections one is slow.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::sources::{Hedge, HedgeCounts, MemoryData, Redis, RedisConfig, Source, seed};
use anabranch_plan::{Config, Engine, Plan, Request};
use anabranch_testkit::{DelayProxy, RedisServer};
use futures_util::future::join_all;
use serde_json::json;

use crate::naive::world::registries;
use crate::sources::{clock, config, redis};

const CALLERS: usize = 4;
const REQUESTS: usize = 600;

/// A plan of one small trip over ten connections; the replies of the last one to be made come 20 ms late.
fn plan(server: &RedisServer, hedge: Option<Hedge>) -> (DelayProxy, Plan) {
    let slow = |number: usize| Duration::from_millis(if number % 10 == 9 { 20 } else { 0 });
    let proxy = DelayProxy::start(server.port(), slow);
    let source = Redis::new(RedisConfig { connections: 10, hedge, ..config(proxy.port()) }, clock());
    let source: Arc<dyn Source> = Arc::new(source);
    let engine = Engine::load(Config::new(registries(), vec![Arc::clone(&source), source])).unwrap();
    let text = json!({"schema_version": 1, "plan_name": "hedge", "outputs": ["viewer"], "nodes": [
        {"node_id": "viewer", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
    ]});
    let plan = engine.compile(&text.to_string(), Path::new(".")).unwrap();
    (proxy, plan)
}

/// The 99th percentile of what requests take, in the order of callers, and the commands that the server has seen.
async fn measure(server: &RedisServer, plan: &Plan) -> (Duration, usize) {
    let caller = |requests: usize| async move {
        let mut took = Vec::with_capacity(requests);
        for _ in 0..requests {
            let start = clock().now();
            plan.run(Request::new(1, plan.engine().registries())).await.unwrap();
            took.push(clock().now() - start);
        }
        took
    };
    join_all((0..CALLERS).map(|_| caller(50))).await;
    server.command(&["CONFIG", "RESETSTAT"]);
    let mut took = join_all((0..CALLERS).map(|_| caller(REQUESTS))).await.concat();
    took.sort_unstable();
    let stats = server.command(&["INFO", "commandstats"]);
    let (_, calls) = stats.split_once("cmdstat_hget:calls=").unwrap();
    let commands = calls.split(',').next().unwrap().parse().unwrap();
    (took[took.len() * 99 / 100], commands)
}

#[tokio::test]
async fn one_slow_connection_in_ten_is_hardly_noticed() {
    let server = RedisServer::start();
    let data = MemoryData::from_json("data", r#"{"hashes": {"user:1": {"country": "US"}}}"#).unwrap();
    seed(&data, &redis(server.port())).await.unwrap();
    let hedge = Hedge::default().within(0.1).unwrap();
    let mut tries = Vec::new();
    // Other work on the machine may hold up any one of them.
    for _ in 0..3 {
        let (_proxy, plain) = plan(&server, None);
        let (p99_plain, commands_plain) = measure(&server, &plain).await;
        assert_eq!(commands_plain, CALLERS * REQUESTS);
        let (_proxy, hedged) = plan(&server, Some(hedge));
        let (p99_hedged, commands_hedged) = measure(&server, &hedged).await;
        assert!(commands_hedged * 10 <= commands_plain * 11, "{commands_hedged} commands");
        let (_, HedgeCounts { sent, won, .. }) = hedged.engine().hedges()[0];
        if p99_plain >= 3 * p99_hedged && won > 0 {
            return;
        }
        tries.push(format!("{p99_hedged:?} instead of {p99_plain:?}, {sent} sent twice, {won} to good use"));
    }
    panic!("{tries:?}");
}
