//! Random expressions and predicates that pass the checks.

use anabranch_testkit::Rng;
use serde_json::{Value, json};

use super::cell::{Kind, kind_of};

/// Makes expressions over rows with these columns.
pub(super) struct Exprs<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) keys: &'a [u64],
}

impl Exprs<'_> {
    /// A column of this kind, if there is one.
    fn column(&mut self, kind: Kind) -> Option<Value> {
        let keys = self.keys.iter().copied().chain([1]);
        let keys: Vec<u64> = keys.filter(|key| kind_of(*key) == kind).collect();
        let key = if keys.is_empty() { return None } else { *self.rng.choose(&keys) };
        Some(json!({"op": "key_ref", "key_id": key}))
    }

    fn leaf(&mut self, kind: Kind) -> Value {
        if self.rng.percent(50)
            && let Some(column) = self.column(kind)
        {
            return column;
        }
        match (kind, self.rng.percent(30)) {
            (Kind::Float, true) => json!({"op": "param_ref", "param_id": 1}),
            (Kind::Text, true) => json!({"op": "param_ref", "param_id": 2}),
            (Kind::Int, true) => json!({"op": "param_ref", "param_id": 3}),
            (Kind::Float, false) => {
                json!({"op": "const_number", "value": 0.25 + self.rng.within(0..5) as f64})
            }
            (Kind::Int, false) => {
                let large = [1 << 53, (1 << 53) + 1, i64::MAX, 0, -1];
                let value = if self.rng.percent(20) {
                    *self.rng.choose(&large)
                } else {
                    self.rng.within(1..9) as i64
                };
                json!({"op": "const_number", "value": value})
            }
            (Kind::Bool, _) => json!({"op": "const_bool", "value": self.rng.percent(50)}),
            (Kind::Text, false) => {
                json!({"op": "const_string", "value": *self.rng.choose(&["US", "CA", "", "straße"])})
            }
        }
    }

    /// An expression of this kind; of floats, also of integers.
    pub(super) fn expr(&mut self, kind: Kind, depth: u32) -> Value {
        if depth == 0 || self.rng.percent(25) {
            let kind = if kind == Kind::Float && self.rng.percent(40) { Kind::Int } else { kind };
            return self.leaf(kind);
        }
        let (a, b) = (self.expr(kind, depth - 1), self.expr(kind, depth - 1));
        match self.rng.within(0..10) {
            0 | 1 => json!({"op": "coalesce", "a": a, "b": b}),
            2 | 3 => json!({"op": "if", "cond": self.pred(depth - 1), "then": a, "else": b}),
            4 => json!({"op": "coalesce", "a": {"op": "const_null"}, "b": b}),
            _ => match kind {
                Kind::Float => self.arithmetic(a, b),
                Kind::Text => json!({"op": *self.rng.choose(&["lower", "upper"]), "x": a}),
                Kind::Int | Kind::Bool => a,
            },
        }
    }

    fn arithmetic(&mut self, a: Value, b: Value) -> Value {
        let ops = [
            "add", "sub", "mul", "div", "min", "max", "neg", "abs", "log", "clamp", "pow", "mod", "floor",
            "ceil", "round",
        ];
        match *self.rng.choose(&ops) {
            op @ ("neg" | "abs" | "log" | "floor" | "ceil" | "round") => json!({"op": op, "x": a}),
            "clamp" => {
                let bound = |value: i64| json!({"op": "const_number", "value": value});
                json!({"op": "clamp", "x": a, "lo": bound(-1), "hi": bound(3)})
            }
            "pow" => {
                let power = *self.rng.choose(&[0.5, 2.0, -1.0]);
                json!({"op": "pow", "a": a, "b": {"op": "const_number", "value": power}})
            }
            op => json!({"op": op, "a": a, "b": b}),
        }
    }

    pub(super) fn pred(&mut self, depth: u32) -> Value {
        if depth > 0 && self.rng.percent(40) {
            let (a, b) = (self.pred(depth - 1), self.pred(depth - 1));
            return match *self.rng.choose(&["and", "or", "not"]) {
                "not" => json!({"op": "not", "x": a}),
                op => json!({"op": op, "a": a, "b": b}),
            };
        }
        let kind = *self.rng.choose(&[Kind::Int, Kind::Float, Kind::Bool, Kind::Text]);
        match self.rng.within(0..7) {
            0 => json!({"op": *self.rng.choose(&["is_null", "not_null"]), "x": self.expr(kind, 1)}),
            1 => {
                let nothing = json!({"op": "const_null"});
                json!({"op": "cmp", "cmp": *self.rng.choose(&["==", "!="]), "a": self.expr(kind, 1), "b": nothing})
            }
            2 => json!({"op": "in", "lhs": self.expr(Kind::Text, 1), "list": ["US", "", "XX", "us"]}),
            3 => {
                let numbers = json!([1, 2, 3.5, 8, (1_i64 << 53) + 1, i64::MAX, -0.0]);
                let many = json!([0, 1, 2.5, 3, 4, 5, 6, 7, 8, 9, 10.25]);
                let list = if self.rng.percent(50) { numbers } else { many };
                let kind = *self.rng.choose(&[Kind::Int, Kind::Float]);
                json!({"op": "in", "lhs": self.expr(kind, 1), "list": list})
            }
            4 => self.regex(),
            _ => self.comparison(kind, depth),
        }
    }

    fn comparison(&mut self, kind: Kind, depth: u32) -> Value {
        let all = ["==", "!=", "<", "<=", ">", ">="];
        let cmp = *self.rng.choose(if kind == Kind::Bool { &all[..2] } else { &all });
        let other = match kind {
            Kind::Int if self.rng.percent(40) => Kind::Float,
            Kind::Float if self.rng.percent(40) => Kind::Int,
            kind => kind,
        };
        json!({"op": "cmp", "cmp": cmp, "a": self.expr(kind, depth), "b": self.expr(other, 1)})
    }

    fn regex(&mut self) -> Value {
        let Some(column) = self.column(Kind::Text) else { return json!({"op": "const_bool", "value": true}) };
        let literal = *self.rng.choose(&["^U", "s$", "S", "a", ""]);
        let pattern = match self.rng.percent(80) {
            true => json!({"kind": "literal", "value": literal}),
            false => json!({"kind": "param", "param_id": 2}),
        };
        let flags = *self.rng.choose(&["", "i"]);
        json!({"op": "regex", "key_id": column["key_id"], "pattern": pattern, "flags": flags})
    }
}
