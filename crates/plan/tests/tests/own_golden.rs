//! Plans with their requests and answers, one per op and shape, over rows in memory.
//!
//! `tests/fixtures/golden` has `NAME.plan.json` and `NAME.answers.json`, a list of requests with what each is answered:
//! the rows of each output by its name, and the nodes that something stands in for. `UPDATE_EXPECT=1` writes the answers
//! anew; they are read before they are kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anabranch_plan::op::Ops;
use anabranch_plan::project::DataFile;
use anabranch_plan::{Answer, Engine, Request, RowsFrom, Setup};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden")
}

fn engine() -> Engine {
    let folder = folder();
    let setup = Setup {
        registry: Some(folder.join("registry")),
        plans: Some(folder.clone()),
        rows: RowsFrom::Data(vec![DataFile { file: folder.join("data.json"), pattern: None }]),
        test_ops: true,
        ..Setup::default()
    };
    Engine::load(setup.config().unwrap().0).unwrap()
}

/// The names of all plans.
fn names() -> Vec<String> {
    let files =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.strip_suffix(".plan.json")?.to_owned())).collect();
    names.sort();
    names
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

fn shown(answer: &Answer, engine: &Engine) -> Value {
    let mut bytes = Vec::new();
    answer.write_json_by_output(&engine.registries().keys, &mut bytes);
    let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
    let stand_ins = answer["ledger"].as_array().unwrap().iter();
    let stand_ins: Vec<Value> =
        stand_ins.map(|entry| json!({"node": entry["node"], "fallback": entry["fallback"]})).collect();
    json!({"outputs": answer["outputs"].take(), "stand_ins": stand_ins})
}

#[tokio::test]
async fn answers_are_as_they_were() {
    let engine = engine();
    for name in names() {
        let file = folder().join(format!("{name}.answers.json"));
        let cases = read(&file);
        let plan = engine.plan(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut found = Vec::new();
        for case in cases.as_array().unwrap() {
            let request = Request::parse(case["request"].to_string(), engine.registries())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let answer = plan.run(request).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            found.push(json!({"request": case["request"], "answer": shown(&answer, &engine)}));
        }
        let found = Value::Array(found);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, format!("{found:#}\n")).unwrap();
            continue;
        }
        assert_eq!(cases, found, "{name}");
    }
}

#[test]
fn every_op_has_a_plan() {
    let mut used = BTreeSet::new();
    for name in names() {
        let plan = read(&folder().join(format!("{name}.plan.json")));
        let nodes = plan["nodes"].as_array().unwrap();
        used.extend(nodes.iter().map(|node| node["op"].as_str().unwrap().to_owned()));
    }
    let ops = Ops::builtin();
    let missing: Vec<&str> =
        ops.iter().map(|op| op.spec().name).filter(|name| !used.contains(*name)).collect();
    assert!(missing.is_empty(), "ops without a plan in tests/fixtures/golden: {missing:?}");
}

/// A plan that lists no request would test nothing.
#[test]
fn every_plan_has_requests() {
    for name in names() {
        let cases = read(&folder().join(format!("{name}.answers.json")));
        assert!(cases.as_array().is_some_and(|cases| !cases.is_empty()), "{name}");
    }
}
