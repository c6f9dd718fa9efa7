//! Random values that fit a schema of the OpenAPI document, and others.

use anabranch_testkit::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

/// So deep values are nested, unless their schema asks for more.
const DEEP: u32 = 3;

/// The schemas of a document, and values that mean something to the server, by the names of fields and schemas.
pub(crate) struct Schemas<'a> {
    pub(crate) all: &'a Value,
    pub(crate) known: &'a [(&'static str, Vec<Value>)],
}

impl Schemas<'_> {
    /// A value that fits a schema.
    pub(crate) fn value(&self, rng: &mut Rng, schema: &Value) -> Value {
        self.nested(rng, schema, DEEP)
    }

    fn known(&self, rng: &mut Rng, name: &str) -> Option<Value> {
        let (_, values) = self.known.iter().find(|(known, _)| *known == name)?;
        Some(rng.choose(values).clone())
    }

    fn nested(&self, rng: &mut Rng, schema: &Value, depth: u32) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            let known = if rng.percent(30) { self.known(rng, name) } else { None };
            return known.unwrap_or_else(|| self.nested(rng, &self.all[name], depth));
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let choice = if depth == 0 { &choices[0] } else { rng.choose(choices) };
            return self.nested(rng, choice, depth);
        }
        if let Some(words) = schema["enum"].as_array() {
            return rng.choose(words).clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => rng.choose(kinds),
            kind => kind,
        };
        let smaller = depth.saturating_sub(1);
        match kind.as_str() {
            None => any(rng, smaller),
            Some("null") => Value::Null,
            Some("boolean") => rng.percent(50).into(),
            Some("integer") => integer(rng, schema).into(),
            Some("number") => {
                let positive = *rng.choose(&[0.0, 0.5, 1e9]);
                (schema["minimum"].as_f64().unwrap_or(-1e9) + positive).into()
            }
            Some("string") => string(rng, schema).into(),
            Some("array") => {
                let count = if depth == 0 { 0 } else { rng.within(0..4) };
                (0..count).map(|_| self.nested(rng, &schema["items"], smaller)).collect()
            }
            Some("object") => self.object(rng, schema, smaller),
            Some(other) => panic!("no values of the type {other} are made"),
        }
    }

    /// Required fields, most of the others, and some that only `additionalProperties` allows.
    fn object(&self, rng: &mut Rng, schema: &Value, depth: u32) -> Value {
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        let mut fields = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if required(name) || rng.percent(70) {
                let known = if rng.percent(80) { self.known(rng, name) } else { None };
                fields.insert(name.clone(), known.unwrap_or_else(|| self.nested(rng, field, depth)));
            }
        }
        if let Some(more) = schema.get("additionalProperties").filter(|more| more.is_object()) {
            for name in schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap().to_owned();
                fields.entry(name).or_insert_with(|| self.nested(rng, more, depth));
            }
            for _ in 0..rng.within(0..3) {
                fields.insert(text(rng), self.nested(rng, more, depth));
            }
        }
        fields.into()
    }
}

fn integer(rng: &mut Rng, schema: &Value) -> u64 {
    let least = schema["minimum"].as_u64().unwrap_or(0);
    let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
    let near = (least + rng.within(0..20)).min(most);
    *rng.choose(&[least, near, near, most])
}

fn string(rng: &mut Rng, schema: &Value) -> String {
    if let Some(examples) = schema["examples"].as_array().filter(|_| rng.percent(60)) {
        return rng.choose(examples).as_str().unwrap().to_owned();
    }
    let Some(pattern) = schema["pattern"].as_str() else { return text(rng) };
    let len = schema["minLength"].as_u64().unwrap_or(0)..=schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    let pattern = regex_syntax::parse(pattern).unwrap();
    for _ in 0..100 {
        let mut text = String::new();
        write(rng, &pattern, &mut text);
        if len.contains(&(text.chars().count() as u64)) {
            return text;
        }
    }
    panic!("no text of {len:?} characters fits {pattern}")
}

/// Writes a text that matches a pattern.
fn write(rng: &mut Rng, pattern: &Hir, out: &mut String) {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(str::from_utf8(&literal.0).unwrap()),
        HirKind::Class(Class::Unicode(class)) => {
            let range = rng.choose(class.ranges());
            let character = rng.within(u64::from(range.start())..u64::from(range.end()) + 1);
            // The range may have surrogates in its middle.
            out.push(char::from_u32(character as u32).unwrap_or(range.start()));
        }
        HirKind::Class(Class::Bytes(_)) => panic!("patterns are of text"),
        HirKind::Repetition(repeated) => {
            let most = repeated.max.unwrap_or(repeated.min + 8);
            let count = rng.within(u64::from(repeated.min)..u64::from(most) + 1);
            (0..count).for_each(|_| write(rng, &repeated.sub, out));
        }
        HirKind::Capture(group) => write(rng, &group.sub, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(rng, part, out)),
        HirKind::Alternation(choices) => {
            let choice = rng.choose(choices);
            write(rng, choice, out);
        }
    }
}

/// A text as a client may write it.
pub(crate) fn text(rng: &mut Rng) -> String {
    const TEXTS: [&str; 14] = [
        "cheapest",
        "a",
        "0",
        "-1",
        "18446744073709551616",
        "%00",
        "%ff",
        "..%2f..%2fetc",
        "%F0%9F%8C%8A",
        "true",
        "10ms",
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "af1349",
        "018f3c2a9d4b-0007",
    ];
    match rng.percent(10) {
        true => "x".repeat(rng.within(1..2_000) as usize),
        false => (*rng.choose(&TEXTS)).to_owned(),
    }
}

/// A JSON value of some depth.
pub(crate) fn any(rng: &mut Rng, depth: u32) -> Value {
    match rng.within(0..if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.percent(50)),
        2 => json!(rng.bits()),
        3 => rng.choose(&[json!(-1.5e300), json!(-7), json!(0.5)]).clone(),
        4 => json!(text(rng)),
        5 => json!(""),
        6 => (0..rng.within(0..4)).map(|_| any(rng, depth - 1)).collect(),
        _ => (0..rng.within(0..4)).map(|_| (text(rng), any(rng, depth - 1))).collect::<Map<_, _>>().into(),
    }
}

/// Changes a value in one place.
pub(crate) fn change(rng: &mut Rng, value: &mut Value) {
    match value {
        Value::Array(items) if !items.is_empty() && rng.percent(70) => {
            let at = rng.within(0..items.len() as u64) as usize;
            change(rng, &mut items[at]);
        }
        Value::Object(fields) if !fields.is_empty() && rng.percent(90) => {
            let name = fields.keys().nth(rng.within(0..fields.len() as u64) as usize).unwrap().clone();
            match rng.within(0..6) {
                0 => _ = fields.remove(&name),
                1 => _ = fields.insert(text(rng), any(rng, 2)),
                _ => change(rng, &mut fields[&name]),
            }
        }
        _ => *value = any(rng, 2),
    }
}
