//! The payloads of extensions: the part of JSON Schema that capabilities use.

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::json::{self, show};

/// The shape of an extension's payload, an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    properties: Vec<(String, Option<PayloadType>)>,
    required: Vec<String>,
    /// True if only fields that are properties are allowed.
    closed: bool,
}

/// The type of a field of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadType {
    /// True or false.
    Boolean,
    /// A string.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// A list.
    Array,
    /// An object.
    Object,
}

const TYPES: [(&str, PayloadType); 6] = [
    ("boolean", PayloadType::Boolean),
    ("string", PayloadType::String),
    ("number", PayloadType::Number),
    ("integer", PayloadType::Integer),
    ("array", PayloadType::Array),
    ("object", PayloadType::Object),
];

impl Payload {
    /// Reads a schema; `place` is where its text stands.
    pub(super) fn parse(text: &str, place: &str, problems: &mut Problems) -> Option<Payload> {
        let schema = match json::parse(text.as_bytes()) {
            Ok(schema) => schema,
            Err(error) => {
                let what = format!("line {}, column {}: {}", error.line, error.column, error.what);
                problems.error(Problem::new(place, what));
                return None;
            }
        };
        let Some(map) = schema.as_object() else {
            problems.error(Problem::new(place, format!("must be an object, not {}", show(&schema))));
            return None;
        };
        let mut fields = Fields::new(map, place, problems);
        fields.required_choice("type", &[("object", ())]);
        let closed = fields.optional("additionalProperties").is_some_and(|open: bool| !open);
        for prose in ["title", "description", "$schema"] {
            fields.optional::<&str>(prose);
        }
        let properties = properties(&mut fields);
        let mut required = Vec::new();
        for name in fields.optional::<&[Value]>("required").unwrap_or_default() {
            match name.as_str() {
                Some(name) => required.push(name.to_owned()),
                None => fields.error("required", format!("must be strings, not {}", show(name))),
            }
        }
        fields.finish();
        Some(Payload { properties, required, closed })
    }

    /// Reports problems of a payload.
    pub(crate) fn check(&self, payload: &Value, place: &str, problems: &mut Problems) {
        let Some(map) = payload.as_object() else {
            let help = "write {} or leave the key out";
            let what = format!("the payload must be an object, not {}", show(payload));
            problems.error(Problem::new(place, what).help(help));
            return;
        };
        for name in self.required.iter().filter(|name| !map.contains_key(*name)) {
            problems.error(Problem::new(place, format!("the payload lacks {}", quote(name))));
        }
        for (name, value) in map {
            match self.properties.iter().find(|(property, _)| property == name) {
                Some((_, Some(kind))) if !kind.fits(value) => {
                    let what =
                        format!("{} must be of type {}, not {}", quote(name), kind.word(), show(value));
                    problems.error(Problem::new(place, what));
                }
                None if self.closed => {
                    let what = format!("the payload may not have {}", quote(name));
                    problems.error(Problem::new(place, what));
                }
                _ => {}
            }
        }
    }
}

fn properties(fields: &mut Fields<'_, '_>) -> Vec<(String, Option<PayloadType>)> {
    let Some(map) = fields.optional::<&Map<String, Value>>("properties") else { return Vec::new() };
    let place = fields.place("properties");
    let mut properties = Vec::new();
    for (name, value) in map {
        let place = format!("{place}, {name}");
        let Some(map) = value.as_object() else {
            fields.problems.error(Problem::new(place, format!("must be an object, not {}", show(value))));
            continue;
        };
        let mut property = Fields::new(map, place, fields.problems);
        let kind = property.choice("type", &TYPES);
        for prose in ["title", "description"] {
            property.optional::<&str>(prose);
        }
        property.finish();
        properties.push((name.clone(), kind));
    }
    properties
}

impl PayloadType {
    fn word(self) -> &'static str {
        TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            PayloadType::Boolean => value.is_boolean(),
            PayloadType::String => value.is_string(),
            PayloadType::Number => value.is_number(),
            PayloadType::Integer => json::whole(value).is_some() || value.is_u64(),
            PayloadType::Array => value.is_array(),
            PayloadType::Object => value.is_object(),
        }
    }
}
