//! Values that cannot be read cost one field of one row, and the ledger counts them.

use std::sync::Arc;

use anabranch_plan::source::{
    Bound, Data, Fetch, Keys, MalformedValues, Pattern, Read, ReadContext, Reply, Source,
};
use anabranch_plan::{Config, Engine, Registries, Request};
use anabranch_rows::Column;
use anabranch_testkit::Sim;
use expect_test::expect;
use serde_json::{Value, json};

/// A source whose second value is malformed.
struct MalformedSource;

impl Source for MalformedSource {
    fn bind(&self, _: &Pattern, _: &Read) -> Arc<dyn Bound> {
        Arc::new(MalformedSource)
    }
}

impl Bound for MalformedSource {
    fn fetch(&self, keys: Keys, _: ReadContext<'_>) -> Fetch {
        let values = (0..keys.len()).map(|row| (row != 1).then_some(row as f64));
        let malformed = MalformedValues {
            count: 1,
            first: Some("`price` of `item:2` is \"abc\", not a finite number".into()),
        };
        let data = Data::Columns(vec![Column::floats(values)]);
        Fetch::Ready(Ok(Reply { malformed, ..Reply::whole(data, 1, keys.commands()) }))
    }
}

#[test]
fn the_ledger_tells_the_first_and_counts_all() {
    let keys = r#"key = [
        { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
        { key_id = 2, name = "price", type = "float", nullable = true }]"#;
    let endpoints = "[[endpoint]]\nendpoint_id = \"ep_1\"\nname = \"shop\"\nkind = \"redis\"\n\
                     resolver = { type = \"static\", host = \"127.0.0.1\", port = 1 }";
    let (registries, _) =
        Registries::parse([("keys.toml", keys), ("endpoints.dev.toml", endpoints)], Some("dev")).unwrap();
    let sim = Sim::new(1);
    let config = Config::new(registries, vec![Arc::new(MalformedSource)]);
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    let text = json!({"schema_version": 1, "plan_name": "malformed", "outputs": ["items"], "nodes": [
        {"node_id": "ids", "op": "core::candidates", "inputs": []},
        {"node_id": "items", "op": "core::lookup", "inputs": ["ids"],
         "params": {"endpoint": "shop", "key": "item:{id}", "fields": ["price"]}}]});
    let plan = engine.compile(&text.to_string(), ".".as_ref()).unwrap();
    let request = Request::parse(r#"{"user_id": 1, "candidates": [1, 2, 3]}"#, engine.registries()).unwrap();
    let answer = sim.block_on(plan.run(request)).unwrap();
    let mut bytes = Vec::new();
    answer.write_json(&engine.registries().keys, &mut bytes);
    let written: Value = serde_json::from_slice(&bytes).unwrap();
    expect![[r#"
        [{"fields":{"price":0.0},"id":1},{"fields":{},"id":2},{"fields":{"price":2.0},"id":3}]
        [{"detail":"`price` of `item:2` is \"abc\", not a finite number","fallback":"null","node":"items","reason":"malformed","rows":1,"waited_us":0}]"#]].assert_eq(&format!("{}\n{}", written["candidates"], written["ledger"]));
}
