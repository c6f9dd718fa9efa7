//! The guards of a node, which limit its time and replace its rows: `timeout_ms`, `fallback`, `range`.

use std::fmt;
use std::time::Duration;

use anabranch_rows::{Key, Kind};
use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use super::names::Names;
use crate::fields::Fields;
use crate::json::{show, whole};
use crate::registry::{KeyEntry, KeyKind, Keys};
use crate::value::Scalar;

/// The longest time that a plan may set, in milliseconds: an hour.
const LONGEST_MS: i64 = 3_600_000;
/// The longest that a value may be remembered, in milliseconds: a week.
const OLDEST_MS: i64 = 7 * 24 * LONGEST_MS;
/// The most fallbacks of one node.
const MOST_FALLBACKS: usize = 4;

/// The timeout, the fallbacks and the ranges of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guard {
    /// The timeout of the node.
    pub timeout: Option<Duration>,
    /// The fallbacks if it fails, in order. Without one, the request fails.
    pub fallbacks: Vec<Fallback>,
    /// The valid ranges of these columns, regardless of what produces them.
    pub ranges: Vec<Range>,
}

/// A fallback: the rows that replace those of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Fallback {
    /// No rows.
    Empty,
    /// The rows that it was given, without the columns that it adds.
    Pass,
    /// The rows that it was given, with these values in the columns that it adds.
    Default(Vec<(Key, Scalar)>),
    /// The last replies of its source to the same commands.
    Stale(StaleTerms),
    /// The rows of another node, which runs only then; its place in the document.
    Node(usize),
}

/// The stale values that will do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StaleTerms {
    /// The oldest that will do.
    pub max_age: Duration,
    /// The least share of the keys of which something must be known.
    pub min_known: f64,
}

/// The share of known keys below which the next fallback is tried, if the plan names none.
const MIN_KNOWN: f64 = 0.5;

/// The valid range of a column's values, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The column.
    pub key: Key,
    /// The lower end.
    pub least: f64,
    /// The upper end.
    pub most: f64,
}

impl Range {
    /// True if a scalar is a number in the range.
    pub(crate) fn has(&self, value: &Scalar) -> bool {
        match value {
            Scalar::Int(value) => self.holds(*value as f64),
            Scalar::Float(value) => self.holds(*value),
            Scalar::Bool(_) | Scalar::Text(_) => false,
        }
    }

    /// True if a number is in the range.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.least..=self.most).contains(&value)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.least, self.most)
    }
}

impl Guard {
    /// True if no guard is set.
    pub fn is_empty(&self) -> bool {
        self.timeout.is_none() && self.fallbacks.is_empty() && self.ranges.is_empty()
    }
}

/// Parses a number of milliseconds. Problems are reported.
pub(super) fn millis(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Duration> {
    let value = fields.raw(name)?;
    let millis = whole(value).filter(|millis| (1..=LONGEST_MS).contains(millis));
    if millis.is_none() {
        let what =
            format!("must be a whole number of milliseconds from 1 to {LONGEST_MS}, not {}", show(value));
        fields.error(name, what);
    }
    millis.map(|millis| Duration::from_millis(millis.unsigned_abs()))
}

/// The guard fields of a node, before names are looked up.
pub(super) struct Raw<'a> {
    timeout: Option<Duration>,
    fallback: Option<&'a Value>,
    range: Option<&'a Map<String, Value>>,
}

/// Takes a node's fields.
pub(super) fn take<'a>(fields: &mut Fields<'a, '_>) -> Raw<'a> {
    let timeout = millis(fields, "timeout_ms");
    Raw { timeout, fallback: fields.raw("fallback"), range: fields.optional("range") }
}

/// Reads the fields of a node.
pub(super) struct Reader<'a> {
    /// The node.
    pub(super) place: &'a str,
    pub(super) names: &'a Names<'a>,
    pub(super) keys: &'a Keys,
    pub(super) problems: &'a mut Problems,
}

impl<'a> Reader<'a> {
    pub(super) fn read(&mut self, raw: &Raw<'_>) -> Guard {
        let mut guard = Guard { timeout: raw.timeout, ..Guard::default() };
        match raw.fallback {
            None | Some(Value::Null) => {}
            Some(Value::String(word)) if word == "fail" => {}
            Some(Value::Array(list)) => {
                if list.is_empty() || list.len() > MOST_FALLBACKS {
                    self.error("fallback", format!("a list has 1 to {MOST_FALLBACKS}, not {}", list.len()));
                }
                for (at, value) in list.iter().take(MOST_FALLBACKS).enumerate() {
                    guard.fallbacks.extend(self.fallback(&format!("fallback[{at}]"), value));
                }
                self.reached(&guard.fallbacks);
            }
            Some(value) => guard.fallbacks.extend(self.fallback("fallback", value)),
        }
        for (name, value) in raw.range.into_iter().flatten() {
            guard.ranges.extend(self.range(name, value));
        }
        guard
    }

    /// Behind one that cannot fail the others are for nothing.
    fn reached(&mut self, fallbacks: &[Fallback]) {
        if fallbacks.iter().filter(|fallback| matches!(fallback, Fallback::Node(_))).count() > 1 {
            self.error("fallback", "only one of them can be a node; that node may have fallbacks of its own");
        }
        let sure = |fallback: &Fallback| !matches!(fallback, Fallback::Stale(_) | Fallback::Node(_));
        if let Some(at) = fallbacks.iter().position(sure)
            && at + 1 < fallbacks.len()
        {
            self.error(&format!("fallback[{}]", at + 1), "the one before it cannot fail: it is never used");
        }
    }

    fn fallback(&mut self, field: &str, value: &Value) -> Option<Fallback> {
        let known = "`fail`, `empty`, `pass`, {\"default\": {key: value}}, {\"stale\": {\"max_age_ms\": n}} or \
                     {\"node\": id}";
        let single = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.iter().next());
        match (value.as_str(), single) {
            (Some("empty"), _) => Some(Fallback::Empty),
            (Some("pass"), _) => Some(Fallback::Pass),
            (Some("fail"), _) => {
                self.error(field, "`fail` is what happens anyway; it stands alone or not at all");
                None
            }
            (_, Some((name, Value::Object(values)))) if name == "default" => {
                let values: Vec<_> =
                    values.iter().filter_map(|(name, value)| self.value(field, name, value)).collect();
                Some(Fallback::Default(values))
            }
            (_, Some((name, Value::Object(terms)))) if name == "stale" => {
                let place = format!("{}, {field}", self.place);
                let mut fields = Fields::new(terms, place, self.problems);
                let age: Option<i64> = fields.required("max_age_ms");
                if age.is_some_and(|age| !(1..=OLDEST_MS).contains(&age)) {
                    fields.error("max_age_ms", format!("must be from 1 to {OLDEST_MS}"));
                }
                let min_known = fields.raw("min_known").map_or(Some(MIN_KNOWN), Value::as_f64);
                let min_known = min_known.filter(|share| (0.0..=1.0).contains(share));
                if min_known.is_none() {
                    fields.error("min_known", "must be a share of the keys, from 0 to 1");
                }
                fields.finish();
                let max_age = Duration::from_millis(age?.unsigned_abs());
                Some(Fallback::Stale(StaleTerms { max_age, min_known: min_known? }))
            }
            (_, Some((name, Value::String(id)))) if name == "node" => {
                let place = format!("{}, {field}", self.place);
                self.names.node(id, &place, self.problems).map(Fallback::Node)
            }
            _ => {
                self.error(field, format!("must be {known}, not {}", show(value)));
                None
            }
        }
    }

    /// Parses a value for a column, of its kind.
    fn value(&mut self, field: &str, name: &str, value: &Value) -> Option<(Key, Scalar)> {
        let entry = self.key(field, name)?;
        let KeyKind::Column(kind) = entry.kind else {
            self.error(field, format!("key `{name}` is a feature bundle, not a column"));
            return None;
        };
        let read = match kind {
            Kind::Int => whole(value).map(Scalar::Int),
            Kind::Float => value.as_f64().map(Scalar::Float),
            Kind::Bool => value.as_bool().map(Scalar::Bool),
            Kind::Text => value.as_str().map(|text| Scalar::Text(text.into())),
        };
        if read.is_none() {
            self.error(field, format!("`{name}` is {kind}, and {} is not", show(value)));
        }
        Some((entry.key, read?))
    }

    fn range(&mut self, name: &str, value: &Value) -> Option<Range> {
        let entry = self.key("range", name)?;
        let ends = value.as_array().filter(|ends| ends.len() == 2);
        let ends = ends.and_then(|ends| ends[0].as_f64().zip(ends[1].as_f64()));
        match ends.filter(|(least, most)| least <= most) {
            Some((least, most)) if matches!(entry.kind, KeyKind::Column(Kind::Int | Kind::Float)) => {
                Some(Range { key: entry.key, least, most })
            }
            Some(_) => {
                self.error("range", format!("`{name}` has no numbers"));
                None
            }
            None => {
                self.error(
                    "range",
                    format!("`{name}` must be [least, most], two numbers, not {}", show(value)),
                );
                None
            }
        }
    }

    fn key(&mut self, field: &str, name: &str) -> Option<&'a KeyEntry> {
        let entry = self.keys.named(name);
        if entry.is_none() {
            let place = format!("{}, {field}", self.place);
            let mut problem = Problem::new(place, format!("there is no key {}", quote(name)));
            problem.help = self.problems.did_you_mean(name, self.keys.iter().map(|entry| &*entry.name));
            self.problems.error(problem);
        }
        entry
    }

    fn error(&mut self, field: &str, what: impl Into<String>) {
        self.problems.error(Problem::new(format!("{}, {field}", self.place), what));
    }
}
