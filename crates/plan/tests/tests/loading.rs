//! Engines and plans are loaded, refused and loaded again.

use std::sync::Arc;

use anabranch_engine::clock::SystemClock;
use anabranch_plan::source::{Bound, Memory, MemoryData, Pattern, Read, Source};
use anabranch_plan::{Config, Engine, Registries, Request};
use expect_test::expect;

const KEYS: &str = "key = [{ key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false }]";
const ENDPOINT: &str = "[[endpoint]]\nendpoint_id = 'ep_1'\nname = 'shop'\nkind = 'redis'\n\
                        resolver = { type = 'static', host = '127.0.0.1', port = 1 }";

fn registries() -> Registries {
    Registries::parse([("keys.toml", KEYS), ("endpoints.dev.toml", ENDPOINT)], Some("dev")).unwrap().0
}

fn memory() -> Arc<dyn Source> {
    Arc::new(Memory::new("shop", Arc::new(MemoryData::default()), Arc::new(SystemClock)))
}

/// A source that takes no trips.
struct ClosedSource;

impl Source for ClosedSource {
    fn bind(&self, _: &Pattern, _: &Read) -> Arc<dyn Bound> {
        unreachable!("no plan is compiled")
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(0)
    }
}

#[test]
fn configs_that_no_engine_can_work_with_are_refused() {
    let refused = |sources| Engine::load(Config::new(registries(), sources)).err().unwrap().to_string();
    expect!["sources: there are 0 sources for 1 endpoints (give one source per endpoint, in their order)"]
        .assert_eq(&refused(vec![]));
    expect!["endpoint `shop`, max_inflight: must be at least 1"]
        .assert_eq(&refused(vec![Arc::new(ClosedSource)]));
}

#[test]
fn a_plan_is_loaded_again_when_asked() {
    let folder = std::env::temp_dir().join(format!("anabranch-reload-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |count: u32| {
        let text = format!(
            r#"{{"schema_version": 1, "plan_name": "p", "outputs": ["t"], "nodes": [
                {{"node_id": "c", "op": "core::candidates", "inputs": []}},
                {{"node_id": "t", "op": "core::take", "inputs": ["c"], "params": {{"count": {count}}}}}]}}"#
        );
        std::fs::write(folder.join("p.plan.json"), text).unwrap();
    };
    let mut config = Config::new(registries(), vec![memory()]);
    config.folder = Some(folder.clone());
    let engine = Engine::load(config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows = |plan: &anabranch_plan::Plan| {
        let text = r#"{"user_id": 1, "candidates": [1, 2, 3]}"#;
        let request = Request::parse(text, engine.registries()).unwrap();
        runtime.block_on(plan.run(request)).unwrap().candidates().count()
    };
    write(1);
    let first = engine.plan("p").unwrap();
    write(2);
    assert_eq!(rows(&engine.plan("p").unwrap()), 1, "a plan stays as it was loaded");
    assert_eq!(rows(&engine.reload("p").unwrap()), 2);
    assert_eq!((rows(&engine.plan("p").unwrap()), rows(&first)), (2, 1));
    assert_eq!(engine.metrics().plans.len(), 1, "both are counted as one plan");
    std::fs::remove_dir_all(&folder).unwrap();
}
