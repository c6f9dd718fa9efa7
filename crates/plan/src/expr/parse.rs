//! Expressions and predicates from JSON: everything wrong at once, each with its path.

use std::sync::Arc;

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use super::ast::{Binary, Compare, Expr, Name, Pattern, Pred, Unary};
use crate::value::Scalar;

/// The levels that an expression may have, so that walking it cannot overflow the stack.
pub(crate) const DEEPEST: usize = 256;

/// The ops of expressions that are neither unary nor binary.
const OTHERS: [&str; 10] = [
    "const_number",
    "const_null",
    "const_string",
    "const_bool",
    "key_ref",
    "param_ref",
    "clamp",
    "if",
    "now",
    "hash",
];
/// The ops of predicates.
const PREDS: [&str; 9] = ["const_bool", "and", "or", "not", "cmp", "in", "is_null", "not_null", "regex"];

/// The names of all ops of expressions and of predicates, as plan JSON has them.
pub fn op_names() -> impl Iterator<Item = &'static str> {
    let unary = Unary::ALL.iter().map(|(name, _)| *name);
    unary.chain(Binary::ALL.iter().map(|(name, _)| *name)).chain(OTHERS).chain(PREDS)
}

impl Expr {
    /// Reads an entry of `expr_table`. Everything wrong is noted with its place, `place` and the path below it.
    pub fn parse(json: &Value, place: &str, problems: &mut Problems) -> Option<Expr> {
        Reader::read(json, place, problems, Reader::expr)
    }
}

impl Pred {
    /// Reads an entry of `pred_table`. Everything wrong is noted with its place, `place` and the path below it.
    pub fn parse(json: &Value, place: &str, problems: &mut Problems) -> Option<Pred> {
        Reader::read(json, place, problems, Reader::pred)
    }
}

struct Reader<'p> {
    path: String,
    /// The length of the path of the whole expression.
    root: usize,
    depth: usize,
    /// Whether that was reported.
    too_deep: bool,
    problems: &'p mut Problems,
}

type Fields = Map<String, Value>;

impl<'p> Reader<'p> {
    /// The result of `read`, if it finds no error.
    fn read<T>(
        json: &Value,
        place: &str,
        problems: &'p mut Problems,
        read: impl FnOnce(&mut Reader<'p>, &Value) -> Option<T>,
    ) -> Option<T> {
        let before = problems.errors.len();
        let mut reader =
            Reader { path: place.to_owned(), root: place.len(), depth: 0, too_deep: false, problems };
        let value = read(&mut reader, json);
        value.filter(|_| reader.problems.errors.len() == before)
    }

    fn expr(&mut self, json: &Value) -> Option<Expr> {
        let (op, fields) = self.op(json, "an expression")?;
        if let Some((_, op)) = Unary::ALL.iter().find(|(name, _)| *name == op) {
            self.only(fields, &["x"]);
            return Some(Expr::Unary(*op, self.boxed(fields, "x")?));
        }
        if let Some((_, op)) = Binary::ALL.iter().find(|(name, _)| *name == op) {
            self.only(fields, &["a", "b"]);
            let (a, b) = (self.boxed(fields, "a"), self.boxed(fields, "b"));
            return Some(Expr::Binary(*op, a?, b?));
        }
        match op {
            "const_number" => {
                self.only(fields, &["value"]);
                self.number(fields).map(Expr::Const)
            }
            "const_null" => {
                self.only(fields, &[]);
                Some(Expr::Null)
            }
            "const_string" => {
                self.only(fields, &["value"]);
                let text = self.value(fields, "value", "a string", Value::as_str)?;
                Some(Expr::Const(Scalar::Text(Arc::from(text))))
            }
            "const_bool" => {
                self.only(fields, &["value"]);
                let value = self.value(fields, "value", "true or false", Value::as_bool)?;
                Some(Expr::Const(Scalar::Bool(value)))
            }
            "key_ref" => {
                self.only(fields, &["key_id", "key"]);
                self.name(fields, "key_id", "key").map(Expr::Key)
            }
            "param_ref" => {
                self.only(fields, &["param_id", "param"]);
                self.name(fields, "param_id", "param").map(Expr::Param)
            }
            "clamp" => {
                self.only(fields, &["x", "lo", "hi"]);
                let parts = ["x", "lo", "hi"].map(|field| self.part(fields, field, Self::expr));
                let [x, low, high] = parts;
                Some(Expr::Clamp(Box::new([x?, low?, high?])))
            }
            "if" => {
                self.only(fields, &["cond", "then", "else"]);
                let cond = self.part(fields, "cond", Self::pred);
                let (then, other) = (self.boxed(fields, "then"), self.boxed(fields, "else"));
                Some(Expr::If(Box::new(cond?), then?, other?))
            }
            "now" => {
                self.only(fields, &[]);
                Some(Expr::Now)
            }
            "hash" => {
                self.only(fields, &["seed", "x"]);
                let seed = self.value(fields, "seed", "a whole number of 64 bits", Value::as_i64);
                let x = self.boxed(fields, "x");
                Some(Expr::Hash(seed?, x?))
            }
            other => {
                let known = Unary::ALL.iter().map(|(name, _)| *name);
                let known = known.chain(Binary::ALL.iter().map(|(name, _)| *name));
                self.unknown_op("expression", other, known.chain(OTHERS));
                None
            }
        }
    }

    fn pred(&mut self, json: &Value) -> Option<Pred> {
        let (op, fields) = self.op(json, "a predicate")?;
        match op {
            "const_bool" => {
                self.only(fields, &["value"]);
                self.value(fields, "value", "true or false", Value::as_bool).map(Pred::Const)
            }
            "and" | "or" => {
                self.only(fields, &["a", "b"]);
                let a = self.part(fields, "a", Self::pred).map(Box::new);
                let b = self.part(fields, "b", Self::pred).map(Box::new);
                Some(if op == "and" { Pred::And(a?, b?) } else { Pred::Or(a?, b?) })
            }
            "not" => {
                self.only(fields, &["x"]);
                Some(Pred::Not(Box::new(self.part(fields, "x", Self::pred)?)))
            }
            "cmp" => {
                self.only(fields, &["cmp", "a", "b"]);
                let compare = self.compare(fields);
                let (a, b) = (self.boxed(fields, "a"), self.boxed(fields, "b"));
                Some(Pred::Compare(compare?, a?, b?))
            }
            "in" => {
                self.only(fields, &["lhs", "list"]);
                let value = self.boxed(fields, "lhs");
                if fields.get("list").is_some_and(Value::is_object) {
                    let param = self.part(fields, "list", Self::list_param);
                    return Some(Pred::InParam(value?, param?));
                }
                let list = self.list(fields);
                Some(Pred::In(value?, list?))
            }
            "is_null" | "not_null" => {
                self.only(fields, &["x"]);
                let x = self.boxed(fields, "x")?;
                Some(if op == "is_null" { Pred::IsNull(x) } else { Pred::NotNull(x) })
            }
            "regex" => {
                self.only(fields, &["key_id", "key", "x", "pattern", "flags"]);
                let text = self.regex_text(fields);
                let pattern = self.part(fields, "pattern", Self::pattern);
                let ignore_case = self.flags(fields);
                Some(Pred::Regex { text: Box::new(text?), pattern: pattern?, ignore_case: ignore_case? })
            }
            other => {
                self.unknown_op("predicate", other, PREDS);
                None
            }
        }
    }

    fn op<'j>(&mut self, json: &'j Value, what: &str) -> Option<(&'j str, &'j Fields)> {
        let Some(fields) = json.as_object() else {
            self.error(format!("{what} is an object, not {}", shown(json)));
            return None;
        };
        if self.depth >= DEEPEST && self.too_deep {
            return None;
        }
        if self.depth >= DEEPEST {
            self.too_deep = true;
            // The path would be as long as the nesting is deep.
            let root = self.path[..self.root].to_owned();
            let help = "compute a part of it in a column of its own first";
            let what = format!("an expression may be nested {DEEPEST} levels deep; this one is deeper");
            self.problems.error(Problem::new(root, what).help(help));
            return None;
        }
        let op = self.value(fields, "op", "a string", Value::as_str)?;
        Some((op, fields))
    }

    fn unknown_op<'a>(&mut self, what: &str, op: &str, known: impl IntoIterator<Item = &'a str>) {
        let known: Vec<&str> = known.into_iter().collect();
        let near = self.problems.did_you_mean(op, known.iter().copied());
        let help = near.unwrap_or_else(|| format!("there are {}", known.join(", ")));
        let problem = Problem::new(format!("{}.op", self.path), format!("unknown {what} op {}", quote(op)));
        self.problems.error(problem.help(help));
    }

    /// Notes every field that is neither `op` nor one of `known`.
    fn only(&mut self, fields: &Fields, known: &[&str]) {
        self.allow(fields, &[&["op"], known].concat());
    }

    /// Notes every field that is not one of `known`.
    fn allow(&mut self, fields: &Fields, known: &[&str]) {
        for field in fields.keys().filter(|field| !known.contains(&field.as_str())) {
            let problem = Problem::new(format!("{}.{field}", self.path), "unknown field");
            self.problems.error(problem.help(format!("the fields here are `{}`", known.join("`, `"))));
        }
    }

    /// The result of `read` for a field, with the path of that field.
    fn part<T>(
        &mut self,
        fields: &Fields,
        field: &str,
        read: impl FnOnce(&mut Self, &Value) -> Option<T>,
    ) -> Option<T> {
        let Some(json) = fields.get(field) else {
            self.error(format!("missing `{field}`"));
            return None;
        };
        self.below(field, |reader| read(reader, json))
    }

    fn below<T>(&mut self, field: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        self.path.push('.');
        self.path.push_str(field);
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        self.path.truncate(before);
        value
    }

    fn boxed(&mut self, fields: &Fields, field: &str) -> Option<Box<Expr>> {
        self.part(fields, field, Self::expr).map(Box::new)
    }

    fn value<'j, T>(
        &mut self,
        fields: &'j Fields,
        field: &str,
        expected: &str,
        read: impl FnOnce(&'j Value) -> Option<T>,
    ) -> Option<T> {
        let Some(json) = fields.get(field) else {
            self.error(format!("missing `{field}`, {expected}"));
            return None;
        };
        let value = read(json);
        if value.is_none() {
            self.below(field, |reader| reader.error(format!("must be {expected}, not {}", shown(json))));
        }
        value
    }

    fn number(&mut self, fields: &Fields) -> Option<Scalar> {
        self.value(fields, "value", "a number", number)
    }

    /// A key or parameter, by number or by name.
    fn name(&mut self, fields: &Fields, id: &str, name: &str) -> Option<Name> {
        match (fields.get(id), fields.get(name)) {
            (Some(_), Some(_)) => {
                self.error(format!("both `{id}` and `{name}`: give one"));
                None
            }
            (None, Some(_)) => {
                let name = self.value(fields, name, "a name", Value::as_str)?;
                Some(Name::Name(name.to_owned()))
            }
            _ => self.value(fields, id, "a number from 0 to 4294967295", id_number).map(Name::Id),
        }
    }

    fn compare(&mut self, fields: &Fields) -> Option<Compare> {
        let symbol = self.value(fields, "cmp", "an operator", Value::as_str)?;
        let compare = Compare::ALL.into_iter().find(|compare| compare.symbol() == symbol);
        if compare.is_none() {
            let what = format!("unknown operator {}", quote(symbol));
            let problem = Problem::new(format!("{}.cmp", self.path), what).help("one of == != < <= > >=");
            self.problems.error(problem);
        }
        compare
    }

    /// The items of `in`: all numbers, or all strings.
    fn list(&mut self, fields: &Fields) -> Option<Vec<Scalar>> {
        let items = self.value(fields, "list", "a list or a `param_ref`", Value::as_array)?;
        let expected = match items.first() {
            Some(Value::String(_)) => "a string, as the first item",
            Some(Value::Number(_)) => "a number, as the first item",
            _ => "a number or a string",
        };
        let item = |item: &Value| match (items.first(), item) {
            (Some(Value::String(_)), Value::String(text)) => Some(Scalar::Text(Arc::from(text.as_str()))),
            (Some(Value::Number(_)), item) => number(item),
            _ => None,
        };
        let wrong = |(_, json): &(usize, &Value)| item(json).is_none();
        if let Some((at, json)) = items.iter().enumerate().find(wrong) {
            let what = format!("must be {expected}, not {}", shown(json));
            self.problems.error(Problem::new(format!("{}.list[{at}]", self.path), what));
            return None;
        }
        Some(items.iter().filter_map(item).collect())
    }

    /// A parameter that is the list of `in`.
    fn list_param(&mut self, json: &Value) -> Option<Name> {
        let (op, fields) = self.op(json, "the list of `in`")?;
        if op != "param_ref" {
            self.error(format!("the list of `in` is a JSON list or a `param_ref`, not {}", quote(op)));
            return None;
        }
        self.only(fields, &["param_id", "param"]);
        self.name(fields, "param_id", "param")
    }

    fn regex_text(&mut self, fields: &Fields) -> Option<Expr> {
        let by_key = fields.contains_key("key_id") || fields.contains_key("key");
        match (fields.contains_key("x"), by_key) {
            (true, true) => {
                self.error("both a key and `x`: give one".to_owned());
                None
            }
            (true, false) => self.part(fields, "x", Self::expr),
            (false, _) => self.name(fields, "key_id", "key").map(Expr::Key),
        }
    }

    fn pattern(&mut self, json: &Value) -> Option<Pattern> {
        let Some(fields) = json.as_object() else {
            self.error(format!("must be an object with `kind`, not {}", shown(json)));
            return None;
        };
        match self.value(fields, "kind", "`literal` or `param`", Value::as_str)? {
            "literal" => {
                self.allow(fields, &["kind", "value"]);
                let pattern = self.value(fields, "value", "a string", Value::as_str)?;
                Some(Pattern::Literal(pattern.to_owned()))
            }
            "param" => {
                self.allow(fields, &["kind", "param_id", "param"]);
                self.name(fields, "param_id", "param").map(Pattern::Param)
            }
            other => {
                let what = format!("must be `literal` or `param`, not {}", quote(other));
                self.problems.error(Problem::new(format!("{}.kind", self.path), what));
                None
            }
        }
    }

    /// True if case is ignored.
    fn flags(&mut self, fields: &Fields) -> Option<bool> {
        let Some(json) = fields.get("flags") else { return Some(false) };
        match json.as_str() {
            Some("") => Some(false),
            Some("i") => Some(true),
            _ => {
                let what = format!("must be \"\" or \"i\", not {}", shown(json));
                self.problems.error(Problem::new(format!("{}.flags", self.path), what));
                None
            }
        }
    }

    fn error(&mut self, what: String) {
        self.problems.error(Problem::new(self.path.clone(), what));
    }
}

/// Integers that fit stay integers, so that they compare exactly.
fn number(json: &Value) -> Option<Scalar> {
    match json.as_i64() {
        Some(int) => Some(Scalar::Int(int)),
        None => json.as_f64().filter(|float| float.is_finite()).map(Scalar::Float),
    }
}

fn id_number(json: &Value) -> Option<u32> {
    json.as_u64().and_then(|id| u32::try_from(id).ok())
}

/// A JSON value in few words.
fn shown(json: &Value) -> String {
    match json {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= 40 => format!("\"{text}\""),
        Value::String(_) => "a long string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
