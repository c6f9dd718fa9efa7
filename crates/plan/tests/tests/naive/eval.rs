//! Expressions and predicates, one row at a time.

use serde_json::Value;

use super::cell::{Cell, Kind, Row, cell, compare, float, kind_of};
use super::model::Model;

impl Model<'_> {
    pub(super) fn expr(&self, expr: &Value, row: &Row) -> Option<Cell> {
        let operand = |name: &str| self.expr(&expr[name], row);
        let number = |name: &str| operand(name).map(|cell| float(&cell));
        let both = |f: fn(f64, f64) -> f64| Some(f(number("a")?, number("b")?));
        let op = expr["op"].as_str().unwrap();
        let found = match op {
            "add" => both(|a, b| a + b),
            "sub" => both(|a, b| a - b),
            "mul" => both(|a, b| a * b),
            "div" => both(|a, b| a / b).filter(|_| number("b") != Some(0.0)),
            "min" => both(|a, b| if a < b || a.is_nan() { a } else { b }),
            "max" => both(|a, b| if a > b || a.is_nan() { a } else { b }),
            "pow" => both(f64::powf).filter(|power| !power.is_nan()),
            "neg" => number("x").map(|x| -x),
            "abs" => number("x").map(f64::abs),
            "floor" => number("x").map(f64::floor),
            "ceil" => number("x").map(f64::ceil),
            "round" => number("x").map(|x| (x.abs() + 0.5).floor().min(x.abs().ceil()).copysign(x)),
            "mod" => both(|a, b| a % b).filter(|rest| !rest.is_nan()),
            "log" => number("x").filter(|x| *x > 0.0).map(f64::ln),
            "clamp" => {
                let (x, low, high) = (number("x")?, number("lo")?, number("hi")?);
                Some(if x < low {
                    low
                } else if x > high {
                    high
                } else {
                    x
                })
            }
            _ => return self.other_expr(op, expr, row),
        };
        found.map(Cell::Float)
    }

    fn other_expr(&self, op: &str, expr: &Value, row: &Row) -> Option<Cell> {
        let operand = |name: &str| self.expr(&expr[name], row);
        let case = |f: fn(&str) -> String| operand("x").map(|cell| Cell::Text(f(&cell.to_string())));
        let found = match op {
            "const_number" => Some(number(&expr["value"])),
            "const_string" => Some(Cell::Text(expr["value"].as_str().unwrap().to_owned())),
            "const_bool" => Some(Cell::Bool(expr["value"].as_bool().unwrap())),
            "const_null" => None,
            "key_ref" => cell(row, expr["key_id"].as_u64().unwrap()),
            "param_ref" => self.params.get(&expr["param_id"].as_u64().unwrap()).cloned(),
            "lower" => case(str::to_lowercase),
            "upper" => case(str::to_uppercase),
            "coalesce" => operand("a").or_else(|| operand("b")),
            "if" if self.pred(&expr["cond"], row) => operand("then"),
            "if" => operand("else"),
            op => panic!("no model of {op}"),
        };
        // An integer beside a float is one.
        match found {
            Some(Cell::Int(int)) if kind(expr) == Some(Kind::Float) => Some(Cell::Float(int as f64)),
            found => found,
        }
    }

    pub(super) fn pred(&self, pred: &Value, row: &Row) -> bool {
        let sub = |name: &str| self.pred(&pred[name], row);
        let operand = |name: &str| self.expr(&pred[name], row);
        match pred["op"].as_str().unwrap() {
            "const_bool" => pred["value"].as_bool().unwrap(),
            "and" => sub("a") & sub("b"),
            "or" => sub("a") | sub("b"),
            "not" => !sub("x"),
            "is_null" => operand("x").is_none(),
            "not_null" => operand("x").is_some(),
            "cmp" => self.compares(pred, row),
            "regex" => self.matches(pred, row),
            "in" => {
                let Some(value) = operand("lhs") else { return false };
                let equal = |item: &Value| match item.as_str() {
                    Some(text) => value == Cell::Text(text.to_owned()),
                    None => compare(&value, &number(item)).is_some_and(|order| order.is_eq()),
                };
                pred["list"].as_array().unwrap().iter().any(equal)
            }
            op => panic!("no model of {op}"),
        }
    }

    fn compares(&self, pred: &Value, row: &Row) -> bool {
        let (a, b) = (self.expr(&pred["a"], row), self.expr(&pred["b"], row));
        let cmp = pred["cmp"].as_str().unwrap();
        if pred["a"]["op"] == "const_null" || pred["b"]["op"] == "const_null" {
            return match cmp {
                "==" => a.is_none() && b.is_none(),
                "!=" => a.is_none() != b.is_none(),
                _ => false,
            };
        }
        let (Some(a), Some(b)) = (a, b) else { return false };
        let order = compare(&a, &b);
        match cmp {
            "==" => order.is_some_and(|order| order.is_eq()),
            "!=" => order.is_none_or(|order| order.is_ne()),
            "<" => order.is_some_and(|order| order.is_lt()),
            "<=" => order.is_some_and(|order| order.is_le()),
            ">" => order.is_some_and(|order| order.is_gt()),
            ">=" => order.is_some_and(|order| order.is_ge()),
            cmp => panic!("no model of {cmp}"),
        }
    }

    /// Patterns are letters, at the start after `^`, at the end before `$`.
    fn matches(&self, pred: &Value, row: &Row) -> bool {
        let pattern = match pred["pattern"]["kind"].as_str().unwrap() {
            "literal" => pred["pattern"]["value"].as_str().unwrap().to_owned(),
            // Without one the request may fail.
            _ => self.params.get(&2).map_or(String::new(), Cell::to_string),
        };
        let Some(Cell::Text(mut text)) = cell(row, pred["key_id"].as_u64().unwrap()) else { return false };
        let mut pattern = pattern;
        if pred["flags"] == "i" {
            (text, pattern) = (text.to_lowercase(), pattern.to_lowercase());
        }
        match (pattern.strip_prefix('^'), pattern.strip_suffix('$')) {
            (Some(start), _) => text.starts_with(start),
            (None, Some(end)) => text.ends_with(end),
            (None, None) => text.contains(&pattern),
        }
    }
}

fn number(value: &Value) -> Cell {
    value.as_i64().map_or_else(|| Cell::Float(value.as_f64().unwrap()), Cell::Int)
}

/// The kind of an expression's values; `None` if they are all null.
fn kind(expr: &Value) -> Option<Kind> {
    let either = |a: &str, b: &str| match (kind(&expr[a]), kind(&expr[b])) {
        (Some(Kind::Int), Some(Kind::Float)) | (Some(Kind::Float), Some(Kind::Int)) => Some(Kind::Float),
        (a, b) => a.or(b),
    };
    match expr["op"].as_str().unwrap() {
        "const_null" => None,
        "const_number" if expr["value"].as_i64().is_some() => Some(Kind::Int),
        "const_string" | "lower" | "upper" => Some(Kind::Text),
        "const_bool" => Some(Kind::Bool),
        "key_ref" => Some(kind_of(expr["key_id"].as_u64().unwrap())),
        "param_ref" => {
            Some([Kind::Float, Kind::Text, Kind::Int][expr["param_id"].as_u64().unwrap() as usize - 1])
        }
        "coalesce" => either("a", "b"),
        "if" => either("then", "else"),
        _ => Some(Kind::Float),
    }
}
