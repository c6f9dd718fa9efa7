//! Values that satisfy the schemas of tests.

use anabranch_value::{Map, Value};

use crate::rng::Rng;

/// A value for a schema of the usual keywords.
pub(super) fn sample(schema: &Value, rng: &mut Rng) -> Value {
    Sampler { root: schema, rng }.value(schema, 0)
}

struct Sampler<'a> {
    root: &'a Value,
    rng: &'a mut Rng,
}

impl Sampler<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > 12 {
            return Value::Null;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_text).and_then(|name| self.target(name)) {
            return self.value(&target, depth + 1);
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_list) {
            return self.rng.choose(options).clone();
        }
        for name in ["anyOf", "oneOf", "allOf"] {
            if let Some(choices) = schema.get(name).and_then(Value::as_list) {
                let chosen = if depth > 4 { choices.last() } else { choices.first() };
                return chosen.map_or(Value::Null, |choice| self.value(choice, depth + 1));
            }
        }
        let number = |name: &str| schema.get(name).and_then(Value::as_number);
        let kind = match schema.get("type") {
            Some(Value::List(kinds)) => kinds.first().and_then(Value::as_text).unwrap_or("string").to_owned(),
            Some(Value::Text(kind)) => kind.to_string(),
            _ if schema.get("properties").is_some() => "object".to_owned(),
            _ => "string".to_owned(),
        };
        match kind.as_str() {
            "null" => Value::Null,
            "boolean" => Value::Bool(self.rng.percent(50)),
            "integer" | "number" => {
                let low = number("minimum").or(number("exclusiveMinimum").map(|low| low + 1.0));
                let high = number("maximum").or(number("exclusiveMaximum").map(|high| high - 1.0));
                let low = low.unwrap_or(high.map_or(0.0, |high| high - 9.0));
                let high = high.unwrap_or(low + 9.0).max(low);
                let value = low.ceil() + self.rng.within(0..(high - low).floor() as u64 + 1) as f64;
                if kind == "integer" { Value::Int(value as i64) } else { Value::Float(value) }
            }
            "array" => {
                let count = number("minItems").unwrap_or(if depth > 4 { 0.0 } else { 2.0 });
                let count = count.min(number("maxItems").unwrap_or(count)) as usize;
                let any = Value::Bool(true);
                let items = schema.get("items").unwrap_or(&any);
                Value::list((0..count).map(|_| self.value(items, depth + 1)).collect::<Vec<_>>())
            }
            "object" => self.object(schema, depth),
            _ => self.text(schema).into(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_map).unwrap_or(&empty);
        let entries = properties.iter().map(|(name, schema)| (name.clone(), self.value(schema, depth + 1)));
        Value::from(entries.collect::<Map>())
    }

    fn text(&mut self, schema: &Value) -> String {
        match schema.get("format").and_then(Value::as_text) {
            Some("date") => return "2024-05-06".to_owned(),
            Some("date-time") => return "2024-05-06T07:08:09Z".to_owned(),
            Some("email") => return "scripted@example.com".to_owned(),
            Some("uri") => return "https://example.com/scripted".to_owned(),
            _ => {}
        }
        let bound = |name: &str| schema.get(name).and_then(Value::as_number).map(|number| number as usize);
        let mut text = format!("scripted {}", self.rng.within(0..1000));
        while text.len() < bound("minLength").unwrap_or(0) {
            text.push('x');
        }
        text.truncate(bound("maxLength").unwrap_or(usize::MAX));
        text
    }

    fn target(&self, reference: &str) -> Option<Value> {
        reference.strip_prefix("#/")?.split('/').try_fold(self.root, |value, step| value.get(step)).cloned()
    }
}
