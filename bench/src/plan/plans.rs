//! The plans that are measured, written for the occasion, and the registries they stand on.

#![allow(clippy::needless_pass_by_value, reason = "pieces of JSON read best one inside the other")]

use serde_json::{Value, json};

/// The keys and parameters that the plans name.
pub(super) const KEYS: &str = r#"
[[key]]
key_id = 1
name = "id"
type = "int"
nullable = false
allow_write = false

[[key]]
key_id = 2001
name = "final_score"
type = "float"
nullable = false
default = 0.0

[[key]]
key_id = 3001
name = "country"
type = "string"
nullable = true
"#;

pub(super) const PARAMS: &str = r#"
[[param]]
param_id = 1
name = "media_age_penalty_weight"
type = "float"
nullable = false
"#;

/// One endpoint. Its timeouts are generous: a neighbour's load must not end a measurement.
pub(super) fn endpoints(port: u16) -> String {
    format!(
        "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\n\
        [endpoint.resolver]\ntype = \"static\"\nhost = \"127.0.0.1\"\nport = {port}\n\
        [endpoint.policy]\nmax_inflight = 64\nconnect_timeout_ms = 1000\nrequest_timeout_ms = 10000\n"
    )
}

/// The key that the expressions write.
pub(super) const SCORE: u32 = 2001;
pub(super) const COUNTRY: u32 = 3001;

/// Rows that an answer keeps.
pub(super) const KEPT: usize = 50;
/// What a score is without the parameter: the id times this.
pub(super) const WEIGHT: f64 = 0.2;

/// Ten nodes: two fan-outs of `fanout` users each, the media of all of them, scored, the best [`KEPT`].
pub(super) fn feed(fanout: usize) -> String {
    let plan = [
        node("v", "core::viewer", &[], json!({"endpoint": "ep_0001"})),
        node("f", "core::follow", &["v"], json!({"endpoint": "ep_0001", "fanout": fanout})),
        node("r", "core::recommendation", &["v"], json!({"endpoint": "ep_0001", "fanout": fanout})),
        node("mf", "core::media", &["f"], json!({"endpoint": "ep_0001", "fanout": 10})),
        node("mr", "core::media", &["r"], json!({"endpoint": "ep_0001", "fanout": 10})),
        node("vf", "core::vm", &["mf"], json!({"out_key": SCORE, "expr_id": "score"})),
        node("vr", "core::vm", &["mr"], json!({"out_key": SCORE, "expr_id": "score"})),
        node("c", "core::concat", &["vf"], json!({"rhs": "vr"})),
        node("s", "core::sort", &["c"], json!({"by": SCORE, "order": "desc"})),
        node("t", "core::take", &["s"], json!({"count": KEPT})),
    ];
    text(&format!("feed_{fanout}"), &plan, &["t"], json!({"score": score()}), json!({}))
}

/// The users that one follows, with their country; the first [`KEPT`].
pub(super) fn follow(fanout: usize) -> String {
    let plan = [
        node("n0", "core::viewer", &[], json!({"endpoint": "ep_0001"})),
        node("n1", "core::follow", &["n0"], json!({"endpoint": "ep_0001", "fanout": fanout})),
        node("n2", "core::take", &["n1"], json!({"count": KEPT})),
    ];
    text(&format!("follow_{fanout}"), &plan, &["n2"], json!({}), json!({}))
}

/// Rows made up on the spot, scored, filtered, sorted; the best [`KEPT`].
pub(super) fn cpu_pipeline(rows: usize) -> String {
    let plan = [
        node("n0", "test::fixed_source", &[], json!({"row_count": rows})),
        node("n1", "core::vm", &["n0"], json!({"out_key": SCORE, "expr_id": "score"})),
        node("n2", "core::filter", &["n1"], json!({"pred_id": "good"})),
        node("n3", "core::sort", &["n2"], json!({"by": SCORE, "order": "desc"})),
        node("n4", "core::take", &["n3"], json!({"count": KEPT})),
    ];
    let good = compare(">=", key(SCORE), number(0.6));
    text(&format!("cpu_pipeline_{rows}"), &plan, &["n4"], json!({"score": score()}), json!({"good": good}))
}

/// The ids that `cpu_expr` lets through whatever their score.
pub(super) const LISTED: [i64; 7] = [1, 2, 3, 5, 8, 13, 21];

/// A larger expression and a larger predicate; all rows that pass.
pub(super) fn cpu_expr(rows: usize) -> String {
    let plan = [
        node("n0", "test::fixed_source", &[], json!({"row_count": rows})),
        node("n1", "core::vm", &["n0"], json!({"out_key": SCORE, "expr_id": "e"})),
        node("n2", "core::filter", &["n1"], json!({"pred_id": "p"})),
    ];
    let minus_next = json!({"op": "neg", "x": binary("add", key(1), number(3.0))});
    let e = binary(
        "add",
        binary("mul", key(1), number(0.5)),
        binary("sub", binary("mul", key(1), weight()), minus_next),
    );
    let listed = json!({"op": "in", "lhs": key(1), "list": LISTED});
    let p = binary(
        "and",
        binary("or", compare(">", key(SCORE), number(100.0)), listed),
        json!({"op": "not", "x": compare("==", key(SCORE), number(7.0))}),
    );
    text(&format!("cpu_expr_{rows}"), &plan, &["n2"], json!({"e": e}), json!({"p": p}))
}

/// A hundred nodes in a row, on one row.
pub(super) fn chain(op: ChainOp) -> String {
    let mut plan = vec![node("s", "test::fixed_source", &[], json!({"row_count": 1}))];
    for number in 0..100 {
        let before = if number == 0 { "s".to_owned() } else { format!("t{}", number - 1) };
        plan.push(op.node(&format!("t{number}"), &before));
    }
    text(op.name(), &plan, &["t99"], json!({}), json!({}))
}

/// What the nodes of a chain do: next to nothing, at once or after the executor has had a turn.
#[derive(Clone, Copy)]
pub(super) enum ChainOp {
    Take,
    Later,
}

impl ChainOp {
    fn name(self) -> &'static str {
        match self {
            ChainOp::Take => "chain_100",
            ChainOp::Later => "chain_async_100",
        }
    }

    fn node(self, id: &str, input: &str) -> Value {
        match self {
            ChainOp::Take => node(id, "core::take", &[input], json!({"count": 1})),
            ChainOp::Later => node(id, "bench::later", &[input], json!({})),
        }
    }
}

/// A hundred nodes beside each other, each an output. No two are equal, so that the planner merges none.
pub(super) fn wide() -> String {
    let ids: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let mut plan = vec![node("s", "test::fixed_source", &[], json!({"row_count": 1}))];
    let take = |(number, id): (usize, &String)| node(id, "core::take", &["s"], json!({"count": number + 1}));
    plan.extend(ids.iter().enumerate().map(take));
    let outputs: Vec<&str> = ids.iter().map(String::as_str).collect();
    text("wide_100", &plan, &outputs, json!({}), json!({}))
}

/// So many rows, of them the best ten if `top`, and then five columns written to what is left.
pub(super) fn funnel(rows: usize, top: bool, columns: usize) -> String {
    let mut plan = vec![node("s", "test::fixed_source", &[], json!({"row_count": rows}))];
    let mut last = "s".to_owned();
    if top {
        plan.push(node("t", "core::topk", &["s"], json!({"by": 1, "count": 10})));
        last = "t".to_owned();
    }
    let mut exprs = serde_json::Map::new();
    for number in 0..columns {
        let (id, from) = (format!("v{number}"), if number == 0 { 1 } else { SCORE });
        exprs.insert(id.clone(), binary("add", key(from), json!({"op": "const_number", "value": 0.5})));
        plan.push(node(&id, "core::vm", &[&last], json!({"out_key": SCORE, "expr_id": id})));
        last = id;
    }
    text(&format!("funnel_{rows}"), &plan, &[&last], exprs.into(), json!({}))
}

/// The plan with every read remembered, to stand in for one that fails.
pub(super) fn remembering(text: &str) -> String {
    let mut plan: Value = serde_json::from_str(text).expect("the bench's plans are JSON");
    for node in plan["nodes"].as_array_mut().expect("a plan has nodes") {
        if node["params"].get("endpoint").is_some() && !node["inputs"].as_array().is_none_or(Vec::is_empty) {
            node["fallback"] = json!({"stale": {"max_age_ms": 60_000}});
        }
    }
    plan.to_string()
}

/// Six nodes, as a small service would have them.
pub(super) fn reels() -> String {
    let plan = [
        node("n0", "core::viewer", &[], json!({"endpoint": "ep_0001"})),
        node("n1", "core::follow", &["n0"], json!({"endpoint": "ep_0001", "fanout": 10, "trace": "src"})),
        node("n2", "core::vm", &["n1"], json!({"out_key": SCORE, "expr_id": "score"})),
        node("n3", "core::filter", &["n2"], json!({"pred_id": "good"})),
        node("n4", "core::vm", &["n3"], json!({"out_key": SCORE, "expr_id": "same"})),
        node("n5", "core::take", &["n4"], json!({"count": 5})),
    ];
    let exprs = json!({"score": score(), "same": key(SCORE)});
    let good = compare(">=", key(SCORE), number(0.6));
    text("reels_plan_a", &plan, &["n5"], exprs, json!({"good": good}))
}

/// Two fan-outs of four, one after the other.
pub(super) fn concat() -> String {
    let plan = [
        node("n0", "core::viewer", &[], json!({"endpoint": "ep_0001"})),
        node("n1", "core::follow", &["n0"], json!({"endpoint": "ep_0001", "fanout": 4})),
        node("n2", "core::recommendation", &["n0"], json!({"endpoint": "ep_0001", "fanout": 4})),
        node("n3", "core::concat", &["n1"], json!({"rhs": "n2"})),
        node("n4", "core::take", &["n3"], json!({"count": 8})),
    ];
    text("concat_plan", &plan, &["n4"], json!({}), json!({}))
}

pub(super) fn text(name: &str, nodes: &[Value], outputs: &[&str], exprs: Value, preds: Value) -> String {
    let plan = json!({
        "schema_version": 1,
        "plan_name": name,
        "nodes": nodes,
        "outputs": outputs,
        "expr_table": exprs,
        "pred_table": preds,
    });
    plan.to_string()
}

pub(super) fn node(id: &str, op: &str, inputs: &[&str], params: Value) -> Value {
    json!({"node_id": id, "op": op, "inputs": inputs, "params": params})
}

/// `id * coalesce(weight, 0.2)`.
fn score() -> Value {
    binary("mul", key(1), weight())
}

fn weight() -> Value {
    binary("coalesce", json!({"op": "param_ref", "param_id": 1}), number(WEIGHT))
}

fn binary(op: &str, a: Value, b: Value) -> Value {
    json!({"op": op, "a": a, "b": b})
}

fn compare(how: &str, a: Value, b: Value) -> Value {
    json!({"op": "cmp", "cmp": how, "a": a, "b": b})
}

fn key(id: u32) -> Value {
    json!({"op": "key_ref", "key_id": id})
}

fn number(value: f64) -> Value {
    json!({"op": "const_number", "value": value})
}
