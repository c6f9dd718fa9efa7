//! Errors about timeouts, fallbacks and ranges at load.

use std::path::Path;
use std::sync::Arc;

use anabranch_plan::source::{Memory, MemoryData, Source};
use anabranch_plan::{Config, Engine, Error};
use anabranch_testkit::{Sim, thread_cpu_time};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::naive::world::registries;

/// A viewer whose follows are looked up, scored and boosted: `v`, `f`, `l`, `s`, `b`, and these nodes; the last is the
/// output.
fn document(guards: &[(&str, Value)], more: &Value) -> Value {
    let mut nodes = json!([
        {"node_id": "v", "op": "core::viewer", "inputs": [], "params": {"endpoint": "ep_0001"}},
        {"node_id": "f", "op": "core::follow", "inputs": ["v"], "params": {"endpoint": "ep_0001", "fanout": 9}},
        {"node_id": "l", "op": "core::lookup", "inputs": ["f"],
         "params": {"endpoint": "ep_0001", "key": "user:{id}", "fields": ["title", "sure"]}},
        {"node_id": "s", "op": "core::vm", "inputs": ["l"], "params": {"out_key": 2001, "expr_id": "e"}},
        {"node_id": "b", "op": "core::vm", "inputs": ["s"], "params": {"out_key": 2001, "expr_id": "more"}},
    ]);
    let list = nodes.as_array_mut().unwrap();
    list.extend(more.as_array().unwrap().clone());
    for (id, guard) in guards {
        let node = list.iter_mut().find(|node| node["node_id"] == *id).unwrap();
        node.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
    }
    let last = list.last().unwrap()["node_id"].clone();
    let id = json!({"op": "key_ref", "key": "id"});
    let score = json!({"op": "key_ref", "key": "score"});
    json!({
        "schema_version": 1, "plan_name": "guarded", "nodes": nodes, "outputs": [last],
        "expr_table": {"e": id, "more": {"op": "add", "a": score, "b": score}},
        "pred_table": {"p": {"op": "cmp", "a": {"op": "param_ref", "param": "cap"}, "cmp": ">",
                             "b": {"op": "const_number", "value": 1}}},
    })
}

fn errors(document: &Value) -> String {
    errors_of(&document.to_string())
}

fn errors_of(text: &str) -> String {
    let sim = Sim::new(1);
    let data = Arc::new(MemoryData::from_json("data", "{}").unwrap());
    let source = Arc::new(Memory::new("ep_0001", data, sim.clock())) as Arc<dyn Source>;
    let config = Config::new(registries(), vec![Arc::clone(&source), source]);
    let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
    match engine.compile(text, Path::new(".")) {
        Ok(plan) => match plan.warnings().iter().find(|warning| warning.place.starts_with("node")) {
            Some(warning) => format!("fine, but {warning}"),
            None => "fine".to_owned(),
        },
        Err(Error::Plan(problems)) => {
            problems.errors.iter().map(|error| error.to_string()).collect::<Vec<_>>().join("\n")
        }
        Err(error) => panic!("{error}"),
    }
}

/// The errors of each of these guards on a node.
fn check(node: &str, guards: &[Value], expected: Expect) {
    let said = |guard: &Value| errors(&document(&[(node, guard.clone())], &json!([])));
    expected.assert_eq(&guards.iter().map(said).collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_a_guard_may_say() {
    let fine = [
        json!({"fallback": "fail"}),
        json!({"timeout_ms": 3_600_000, "fallback": null}),
        json!({"fallback": [{"stale": {"max_age_ms": 5}}, {"node": "f"}, "pass"]}),
        json!({"fallback": {"default": {"title": "?"}}, "range": {"sure": [0, 1]}}),
    ];
    check(
        "l",
        &fine,
        expect![[r#"
            fine
            fine
            fine
            fine"#]],
    );
    check("v", &[json!({"fallback": "pass"})], expect!["fine"]);
    check("b", &[json!({"fallback": "pass", "range": {"score": [0, 9]}})], expect!["fine"]);
}

#[test]
fn words_and_numbers() {
    let wrong = [
        json!({"timeout_ms": 0}),
        json!({"timeout_ms": 1.5}),
        json!({"timeout_ms": "soon", "fallback": "nothing"}),
        json!({"fallback": []}),
        json!({"fallback": ["fail"]}),
        json!({"fallback": ["empty", "pass"]}),
        json!({"fallback": [{"node": "f"}, {"node": "f"}]}),
        json!({"fallback": {"node": "g"}}),
        json!({"fallback": {"stale": {"max_age_ms": 0, "min_age_ms": 1}}}),
        json!({"fallback": {"stale": {}}}),
        json!({"fallback": {"default": {"title": 5, "titel": "?"}}}),
        json!({"range": {"sure": [1, 0], "title": [0, 1], "sur": [0, 1]}}),
    ];
    check(
        "l",
        &wrong,
        expect![[r#"
        node `l` (core::lookup), timeout_ms: must be a whole number of milliseconds from 1 to 3600000, not 0
        node `l` (core::lookup), timeout_ms: must be a whole number of milliseconds from 1 to 3600000, not 1.5
        node `l` (core::lookup), timeout_ms: must be a whole number of milliseconds from 1 to 3600000, not the string `soon`
        node `l` (core::lookup), fallback: must be `fail`, `empty`, `pass`, {"default": {key: value}}, {"stale": {"max_age_ms": n}} or {"node": id}, not the string `nothing`
        node `l` (core::lookup), fallback: a list has 1 to 4, not 0
        node `l` (core::lookup), fallback[0]: `fail` is what happens anyway; it stands alone or not at all
        node `l` (core::lookup), fallback[1]: the one before it cannot fail: it is never used
        node `l` (core::lookup), fallback: only one of them can be a node; that node may have fallbacks of its own
        node `l` (core::lookup), fallback: there is no node `g`
        node `l` (core::lookup), fallback, max_age_ms: must be from 1 to 604800000
        node `l` (core::lookup), fallback, min_age_ms: there is no such field (did you mean `max_age_ms`?)
        node `l` (core::lookup), fallback, max_age_ms: is missing; it must be a whole number
        node `l` (core::lookup), fallback: there is no key `titel` (did you mean `title`?)
        node `l` (core::lookup), fallback: `title` is string, and 5 is not
        node `l` (core::lookup), range: there is no key `sur` (did you mean `sure`?)
        node `l` (core::lookup), range: `sure` must be [least, most], two numbers, not a list
        node `l` (core::lookup), range: `title` has no numbers"#]],
    );
}

#[test]
fn what_cannot_stand_in() {
    check(
        "f",
        &[
            json!({"fallback": "pass"}),
            json!({"fallback": [{"node": "v"}, "pass"]}),
            json!({"fallback": [{"node": "v"}, {"stale": {"max_age_ms": 5}}]}),
            json!({"fallback": {"node": "l"}}),
            json!({"fallback": {"node": "f"}}),
        ],
        expect![[r#"
            node `f` (core::follow), fallback: `pass` needs rows that were there before, and this node makes its own (`empty`, `stale` or another node can stand in for it)
            node `f`, fallback: `pass` needs rows that were there before, and this node makes its own (`empty`, `stale` or another node can stand in for it)
            node `f`, fallback: only nodes that read from a source have stale values (put `stale` on the nodes that read, before any other node)
            node `f` (core::follow), fallback: node `l` needs this node itself
            node `f` (core::follow), fallback: node `f` needs this node itself"#]],
    );
    check(
        "s",
        &[
            json!({"fallback": {"stale": {"max_age_ms": 5}}}),
            json!({"fallback": {"default": {"likes": 5}}}),
            json!({"fallback": {"default": {"title": "?"}}}),
            json!({"fallback": "pass", "range": {"score": [0, 1]}}),
            json!({"fallback": {"default": {"score": 2}}, "range": {"score": [0, 1], "likes": [0, 1]}}),
            json!({"fallback": {"node": "l"}, "range": {"score": [0, 1]}}),
        ],
        expect![[r#"
            node `s` (core::vm), fallback: only nodes that read from a source have stale values (put `stale` on the nodes that read, before any other node)
            node `s` (core::vm), fallback: the node makes no column `likes`
            node `s` (core::vm), fallback: `title` is in the rows that it was given, so it needs no default
            node `s` (core::vm), fallback: `score` would have no value, and rows without it do not compare with the others ({"default": {key: value}} gives it one)
            node `s` (core::vm), range: the node's rows have no column `likes`
            node `s` (core::vm), fallback: the default 2 of `score` is not in its range, 0 to 1 (rows with it would not compare with the others)
            node `s`, fallback: nothing says that `score` of node `l` is in 0 to 1 (declare a `range` there that lies within this one)"#]],
    );
}

#[test]
fn regions() {
    let region = |guard: Value, input: &str| {
        let mut node = json!({"node_id": "r", "op": "core::timeout", "inputs": [input]});
        node.as_object_mut().unwrap().extend(guard.as_object().unwrap().clone());
        node
    };
    let both = json!({"node_id": "both", "op": "core::concat", "inputs": ["r"], "params": {"rhs": "s"}});
    let either = json!({"node_id": "either", "op": "core::if", "inputs": ["l"],
                        "params": {"pred_id": "p", "then": "s", "else": "l"}});
    let mut chosen = either.clone();
    chosen["fallback"] = json!("pass");
    let plans = [
        json!([region(json!({}), "b")]),
        json!([region(json!({"fallback": "empty"}), "s"), both]),
        json!([region(json!({"fallback": {"node": "f"}, "timeout_ms": 5}), "b")]),
        json!([region(json!({"fallback": "pass", "range": {"score": [0, 1]}}), "b")]),
        json!([region(json!({"fallback": "pass"}), "b")]),
        json!([either, region(json!({"fallback": "pass"}), "either")]),
        json!([chosen]),
    ];
    let said = plans.map(|more| errors(&document(&[], &more)));
    expect![[r#"
        node `r` (core::timeout), timeout_ms: a region without a `timeout_ms` and a `fallback` does nothing
        node `r` (core::timeout), inputs: node `s` is also read by others, or an output: it cannot be given up for this one (let them all read this node, or put `timeout_ms` and `fallback` on the node itself)
        fine
        node `r` (core::timeout), fallback: `pass` needs rows that were there before, and this node makes its own (`empty`, `stale` or another node can stand in for it)
        node `r` (core::timeout), fallback: `pass` needs rows that were there before, and this node makes its own (`empty`, `stale` or another node can stand in for it)
        node `r` (core::timeout), fallback: `pass` needs rows that were there before, and this node makes its own (`empty`, `stale` or another node can stand in for it)
        node `either` (core::if), fallback: `pass` needs rows that were there before, and this node makes its own (`empty`, `stale` or another node can stand in for it)"#]].assert_eq(&said.join("\n"));
}

#[test]
fn a_stand_in_may_have_one_of_its_own_wherever_it_is_written() {
    let cheap = json!([{"node_id": "cheap", "op": "core::follow", "inputs": ["v"],
                        "params": {"endpoint": "ep_0001", "fanout": 2}, "fallback": {"node": "cheaper"}},
                       {"node_id": "cheaper", "op": "core::follow", "inputs": ["v"],
                        "params": {"endpoint": "ep_0001", "fanout": 1}}]);
    let mut text = document(&[("f", json!({"fallback": {"node": "cheap"}}))], &cheap);
    text["outputs"] = json!(["b"]);
    assert_eq!(errors(&text), "fine");
    text["nodes"].as_array_mut().unwrap().reverse();
    assert_eq!(errors(&text), "fine");
}

#[test]
fn what_may_be_given_up_is_not_equal_to_what_may_not() {
    let again = json!([{"node_id": "again", "op": "core::follow", "inputs": ["v"],
                        "params": {"endpoint": "ep_0001", "fanout": 9}},
                       {"node_id": "other", "op": "core::follow", "inputs": ["v"],
                        "params": {"endpoint": "ep_0001", "fanout": 3}}]);
    let mut text = document(&[("f", json!({"fallback": {"node": "other"}}))], &again);
    text["outputs"] = json!(["b", "again"]);
    assert_eq!(errors(&text), "fine");
}

/// Loading takes time in proportion to the plan, however many nodes fall back to others.
#[test]
fn loading_is_linear_in_fallbacks() {
    let load = |count: usize| {
        let mut nodes = vec![json!({"node_id": "n0", "op": "core::candidates", "inputs": []})];
        for at in 1..count {
            let input = format!("n{}", at - 1);
            nodes.push(json!({"node_id": format!("n{at}"), "op": "core::take", "inputs": [input],
                              "params": {"count": 1 + at % 100}, "timeout_ms": 10, "fallback": {"node": "n0"}}));
        }
        let last = format!("n{}", count - 1);
        let text = json!({"schema_version": 1, "plan_name": "long", "nodes": nodes, "outputs": [last]});
        let text = text.to_string();
        let took = || {
            let start = thread_cpu_time();
            assert_eq!(errors_of(&text), "fine");
            thread_cpu_time() - start
        };
        (0..3).map(|_| took()).min().unwrap()
    };
    let (short, long) = (load(500), load(5_000));
    assert!(long < 40 * short, "ten times the nodes took {long:?}, not about ten times {short:?}");
}
