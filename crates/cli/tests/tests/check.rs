//! `plan check`, `plan list`, `plan info`, `plan ops`.

use expect_test::expect;

use crate::binary::{anabranch, examples, in_folder, scratch};

#[test]
fn the_examples_are_fine() {
    expect![[r#"
        plan             status  nodes  trips
        ---------------  ------  -----  -----
        complex_dag      fine       10      4
        diamond          fine        4      4
        feed             fine       17      6
        home             fine        7      3
        mixed_pipeline   fine        6      2
        new_faces        fine        9      5
        parallel_fanout  fine        3      4
        simple_viewer    fine        1      1
        trending         fine        7      3
        viewer_filter    fine        2      1
        exit 0
    "#]]
    .assert_eq(&in_folder(&examples(), &["plan", "list"], "").shown());
    let said = in_folder(&examples(), &["plan", "check", "feed", "trending", "new_faces", "home"], "");
    expect![[r#"
        stderr: feed: fine
        stderr: trending: fine
        stderr: new_faces: fine
        stderr: home: fine
        exit 0
    "#]]
    .assert_eq(&said.shown());
}

#[test]
fn every_error_has_its_place() {
    let folder = scratch("every_error");
    let file = folder.join("wrong.plan.json");
    let plan = r#"{"schema_version": 1, "plan_name": "wrong", "nodes": [
        {"node_id": "a", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
        {"node_id": "b", "op": "core::folow", "inputs": ["a"], "params": {"endpoint": "ep_0001", "fanout": 3}},
        {"node_id": "c", "op": "core::take", "inputs": ["a"], "params": {"count": 0, "extra": 1}},
        {"node_id": "d", "op": "core::filter", "inputs": ["a"], "params": {"pred_id": "p"}}],
        "outputs": ["c", "d", "e"],
        "pred_table": {"p": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key": "contry"}, "b": {"op": "const_number", "value": 1}}}}"#;
    std::fs::write(&file, plan).unwrap();
    let said = anabranch(&["plan", "check", file.to_str().unwrap()], "");
    expect![[r#"
        stderr: error: FOLDER/wrong.plan.json:3:26: node `b` (core::folow), op: there is no op `core::folow`
        stderr:   3 |         {"node_id": "b", "op": "core::folow", "inputs": ["a"], "params": {"endpoint": "ep_0001", "fa
        stderr:     |                          ^^^^^^^^^^^^^^^^^^^
        stderr:   help: did you mean `core::follow`?
        stderr: error: FOLDER/wrong.plan.json:4:74: node `c` (core::take), count: must be a whole number from 1, not 0
        stderr:   4 | , "inputs": ["a"], "params": {"count": 0, "extra": 1}},
        stderr:     |                               ^^^^^^^^^^
        stderr: error: FOLDER/wrong.plan.json:4:86: node `c` (core::take), extra: core::take has no such parameter
        stderr:   4 | ["a"], "params": {"count": 0, "extra": 1}},
        stderr:     |                               ^^^^^^^^^^
        stderr: error: FOLDER/wrong.plan.json:6:9: outputs: there is no node `e`
        stderr:   6 |         "outputs": ["c", "d", "e"],
        stderr:     |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
        stderr: error: FOLDER/wrong.plan.json:7:55: node `d` (core::filter), pred_id `p`.a: there is no key `contry`
        stderr:   7 |         "pred_table": {"p": {"op": "cmp", "cmp": "<", "a": {"op": "key_ref", "key": "contry"}, "b":
        stderr:     |                                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        stderr:   help: did you mean `country`?
        stderr: FOLDER/wrong.plan.json: refused, 5 errors
        exit 1
    "#]]
        .assert_eq(&said.shown_from(&folder));
    assert_eq!(said.stdout, "");
}

#[test]
fn found_problems_as_json() {
    let said = anabranch(&["plan", "check", "feed", "--json"], "");
    expect![[r#"
        [
          {
            "errors": [],
            "plan": "feed",
            "warnings": []
          }
        ]
        exit 0
    "#]]
    .assert_eq(&said.shown());
}

#[test]
fn info_says_what_nodes_write() {
    let said = anabranch(&["plan", "info", "new_faces"], "");
    let info: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let nodes = info["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| format!("{} {} {}", node["node_id"], node["op"], node["writes_eval"]));
    expect![[r#"
        "viewer" "core::viewer" {"keys":[3001],"kind":"Exact"}
        "followed" "core::follow" {"keys":[3001],"kind":"Exact"}
        "suggested" "core::recommendation" {"keys":[3001],"kind":"Exact"}
        "friends" "core::follow" {"keys":[3001],"kind":"Exact"}
        "once" "core::dedupe" {"keys":[],"kind":"Exact"}
        "strangers" "core::join" {"keys":[],"kind":"Exact"}
        "others" "core::join" {"keys":[],"kind":"Exact"}
        "few" "core::take" {"keys":[],"kind":"Exact"}"#]]
    .assert_eq(&nodes.collect::<Vec<_>>().join("\n"));
    assert_eq!((&info["plan_name"], &info["capabilities_digest"]), (&"new_faces".into(), &"".into()));
}

#[test]
fn info_of_a_plan_that_is_not_there() {
    expect![[r#"
        stderr: error: no plan `new_face` in ROOT/examples/plans/plans; did you mean `new_faces`?
        exit 1
    "#]]
    .assert_eq(&anabranch(&["plan", "info", "new_face"], "").shown());
}

#[test]
fn ops_have_parameters_and_docs() {
    expect![[r#"
        core::take (1 input)
          Keeps the first rows, after those that it skips.
            count        int from 1: how many rows to keep
            offset       int from 0, optional: how many rows to skip; 0 if not given

        core::topk (1 input)
          The first rows of those sorted by one or several columns, after those that it skips. Rows that are equal in all columns keep their order; nulls are last either way.
            by           key or list of keys: the column to sort by, or several, each with its order
            count        int from 1: how many rows to keep
            offset       int from 0, optional: how many rows to skip; 0 if not given
            order        one of asc, desc, optional: which way, for columns that do not say; `desc` if not given

        core::timeout (1 input)
          The rows of its input, or what its `fallback` says if the nodes that run for them alone are not done in time.
        exit 0
    "#]]
    .assert_eq(&anabranch(&["plan", "ops", "core::t"], "").shown());
    let said = anabranch(&["plan", "ops", "--json"], "");
    let ops: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let ops: Vec<&str> = ops.as_array().unwrap().iter().map(|op| op["op"].as_str().unwrap()).collect();
    expect!["core::candidates core::viewer core::follow core::recommendation core::media core::lookup core::fanout core::vm core::filter core::sort core::take core::select core::concat core::topk core::union core::dedupe core::group_limit core::join core::model core::boost core::fill core::if core::timeout test::sleep test::fixed_source test::busy_cpu"].assert_eq(&ops.join(" "));
}

#[test]
fn a_folder_without_plans() {
    let folder = scratch("no_plans");
    let said = anabranch(&["plan", "list", "--plans", folder.to_str().unwrap()], "");
    expect![[r#"
        plan  status  nodes  trips
        ----  ------  -----  -----
        stderr: no plan in FOLDER (`anabranch plan new NAME` makes one)
        exit 0
    "#]]
    .assert_eq(&said.shown_from(&folder));
}
