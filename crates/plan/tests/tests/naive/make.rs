//! Random plans that pass the checks.

use anabranch_testkit::Rng;
use serde_json::{Value, json};

/// A node made so far, and the columns of its rows.
struct Made {
    id: String,
    keys: Vec<u64>,
}

pub(super) struct Maker<'a> {
    rng: &'a mut Rng,
    nodes: Vec<Value>,
    made: Vec<Made>,
    exprs: Vec<Value>,
    preds: Vec<Value>,
}

const COUNTRY: u64 = 3001;

pub(super) fn plan(rng: &mut Rng) -> Value {
    let mut maker = Maker { rng, nodes: Vec::new(), made: Vec::new(), exprs: Vec::new(), preds: Vec::new() };
    maker.source();
    for _ in 0..maker.rng.within(1..14) {
        maker.node();
    }
    let outputs: Vec<String> = (0..maker.rng.within(1..4)).map(|_| maker.any().id.clone()).collect();
    let table = |prefix: &str, entries: Vec<Value>| -> Value {
        entries.into_iter().enumerate().map(|(at, entry)| (format!("{prefix}{at}"), entry)).collect()
    };
    json!({
        "schema_version": 1,
        "plan_name": "random",
        "nodes": maker.nodes,
        "outputs": outputs,
        "expr_table": table("e", maker.exprs),
        "pred_table": table("p", maker.preds),
    })
}

impl Maker<'_> {
    fn add(&mut self, op: &str, inputs: &[&str], params: Value, keys: Vec<u64>) {
        let id = format!("n{}", self.nodes.len());
        self.nodes.push(json!({"node_id": id, "op": op, "inputs": inputs, "params": params}));
        self.made.push(Made { id, keys });
    }

    /// Mostly one of the last.
    fn any(&mut self) -> &Made {
        let count = self.made.len() as u64;
        let at = if self.rng.percent(70) { count - 1 } else { self.rng.within(0..count) };
        &self.made[at as usize]
    }

    fn pick(&mut self) -> (String, Vec<u64>) {
        let Made { id, keys } = self.any();
        (id.clone(), keys.clone())
    }

    fn source(&mut self) {
        if self.rng.percent(70) {
            self.add("core::viewer", &[], json!({"endpoint": "ep_0001"}), vec![COUNTRY]);
        } else {
            let params = json!({"row_count": self.rng.within(1..20)});
            self.add("test::fixed_source", &[], params, vec![]);
        }
    }

    fn node(&mut self) {
        let (input, mut keys) = self.pick();
        let inputs = [input.as_str()];
        let count = self.rng.within(1..12);
        match self.rng.within(0..20) {
            0 => self.source(),
            1..=4 => {
                let (op, keys) = *self.rng.choose(&[
                    ("core::follow", COUNTRY),
                    ("core::recommendation", COUNTRY),
                    ("core::media", 0),
                ]);
                let params = json!({"endpoint": "ep_0001", "fanout": self.rng.within(1..6)});
                self.add(op, &inputs, params, (keys > 0).then_some(keys).into_iter().collect());
            }
            5 | 6 => {
                let out = *self.rng.choose(&[2001, 2002]);
                let expr = self.expr(&keys, 3);
                self.exprs.push(expr);
                if !keys.contains(&out) {
                    keys.push(out);
                }
                let params = json!({"out_key": out, "expr_id": format!("e{}", self.exprs.len() - 1)});
                self.add("core::vm", &inputs, params, keys);
            }
            7 | 8 => {
                let params = json!({"pred_id": self.new_pred(&keys)});
                self.add("core::filter", &inputs, params, keys);
            }
            9 | 10 => {
                let by = self.key(&keys);
                let order = *self.rng.choose(&["asc", "desc"]);
                if self.rng.percent(50) {
                    self.add("core::sort", &inputs, json!({"by": by, "order": order}), keys);
                } else {
                    self.add("core::topk", &inputs, json!({"by": by, "order": order, "count": count}), keys);
                }
            }
            11 | 12 => self.add("core::take", &inputs, json!({"count": count}), keys),
            13 => {
                let (other, more) = self.pick();
                keys.extend(more);
                self.add("core::concat", &inputs, json!({"rhs": other}), unique(keys));
            }
            14 => {
                let (other, more) = self.pick();
                keys.extend(more);
                let params = json!({"with": [other], "dedupe": self.rng.percent(60)});
                self.add("core::union", &inputs, params, unique(keys));
            }
            15 => {
                let by = self.key(&keys);
                match self.rng.percent(50) {
                    true => self.add("core::dedupe", &inputs, json!({"by": by}), keys),
                    false => self.add("core::group_limit", &inputs, json!({"by": by, "count": count}), keys),
                }
            }
            16 => {
                let choices: [&[&str]; 3] = [&["likes"], &["likes", "author"], &["country"]];
                let fields = *self.rng.choose(&choices);
                let own = fields.iter().map(|field| match *field {
                    "likes" => 1001,
                    "author" => 1002,
                    _ => COUNTRY,
                });
                keys.extend(own);
                let params =
                    json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": fields, "overwrite": true});
                self.add("core::lookup", &inputs, params, unique(keys));
            }
            17 if keys.contains(&2001) => {
                let params = json!({"out_key": 2001, "pred_id": self.new_pred(&keys), "factor": 2.5});
                self.add("core::boost", &inputs, params, keys);
            }
            17 => {
                keys.push(2002);
                self.add("core::fill", &inputs, json!({"keys": [2002], "value": 0.25}), unique(keys));
            }
            18 => {
                let (other, _) = self.pick();
                let kind = *self.rng.choose(&["semi", "anti"]);
                self.add("core::join", &inputs, json!({"with": other, "kind": kind}), keys);
            }
            _ => self.choice(&input, keys),
        }
    }

    /// Reads parameters alone.
    fn choice(&mut self, input: &str, keys: Vec<u64>) {
        let weight = json!({"op": "param_ref", "param_id": 1});
        let half = json!({"op": "const_number", "value": 0.5});
        self.preds.push(json!({"op": "cmp", "cmp": "<", "a": weight, "b": half}));
        let pred = format!("p{}", self.preds.len() - 1);
        let (then, mut either) = self.pick();
        if self.rng.percent(50) {
            either.extend(keys);
            self.add("core::if", &[input], json!({"pred_id": pred, "then": then}), unique(either));
        } else {
            let (or, more) = self.pick();
            either.extend(more);
            let params = json!({"pred_id": pred, "then": then, "else": or});
            self.add("core::if", &[input], params, unique(either));
        }
    }

    fn key(&mut self, keys: &[u64]) -> u64 {
        if keys.is_empty() || self.rng.percent(30) { 1 } else { *self.rng.choose(keys) }
    }

    fn expr(&mut self, keys: &[u64], depth: u32) -> Value {
        let numbers: Vec<u64> = keys.iter().copied().filter(|key| *key < 3000).collect();
        if depth == 0 || self.rng.percent(30) {
            return match self.rng.within(0..4) {
                0 => json!({"op": "const_number", "value": self.rng.within(0..5)}),
                1 => json!({"op": "const_number", "value": 0.25 * self.rng.within(0..5) as f64}),
                2 => json!({"op": "param_ref", "param_id": 1}),
                _ => json!({"op": "key_ref", "key_id": self.key(&numbers)}),
            };
        }
        let (a, b) = (self.expr(keys, depth - 1), self.expr(keys, depth - 1));
        match *self.rng.choose(&["add", "sub", "mul", "coalesce", "neg"]) {
            "neg" => json!({"op": "neg", "x": a}),
            op => json!({"op": op, "a": a, "b": b}),
        }
    }

    fn new_pred(&mut self, keys: &[u64]) -> String {
        let pred = self.pred(keys, 2);
        self.preds.push(pred);
        format!("p{}", self.preds.len() - 1)
    }

    fn pred(&mut self, keys: &[u64], depth: u32) -> Value {
        if depth > 0 && self.rng.percent(40) {
            let (a, b) = (self.pred(keys, depth - 1), self.pred(keys, depth - 1));
            return match *self.rng.choose(&["and", "or", "not"]) {
                "not" => json!({"op": "not", "x": a}),
                op => json!({"op": op, "a": a, "b": b}),
            };
        }
        let country = json!({"op": "key_ref", "key_id": COUNTRY});
        match self.rng.within(0..5) {
            0 if keys.contains(&COUNTRY) => json!({"op": "in", "lhs": country, "list": ["US", "", "XX"]}),
            1 if keys.contains(&COUNTRY) => {
                json!({"op": "cmp", "cmp": "==", "a": country, "b": {"op": "const_string", "value": "CA"}})
            }
            2 => json!({"op": "is_null", "x": {"op": "key_ref", "key_id": self.key(keys)}}),
            3 => json!({"op": "in", "lhs": self.expr(keys, 1), "list": [1, 2, 3.5, 8]}),
            _ => {
                let cmp = *self.rng.choose(&["==", "!=", "<", ">="]);
                json!({"op": "cmp", "cmp": cmp, "a": self.expr(keys, 2), "b": self.expr(keys, 1)})
            }
        }
    }
}

fn unique(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_unstable();
    keys.dedup();
    keys
}
