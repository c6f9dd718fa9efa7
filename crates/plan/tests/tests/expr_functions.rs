//! Functions and lists of requests, one example each.

use std::path::Path;
use std::sync::Arc;

use anabranch_content::{Config as StoreConfig, Store};
use anabranch_engine::Check;
use anabranch_plan::{Config, Engine, List, Registries, Request, RunOptions, Scalar, Values};
use anabranch_plan_inspect::capture::{Replayer, run_recorded};
use anabranch_rows::Kind;
use expect_test::expect;
use serde_json::{Value, json};

use crate::expr_world::{cell, filter, no_params, program, registries, rows};

fn values(json: Value, params: &Values) -> Vec<Option<Scalar>> {
    let program = program(&json).unwrap_or_else(|problems| panic!("{problems}"));
    let rows = rows();
    let column = program.column(&rows, params, program.kind().unwrap(), &Check::never()).unwrap();
    (0..rows.len()).map(|row| cell(&column, row)).collect()
}

fn passing(json: Value, params: &Values) -> Vec<u32> {
    let filter = filter(&json).unwrap_or_else(|problems| panic!("{problems}"));
    filter.select(&rows(), params, &Check::never()).unwrap().to_vec()
}

fn errors(json: Value) -> String {
    filter(&json).expect_err("it is wrong").to_string()
}

#[test]
fn rounding() {
    let score = json!({"op": "key_ref", "key": "score"});
    let of = |op: &str| {
        let values = values(
            json!({"op": op, "x": {"op": "mul", "a": score, "b": {"op": "const_number", "value": 5}}}),
            &no_params(),
        );
        [values[0].clone(), values[1].clone(), values[3].clone()]
    };
    let floats = |a: f64, b: f64| [Some(Scalar::Float(a)), None, Some(Scalar::Float(b))];
    assert_eq!(of("floor"), floats(2.0, -10.0));
    assert_eq!(of("ceil"), floats(3.0, -10.0));
    assert_eq!(of("round"), floats(3.0, -10.0));
    let seven = json!({"op": "const_number", "value": -7});
    let rest = |by: i64| {
        values(json!({"op": "mod", "a": seven, "b": {"op": "const_number", "value": by}}), &no_params())
    };
    let modulo = |by: i64| {
        program(&json!({"op": "mod", "a": seven, "b": {"op": "const_number", "value": by}})).unwrap()
    };
    assert_eq!(rest(3)[0], Some(Scalar::Float(-1.0)));
    assert_eq!(modulo(0).kind(), None, "null for all rows");
}

#[test]
fn length_counts_characters() {
    let lengths = values(json!({"op": "length", "x": {"op": "key_ref", "key": "title"}}), &no_params());
    assert_eq!(lengths, [Some(Scalar::Int(6)), None, Some(Scalar::Int(0)), Some(Scalar::Int(2))]);
}

/// These numbers decide who is in which experiment: they must never change.
#[test]
fn hashes_are_the_same_for_ever() {
    let of = |key: &str| {
        values(json!({"op": "hash", "seed": 7, "x": {"op": "key_ref", "key": key}}), &no_params())
    };
    expect![[r#"
        [Some(Int(2420754408560169)), Some(Int(5680672438791086)), Some(Int(5627919913084876)), Some(Int(60870795451300))]
        [Some(Int(3680085782256107)), None, Some(Int(5275509637112136)), Some(Int(5472668026416155))]"#]]
    .assert_eq(&format!("{:?}\n{:?}", of("id"), of("title")));
    assert_eq!(of("weight")[1], of("id")[1], "2.0 and 2 are equal");
}

#[test]
fn now_is_the_same_for_a_whole_request() {
    let mut params = no_params();
    params.set_now(1_700_000_000.5);
    assert_eq!(values(json!({"op": "now"}), &params)[3], Some(Scalar::Float(1_700_000_000.5)));
    let params = no_params();
    let copy = params.clone();
    assert_eq!(params.known_now(), None);
    let first = values(json!({"op": "now"}), &params)[0].clone();
    assert_eq!(values(json!({"op": "now"}), &copy)[0], first);
    assert!(copy.known_now().is_some_and(|now| now > 1_700_000_000.0));
}

#[test]
fn lists_of_requests() {
    let seen = json!({"op": "in", "lhs": {"op": "key_ref", "key": "id"}, "list": {"op": "param_ref", "param": "seen"}});
    let not_seen = json!({"op": "not", "x": seen});
    let large = (1_i64 << 53) + 1;
    let set = |ints: Vec<i64>| {
        let mut params = no_params();
        params.set_list(5, Some(Arc::new(List::ints(ints))));
        params
    };
    assert_eq!(passing(seen.clone(), &set(vec![large, 1, 1, 99])), [0, 2]);
    assert_eq!(passing(not_seen.clone(), &set(vec![large, 1])), [1, 3]);
    assert_eq!(passing(seen.clone(), &set((1..5_000).collect())), [0, 1]);
    assert_eq!(passing(seen.clone(), &set(Vec::new())), [0_u32; 0]);
    assert_eq!(passing(seen, &no_params()), [0_u32; 0], "null");
    assert_eq!(passing(not_seen, &no_params()), [0, 1, 2, 3]);
    let score = json!({"op": "in", "lhs": {"op": "key_ref", "key": "score"}, "list": {"op": "param_ref", "param_id": 6}});
    assert_eq!(passing(score, &set(vec![1 << 53, large, -2])), [2, 3], "exact, also for floats");
    let mut muted = no_params();
    muted.set_list(6, Some(Arc::new(List::texts(vec![Arc::from("us"), Arc::from("FR")]))));
    let country = json!({"op": "in", "lhs": {"op": "key_ref", "key": "country"}, "list": {"op": "param_ref", "param": "muted"}});
    assert_eq!(passing(country, &muted), [2, 3]);
}

#[test]
fn lists_that_are_none() {
    let of = |lhs: &str, list: Value| json!({"op": "in", "lhs": {"op": "key_ref", "key": lhs}, "list": list});
    let param = |name: &str| json!({"op": "param_ref", "param": name});
    let seen = json!({"op": "cmp", "cmp": "==", "a": {"op": "key_ref", "key": "id"}, "b": param("seen")});
    let pattern = json!({"op": "regex", "key": "title", "pattern": {"kind": "param", "param": "muted"}});
    let all = [
        of("title", param("seen")),
        of("id", param("limit")),
        of("id", json!({"op": "now"})),
        of("id", param("sene")),
        seen,
        pattern,
    ];
    expect![[r#"
        p1: a string is looked up in a list of integers
        p1.list: parameter 2 (`limit`) is an int, not a list (lists have the type int_list or string_list in params.toml)
        p1.list: the list of `in` is a JSON list or a `param_ref`, not `now`
        p1.list: there is no parameter `sene` (did you mean `seen`?)
        p1.b: parameter 6 (`seen`) is a list (ask for its items: `x in $seen`)
        p1.pattern: parameter 7 (`muted`) is a list (a pattern is a string)"#]]
    .assert_eq(&all.map(errors).join("\n"));
}

#[test]
fn requests_bring_lists() {
    let parse = |overrides: Value| {
        let text = json!({"user_id": 1, "param_overrides": overrides}).to_string();
        Request::parse(text, registries())
    };
    let request = parse(json!({"seen": [3, 5.0, 3], "muted": ["a"]})).unwrap();
    assert_eq!(**request.params().list(5).unwrap(), List::ints(vec![3, 5, 3]));
    assert_eq!(request.params().list(6).unwrap().kind(), Kind::Text);
    assert_eq!(parse(json!({"seen": null})).unwrap().params().list(5), None);
    let wrong = |overrides: Value| parse(overrides).unwrap_err().detail;
    assert_eq!(
        wrong(json!({"seen": [1, "2"]})),
        "`seen` must be a list of at most 100000 ints of 64 bits or null, not the string `2` as item 2"
    );
    assert_eq!(
        wrong(json!({"seen": 7})),
        "`seen` must be a list of at most 100000 ints of 64 bits or null, not 7"
    );
    assert_eq!(
        wrong(json!({"seen": vec![1; 100_001]})),
        "`seen` must be a list of at most 100000 ints of 64 bits or null, not a list of 100001"
    );
    assert_eq!(wrong(json!({"limit": [1]})), "`limit` must be an int of 64 bits or null, not a list");
}

/// A replay computes the same, although the clock has gone on.
#[test]
fn captures_keep_the_time_and_the_lists_of_a_request() {
    let keys = r#"key = [{ key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
        { key_id = 2, name = "at", type = "float", nullable = true }]"#;
    let params = r#"param = [{ param_id = 1, name = "seen", type = "int_list", nullable = true }]"#;
    let (registries, _) = Registries::parse([("keys.toml", keys), ("params.toml", params)], None).unwrap();
    let engine = Engine::load(Config::new(registries, Vec::new())).unwrap();
    let plan = json!({
        "schema_version": 1, "plan_name": "test", "outputs": ["timed"],
        "nodes": [
            {"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
            {"node_id": "unseen", "op": "core::filter", "inputs": ["rows"], "params": {"pred_id": "unseen"}},
            {"node_id": "timed", "op": "core::vm", "inputs": ["unseen"], "params": {"out_key": 2, "expr_id": "now"}},
        ],
        "expr_table": {"now": {"op": "now"}},
        "pred_table": {"unseen": {"op": "not", "x": {"op": "in", "lhs": {"op": "key_ref", "key_id": 1},
            "list": {"op": "param_ref", "param_id": 1}}}},
    });
    let plan = engine.compile(&plan.to_string(), Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    let request = json!({"user_id": 1, "request_id": "r", "param_overrides": {"seen": [2]}});
    let request = Request::parse(request.to_string(), engine.registries()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (answer, taken) = run_recorded(&plan, request, &RunOptions::default(), 1 << 20).await;
        let answer = answer.unwrap();
        assert_eq!(answer.outputs[0].ids().collect::<Vec<_>>(), [1, 3]);
        let store = Store::in_memory(StoreConfig::default()).unwrap();
        let address = taken.unwrap().write(&store, None).await.unwrap();
        let replayed = Replayer::default().replay_from(&store, address).await.unwrap();
        assert!(replayed.same, "{}", String::from_utf8_lossy(&replayed.bytes));
    });
}
