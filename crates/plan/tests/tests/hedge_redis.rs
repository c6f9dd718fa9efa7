//! Late reads of a real Redis, of whose connections one is slow.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::source::{Hedge, HedgeCounts, MemoryData, Redis, RedisConfig, Source, seed};
use anabranch_plan::{Config, Engine, Plan, Request};
use anabranch_testkit::{DelayProxy, RedisServer};
use futures_util::future::join_all;
use serde_json::json;

use crate::naive::world::registries;
use crate::sources::{clock, config, redis};

const CALLERS: usize = 4;
const REQUESTS: usize = 200;

/// A plan of one small trip over ten connections; the replies of the last one to be made are late by `delay`.
fn plan(server: &RedisServer, delay: Duration, hedge: Option<Hedge>) -> (DelayProxy, Plan) {
    let slow = move |number: usize| if number % 10 == 9 { delay } else { Duration::ZERO };
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
    for _ in 0..5 {
        let (_proxy, quick) = plan(&server, Duration::ZERO, None);
        let (p99_quick, commands_quick) = measure(&server, &quick).await;
        assert_eq!(commands_quick, CALLERS * REQUESTS);
        // One reply in ten is late by far more than the machine makes any of them late; without hedging, so would
        // the 99th percentile be.
        let slow = (10 * p99_quick).max(Duration::from_millis(20));
        let (_proxy, hedged) = plan(&server, slow, Some(hedge));
        let (p99_hedged, commands_hedged) = measure(&server, &hedged).await;
        assert!(commands_hedged * 10 <= commands_quick * 11, "{commands_hedged} commands");
        let (_, HedgeCounts { sent, won, .. }) = hedged.engine().hedges()[0];
        if slow >= 3 * p99_hedged && won > 0 {
            return;
        }
        tries.push(format!("{p99_hedged:?} instead of {slow:?}, {sent} sent twice, {won} to good use"));
    }
    panic!("{tries:?}");
}
