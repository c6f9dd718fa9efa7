//! Rules for plans.

use anabranch_text::{Problems, size};
use regex::Regex;
use serde_json::{Map, Value};

use super::entries::Limits;
use super::tables::{self, File};
use crate::bounds::Bounds;
use crate::fields::Fields;
use crate::json::show;

const NAME: &str = "^[A-Za-z0-9_]+$";
/// A name of a plan does not begin with a hyphen: it would look like an option of a command.
const PLAN_NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_-]*$";

impl Default for Limits {
    /// The rules where no file says otherwise.
    fn default() -> Limits {
        let name = Regex::new(NAME).expect("the pattern is a regex");
        let plan_name = Regex::new(PLAN_NAME).expect("the pattern is a regex");
        let bounds = Bounds::default();
        Limits { plan_name, node_id: name, max_fanout: 10_000_000, max_user_id: None, bounds }
    }
}

/// Reads `validation.toml`.
pub(super) fn limits(file: File<'_>, problems: &mut Problems) -> Limits {
    let mut limits = Limits::default();
    let mut top = Fields::new(file.map, file.name, problems);
    tables::version(&mut top);
    let [patterns, numbers, words] = ["patterns", "limits", "enums"]
        .map(|name| top.optional::<&Map<String, Value>>(name).map(|map| (map, top.place(name))));
    if let Some((map, place)) = patterns {
        let mut fields = Fields::new(map, place, top.problems);
        pattern(&mut fields, "plan_name", &mut limits.plan_name);
        pattern(&mut fields, "node_id", &mut limits.node_id);
        fields.finish();
    }
    if let Some((map, place)) = numbers {
        let mut fields = Fields::new(map, place, top.problems);
        limits.max_fanout = fields.optional("max_fanout").unwrap_or(limits.max_fanout);
        limits.max_user_id = fields.optional("max_user_id");
        if limits.max_user_id.is_some_and(|most| most < 1) {
            fields.error("max_user_id", "must be at least 1");
        }
        limits.bounds = bounds(&mut fields).over(limits.bounds);
        if fields.optional::<i64>("plan_schema_version").is_some_and(|version| version != 1) {
            fields.error("plan_schema_version", "this program reads plans of version 1");
        }
        fields.finish();
    }
    if let Some((map, place)) = words {
        let mut fields = Fields::new(map, place, top.problems);
        fixed(&mut fields, "regex_flags", &["", "i"]);
        fixed(&mut fields, "cmp_operators", &["==", "!=", "<", "<=", ">", ">="]);
        fields.finish();
    }
    top.finish();
    limits
}

fn pattern(fields: &mut Fields<'_, '_>, name: &'static str, pattern: &mut Regex) {
    match fields.optional::<&str>(name).map(Regex::new) {
        Some(Ok(regex)) => *pattern = regex,
        Some(Err(error)) => fields.error(name, format!("is not a regex: {}", last_line(&error))),
        None => {}
    }
}

/// The last line of a regex error, which has the message. The lines before it are a drawing.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The bounds of requests in a file; `None` for those that it does not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundsSettings {
    /// `max_rows`.
    pub rows: Option<u32>,
    /// `max_bytes`.
    pub bytes: Option<u64>,
}

impl BoundsSettings {
    /// These bounds, with `others` for those that are not set.
    pub fn over(self, others: Bounds) -> Bounds {
        Bounds { rows: self.rows.map_or(others.rows, u64::from), bytes: self.bytes.unwrap_or(others.bytes) }
    }
}

/// Reads `max_rows` and `max_bytes`.
pub(crate) fn bounds(fields: &mut Fields<'_, '_>) -> BoundsSettings {
    let rows: Option<u32> = fields.optional("max_rows");
    if rows == Some(0) {
        fields.error_with_help("max_rows", "must be at least 1", "leave it out for the default");
    }
    let bytes = match fields.raw("max_bytes") {
        None => None,
        Some(Value::String(text)) => match size::parse(text) {
            Ok(bytes) => Some(bytes),
            Err(what) => {
                fields.error("max_bytes", what);
                None
            }
        },
        Some(Value::Number(number)) if number.as_u64().is_some() => number.as_u64(),
        Some(other) => {
            let what =
                format!("must be a number of bytes, or a size such as \"256MiB\", not {}", show(other));
            fields.error("max_bytes", what);
            None
        }
    };
    BoundsSettings { rows, bytes }
}

/// A list that the file states but cannot change.
fn fixed(fields: &mut Fields<'_, '_>, name: &'static str, words: &[&str]) {
    let Some(list) = fields.optional::<&[Value]>(name) else { return };
    let same = list.len() == words.len()
        && words.iter().all(|word| list.iter().any(|value| value.as_str() == Some(word)));
    if !same {
        fields.error(name, format!("this program has {words:?}; the file cannot change that"));
    }
}
