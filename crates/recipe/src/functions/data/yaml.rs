//! Functions of YAML.

use std::fmt::Write;

use bytes::Bytes;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Number, Value as Json};
use serde_saphyr::UserMessageFormatter;

use super::json::keyed;
use super::parsed;
use crate::function::Fault;
use crate::functions::support::{MAX_BYTES_HELD, Most, signature, whole};
use crate::functions::text::text;
use crate::registry::Functions;

/// How YAML is read, for all functions that do.
pub(super) const YAML: &str = " The input is one document of YAML 1.2; `<<` merges, and keys are texts or are read as such. \
    Integers beyond 64 bits become floats. \
    Refused are keys that are there twice, tags beyond those of the core schema, `.nan` and `.inf`, more than 1000000 \
    nodes from aliases, and more than 127 lists and maps around a value.";

pub(super) fn add(functions: &mut Functions) {
    let mut to_json = signature(
        "yaml_to_json/1.0.0",
        "The YAML as JSON without white space; keys keep their order, and nothing is null.",
    );
    to_json.about.to_mut().push_str(YAML);
    functions.add(whole(to_json.may("max_bytes", MAX_BYTES_HELD).nanos_per_kib(120_000), |call| {
        let most = call.max_bytes_held()?;
        Ok(Box::new(move |inputs| {
            let document: Ordered = read(&inputs[0])?;
            let made = serde_json::to_vec(&document).expect("text takes any value");
            most.allows(made.len())?;
            Ok(made.into())
        }))
    }));
    let to_yaml = signature(
        "json_to_yaml/2.0.0",
        "The JSON as YAML, a key or an element in each line. A text is without quotes only if it is ASCII words that no \
         reader takes for something else; else it is as in JSON.",
    )
    .may("max_bytes", MAX_BYTES_HELD);
    functions.add(whole(keyed(to_yaml).nanos_per_kib(15_000), |call| {
        let most = call.max_bytes_held()?;
        Ok(Box::new(move |inputs| Ok(written(&parsed(0, &inputs[0])?, most)?.into())))
    }));
}

/// A whole input as YAML.
pub(super) fn read<T: DeserializeOwned>(input: &Bytes) -> Result<T, Fault> {
    let text = text(0, input)?;
    // What is written out counts by its size; only aliases make more of it.
    let mut budget = serde_saphyr::Budget::default();
    budget.max_depth = 127;
    budget.max_events = text.len().saturating_mul(2).saturating_add(1 << 20);
    budget.max_nodes = budget.max_events;
    budget.max_total_scalar_bytes = text.len().saturating_add(64 << 20);
    let options = serde_saphyr::options! {
        budget: Some(budget),
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        Fault::input(0, format!("not YAML: {}", error.render_with_formatter(&UserMessageFormatter)))
    })
}

/// A document whose keys keep their order.
enum Ordered {
    One(Json),
    List(Vec<Ordered>),
    Map(Vec<(String, Ordered)>),
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Ordered::One(value) => value.serialize(serializer),
            Ordered::List(values) => serializer.collect_seq(values),
            Ordered::Map(values) => serializer.collect_map(values.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ordered, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Ordered;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::One(Json::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::One(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::One(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::One(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Ordered, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("JSON has no such number"))?;
        Ok(Ordered::One(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Ordered, E> {
        Ok(Ordered::One(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Ordered, E> {
        Ok(Ordered::One(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Ordered, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Ordered::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Ordered, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = values.next_entry()? {
            map.push(entry);
        }
        Ok(Ordered::Map(map))
    }
}

/// A document as YAML.
fn written(value: &Json, most: Most) -> Result<String, Fault> {
    let mut made = String::new();
    match value {
        Json::Object(values) if !values.is_empty() => block(&mut made, value, 0, most)?,
        Json::Array(values) if !values.is_empty() => block(&mut made, value, 0, most)?,
        _ => {
            scalar(&mut made, value);
            made.push('\n');
        }
    }
    Ok(made)
}

/// Keys longer than this need a mark before them; YAML's own bound is 1024 characters.
const KEY_MOST: usize = 512;

/// Writes a list or an object that is not empty; its first line begins where the text ends.
fn block(made: &mut String, value: &Json, indent: usize, most: Most) -> Result<(), Fault> {
    let mut first = true;
    let mut begin = |made: &mut String| {
        if !std::mem::replace(&mut first, false) {
            made.extend(std::iter::repeat_n(' ', indent));
        }
        most.allows(made.len())
    };
    match value {
        Json::Object(values) => {
            for (key, value) in values {
                begin(made)?;
                let start = made.len();
                quoted(made, key);
                if made.len() - start > KEY_MOST {
                    made.insert_str(start, "? ");
                    made.push('\n');
                    made.extend(std::iter::repeat_n(' ', indent));
                }
                made.push(':');
                // Elements of a list are as deep as its key.
                let deeper = indent + if value.is_array() { 0 } else { 2 };
                match is_block(value) {
                    true => {
                        made.push('\n');
                        made.extend(std::iter::repeat_n(' ', deeper));
                        block(made, value, deeper, most)?;
                    }
                    false => line(made, value),
                }
            }
        }
        Json::Array(values) => {
            for value in values {
                begin(made)?;
                made.push('-');
                match is_block(value) {
                    true => {
                        made.push(' ');
                        block(made, value, indent + 2, most)?;
                    }
                    false => line(made, value),
                }
            }
        }
        other => scalar(made, other),
    }
    Ok(())
}

fn is_block(value: &Json) -> bool {
    match value {
        Json::Object(values) => !values.is_empty(),
        Json::Array(values) => !values.is_empty(),
        _ => false,
    }
}

fn line(made: &mut String, value: &Json) {
    made.push(' ');
    scalar(made, value);
    made.push('\n');
}

fn scalar(made: &mut String, value: &Json) {
    match value {
        Json::String(text) => quoted(made, text),
        other => write!(made, "{other}").expect("text takes more text"),
    }
}

fn quoted(made: &mut String, text: &str) {
    if is_plain(text) {
        made.push_str(text);
        return;
    }
    for character in Json::from(text).to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(made, "\\u{:04x}", u32::from(character)).expect("text takes more text");
            }
            _ => made.push(character),
        }
    }
}

/// Whether no reader of YAML takes the text for anything else.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 13] =
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity", "nil"];
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b' ');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && text.bytes().all(inside)
        && !text.ends_with(' ')
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}
