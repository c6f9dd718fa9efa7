//! Functions of YAML.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeSeed as _;
use serde::ser::{Serialize, Serializer};
use serde_json::Value as Json;
use serde_saphyr::UserMessageFormatter;

use super::json::{TREE, keyed};
use super::tree::{Tree, TreeBudget};
use super::{parsed, write_json};
use crate::budget::CallBudget;
use crate::function::{Call, Fault};
use crate::functions::kernels::signature;
use crate::functions::output::Output;
use crate::functions::text::text;
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::{Body, whole};

/// The rules by which YAML is read, shared by all functions that read it.
pub(super) const YAML: &str = " The input is one document of YAML 1.2. `<<` merges. Keys are texts, or are \
    read as texts. Integers beyond 64 bits become floats. Refused are duplicate keys, tags outside the \
    core schema, `.nan` and `.inf`, more than 1000000 nodes from aliases, and values nested in more than \
    127 lists and maps.";

/// The cost depends on the number of aliases, and on the nodes that each of them repeats.
pub(super) const COST: u32 = Signature::OPAQUE;

/// The memory of the parser, per byte of text.
const READER: u64 = 8;

pub(super) fn add(functions: &mut Functions) {
    let mut to_json = signature(
        "yaml_to_json/1.0.0",
        "The YAML as JSON without white space; keys keep their order, and an empty document is null.",
    );
    to_json.about.to_mut().push_str(YAML);
    functions.add(whole(to_json.bounds_held_output().claims(TREE).nanos_per_kib(COST), |call| {
        let most = call.max_bytes_held()?;
        Ok(Box::new(move |inputs, budget| {
            let document: OrderedDocument = read(&inputs[0], budget)?;
            let mut made = Output::new(most, budget);
            write_json(&mut made, &document)?;
            Ok(made.into_bytes())
        }))
    }));
    let to_yaml = signature(
        "json_to_yaml/1.0.0",
        "The JSON as YAML, one key or element per line. A text of ASCII words has no quotes if YAML 1.2 \
         reads it as text; YAML 1.1 reads some of them as other values, such as `yes` as true, and version \
         2.0.0 quotes those.",
    )
    .bounds_held_output()
    .unlike_deriva(
        "Texts that need quotes are quoted as in JSON. Deriva writes single quotes, no quotes where \
         characters outside ASCII words do no harm, and a text of several lines as a block.",
    );
    functions.add(whole(keyed(to_yaml).nanos_per_kib(15_000), |call| to_yaml_as(call, &WORDS_OF_1_2)));
    let to_yaml = signature(
        "json_to_yaml/2.0.0",
        "The JSON as YAML, one key or element per line. A text of ASCII words has no quotes if YAML 1.1 \
         and 1.2 read it as text; other texts are quoted as in JSON.",
    )
    .bounds_held_output();
    functions.add(whole(keyed(to_yaml).nanos_per_kib(15_000), |call| to_yaml_as(call, &WORDS)));
}

/// Words that some YAML parsers do not read as text, and those that a YAML 1.2 parser does not.
const WORDS: [&str; 13] =
    ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity", "nil"];
const WORDS_OF_1_2: [&str; 3] = ["null", "true", "false"];

fn to_yaml_as(call: &Call<'_>, words: Words) -> Result<Body, Fault> {
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |inputs, budget| {
        let mut made = Output::new(most, budget);
        written(&mut made, &parsed(0, &inputs[0], budget)?, words)?;
        Ok(made.into_bytes())
    }))
}

/// Words that must be quoted, in any letter case.
type Words = &'static [&'static str];

/// Parses a whole input as YAML.
pub(super) fn read<T: Tree>(input: &Bytes, budget: &Arc<CallBudget>) -> Result<T, Fault> {
    let text = text(0, input)?;
    budget.claim(text.len() as u64 * READER)?;
    // The limits allow everything that the text itself contains. Only aliases can produce more.
    let mut bounds = serde_saphyr::Budget::default();
    bounds.max_depth = 127;
    bounds.max_events = text.len().saturating_mul(2).saturating_add(1 << 20);
    bounds.max_nodes = bounds.max_events;
    bounds.max_total_scalar_bytes = text.len().saturating_add(64 << 20);
    // Many values may share one anchor. What they repeat is bounded by the limit of replayed events.
    bounds.enforce_alias_anchor_ratio = false;
    let options = serde_saphyr::options! {
        budget: Some(bounds),
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let read = |tree: &TreeBudget<'_>| {
        serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
            tree.seed().deserialize(reader)
        })
    };
    let wrong = |error: serde_saphyr::Error| {
        Fault::input(0, format!("not YAML: {}", error.render_with_formatter(&UserMessageFormatter)))
    };
    TreeBudget::new(budget).read(read, wrong)
}

/// A document whose keys keep their order.
enum OrderedDocument {
    One(Json),
    List(Vec<OrderedDocument>),
    Map(Vec<(String, OrderedDocument)>),
}

impl Serialize for OrderedDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrderedDocument::One(value) => value.serialize(serializer),
            OrderedDocument::List(values) => serializer.collect_seq(values),
            OrderedDocument::Map(values) => {
                serializer.collect_map(values.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

impl Tree for OrderedDocument {
    type Entries = Vec<(String, OrderedDocument)>;

    fn scalar(value: Json) -> OrderedDocument {
        OrderedDocument::One(value)
    }

    fn list(values: Vec<OrderedDocument>) -> OrderedDocument {
        OrderedDocument::List(values)
    }

    fn add_entry(entries: &mut Vec<(String, OrderedDocument)>, key: String, value: OrderedDocument) {
        entries.push((key, value));
    }

    fn object(entries: Vec<(String, OrderedDocument)>) -> OrderedDocument {
        OrderedDocument::Map(entries)
    }
}

/// Writes a document as YAML.
fn written(made: &mut Output, value: &Json, words: Words) -> Result<(), Fault> {
    if is_block(value) {
        return block(made, value, 0, words);
    }
    scalar(made, value, words)?;
    made.write(b"\n")
}

/// Longer keys are written with a leading `?`. YAML's own limit for keys without it is 1024 characters.
const KEY_MOST: usize = 512;

/// Writes a non-empty list or object. Its first line starts at the current position.
fn block(made: &mut Output, value: &Json, indent: usize, words: Words) -> Result<(), Fault> {
    let mut first = true;
    let mut begin = |made: &mut Output| match std::mem::replace(&mut first, false) {
        true => Ok(()),
        false => spaces(made, indent),
    };
    match value {
        Json::Object(values) => {
            for (key, value) in values {
                begin(made)?;
                let key = quoted(key, words);
                if key.len() > KEY_MOST {
                    made.write(b"? ")?;
                    made.write(key.as_bytes())?;
                    made.write(b"\n")?;
                    spaces(made, indent)?;
                } else {
                    made.write(key.as_bytes())?;
                }
                made.write(b":")?;
                // The elements of a list are indented as deep as the list's key.
                let deeper = indent + if value.is_array() { 0 } else { 2 };
                match is_block(value) {
                    true => {
                        made.write(b"\n")?;
                        spaces(made, deeper)?;
                        block(made, value, deeper, words)?;
                    }
                    false => line(made, value, words)?,
                }
            }
        }
        Json::Array(values) => {
            for value in values {
                begin(made)?;
                made.write(b"-")?;
                match is_block(value) {
                    true => {
                        made.write(b" ")?;
                        block(made, value, indent + 2, words)?;
                    }
                    false => line(made, value, words)?,
                }
            }
        }
        other => scalar(made, other, words)?,
    }
    Ok(())
}

fn spaces(made: &mut Output, count: usize) -> Result<(), Fault> {
    const SPACES: &[u8] = &[b' '; 512];
    made.write(&SPACES[..count.min(SPACES.len())])
}

fn is_block(value: &Json) -> bool {
    match value {
        Json::Object(values) => !values.is_empty(),
        Json::Array(values) => !values.is_empty(),
        _ => false,
    }
}

fn line(made: &mut Output, value: &Json, words: Words) -> Result<(), Fault> {
    made.write(b" ")?;
    scalar(made, value, words)?;
    made.write(b"\n")
}

fn scalar(made: &mut Output, value: &Json, words: Words) -> Result<(), Fault> {
    match value {
        Json::String(text) => made.write(quoted(text, words).as_bytes()),
        other => made.write(other.to_string().as_bytes()),
    }
}

/// A text as YAML: unquoted if every YAML parser reads it as text, otherwise quoted as in JSON.
fn quoted<'a>(text: &'a str, words: Words) -> Cow<'a, str> {
    if is_plain(text, words) {
        return text.into();
    }
    let mut made = String::with_capacity(text.len() + 2);
    for character in Json::from(text).to_string().chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(made, "\\u{:04x}", u32::from(character)).expect("text takes more text");
            }
            _ => made.push(character),
        }
    }
    made.into()
}

/// Whether a text needs no quotes. Texts in `words` always need them.
fn is_plain(text: &str, words: Words) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b' ');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && text.bytes().all(inside)
        && !text.ends_with(' ')
        && !words.iter().any(|word| word.eq_ignore_ascii_case(text))
}
