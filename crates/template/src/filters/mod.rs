//! Filters: the words after `|`. Each of them bounds the memory it makes, or makes no more than it is given.

mod text;
mod words;
mod list;
mod order;
mod number;

use std::ops::RangeInclusive;

use anabranch_value::Value;

use crate::error::{Stop, wrong};
use crate::evaluate::index_in;
use crate::template::Dialect;
use crate::work::{Work, is_true};

pub(crate) use list::joined;
pub(crate) use number::truncated;
pub(crate) use text::{capitalized, changed, python_title, replaced};
pub(crate) use words::{cut, split_text};

/// A filter.
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    /// The names of its arguments, in order.
    pub(crate) params: &'static [&'static str],
    /// So many of them must be given.
    pub(crate) required: usize,
    /// More arguments may follow.
    pub(crate) variadic: bool,
    /// The number of arguments without names in the plain dialect, if that has the filter.
    pub(crate) plain: Option<RangeInclusive<usize>>,
    /// The result is a part of the value, or a list of parts.
    pub(crate) parts: bool,
    pub(crate) action: Action,
}

/// The function of a filter.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    Value(Run),
    /// The result may be undefined.
    Maybe(MaybeRun),
    /// The result depends on the inputs of the run.
    Random,
}

type Run = fn(&mut Work, &Value, &Arguments) -> Result<Value, Stop>;
type MaybeRun = fn(&mut Work, &Value, &Arguments) -> Result<Option<Value>, Stop>;

/// The arguments of a filter, in the order of its parameters.
pub(crate) struct Arguments {
    pub(crate) values: Vec<Option<Value>>,
}

impl Arguments {
    /// An argument, unless it is missing or none.
    fn get(&self, index: usize) -> Option<&Value> {
        self.values.get(index)?.as_ref().filter(|value| !value.is_null())
    }

    fn text<'a>(&'a self, index: usize, otherwise: &'a str) -> Result<&'a str, Stop> {
        match self.get(index) {
            None => Ok(otherwise),
            Some(Value::Text(text)) => Ok(text),
            Some(other) => wrong(format!("takes a text, not {}", crate::kinds::called(other))),
        }
    }

    fn size(&self, work: &Work, index: usize, otherwise: usize) -> Result<usize, Stop> {
        self.get(index).map_or(Ok(otherwise), |value| work.size(value))
    }

    fn flag(&self, index: usize) -> bool {
        self.get(index).is_some_and(is_true)
    }
}

/// A key of a path such as `a.0.b`.
pub(crate) fn path_key(part: &str) -> Value {
    part.parse::<i64>().map_or_else(|_| part.into(), Value::Int)
}

/// The part of an element that an argument `attribute` names: a field, an index, or a path of them.
fn attribute(element: &Value, path: Option<&Value>) -> Result<Value, Stop> {
    let missing = |name: &str| wrong(format!("an element has no `{name}`"));
    match path {
        None => Ok(element.clone()),
        Some(Value::Int(index)) => match element.as_list() {
            Some(list) => match index_in(list.len(), *index) {
                Some(at) => Ok(list[at].clone()),
                None => missing(&index.to_string()),
            },
            None => missing(&index.to_string()),
        },
        Some(Value::Text(path)) => {
            if let Some(value) = element.get(path) {
                return Ok(value.clone());
            }
            let mut value = element;
            for part in path.split('.') {
                let found = match (value, path_key(part)) {
                    (Value::List(list), Value::Int(index)) => {
                        index_in(list.len(), index).and_then(|at| list.get(at))
                    }
                    (value, _) => value.get(part),
                };
                match found {
                    Some(found) => value = found,
                    None => return missing(path),
                }
            }
            Ok(value.clone())
        }
        Some(other) => {
            wrong(format!("`attribute` is a text or an index, not {}", crate::kinds::called(other)))
        }
    }
}

const fn filter(name: &'static str, params: &'static [&'static str], required: usize, run: Run) -> Filter {
    Filter { name, params, required, variadic: false, plain: None, parts: false, action: Action::Value(run) }
}

const fn maybe(
    name: &'static str,
    params: &'static [&'static str],
    required: usize,
    run: MaybeRun,
) -> Filter {
    Filter { name, params, required, variadic: false, plain: None, parts: false, action: Action::Maybe(run) }
}

impl Filter {
    /// A filter that the plain dialect has too, with so many arguments.
    const fn plain(mut self, takes: RangeInclusive<usize>) -> Filter {
        self.plain = Some(takes);
        self
    }

    const fn parts(mut self) -> Filter {
        self.parts = true;
        self
    }

    const fn variadic(mut self) -> Filter {
        self.variadic = true;
        self
    }

    const fn random(mut self) -> Filter {
        self.action = Action::Random;
        self
    }
}

const FOLD: &[&str] = &["case_sensitive", "attribute"];

static FILTERS: [Filter; 56] = [
    filter("abs", &[], 0, number::abs).plain(0..=0),
    maybe("attr", &["name"], 1, list::attr),
    filter("batch", &["linecount", "fill_with"], 1, list::batch),
    filter("capitalize", &[], 0, text::capitalize).plain(0..=0),
    filter("center", &["width"], 0, text::center),
    filter("count", &[], 0, list::length).plain(0..=0),
    filter("d", &["default_value", "boolean"], 0, list::same).plain(0..=1).parts(),
    filter("default", &["default_value", "boolean"], 0, list::same).plain(0..=1).parts(),
    filter("dictsort", &["case_sensitive", "by", "reverse"], 0, order::dictsort),
    filter("e", &[], 0, text::escape).plain(0..=0),
    filter("escape", &[], 0, text::escape).plain(0..=0),
    maybe("first", &[], 0, list::first).plain(0..=0).parts(),
    filter("float", &["default"], 0, number::float).plain(0..=0),
    filter("forceescape", &[], 0, text::escape),
    filter("format", &[], 0, number::format).variadic(),
    filter("groupby", &["attribute", "default", "case_sensitive"], 1, order::groupby),
    filter("indent", &["width", "first", "blank"], 0, words::indent),
    filter("int", &["default", "base"], 0, number::int).plain(0..=0),
    filter("items", &[], 0, list::items).plain(0..=0).parts(),
    filter("join", &["d", "attribute"], 0, list::join).plain(0..=1),
    maybe("jsonpath", &["path"], 1, list::json_path),
    filter("keys", &[], 0, list::keys).plain(0..=0).parts(),
    maybe("last", &[], 0, list::last).plain(0..=0).parts(),
    filter("length", &[], 0, list::length).plain(0..=0),
    filter("lines", &[], 0, words::lines).plain(0..=0).parts(),
    filter("list", &[], 0, list::list).plain(0..=0).parts(),
    filter("lower", &[], 0, text::lower).plain(0..=0),
    filter("map", &["attribute", "default"], 0, list::map).plain(0..=0).parts(),
    maybe("max", FOLD, 0, order::max).plain(0..=0).parts(),
    maybe("min", FOLD, 0, order::min).plain(0..=0).parts(),
    filter("pprint", &[], 0, text::pprint),
    filter("random", &[], 0, list::same).random(),
    filter("reject", &[], 0, list::same),
    filter("rejectattr", &[], 0, list::same),
    filter("replace", &["old", "new", "count"], 2, text::replace).plain(2..=2),
    filter("reverse", &[], 0, list::reverse).plain(0..=0).parts(),
    filter("round", &["precision", "method"], 0, number::round).plain(0..=1),
    filter("safe", &[], 0, list::same),
    filter("select", &[], 0, list::same),
    filter("selectattr", &[], 0, list::same),
    filter("slice", &["slices", "fill_with"], 1, list::slice),
    filter("sort", &["reverse", "case_sensitive", "attribute"], 0, order::sort).plain(0..=0).parts(),
    filter("split", &["separator", "maxsplit"], 0, words::split).plain(0..=1).parts(),
    filter("string", &[], 0, text::string).plain(0..=0),
    filter("striptags", &[], 0, words::striptags),
    filter("sum", &["attribute", "start"], 0, number::sum).plain(0..=0),
    filter("title", &[], 0, text::title).plain(0..=0),
    filter("tojson", &["indent"], 0, text::tojson).plain(0..=0),
    filter("trim", &["chars"], 0, text::trim).plain(0..=0).parts(),
    filter("truncate", &["length", "killwords", "end", "leeway"], 0, words::truncate),
    filter("unique", FOLD, 0, order::unique).plain(0..=0).parts(),
    filter("upper", &[], 0, text::upper).plain(0..=0),
    filter("urlencode", &[], 0, text::urlencode),
    filter("values", &[], 0, list::values).plain(0..=0).parts(),
    filter("wordcount", &[], 0, words::wordcount),
    filter("wordwrap", &["width", "break_long_words", "wrapstring"], 0, words::wordwrap),
];

/// A filter of a dialect.
pub(crate) fn find(name: &str, dialect: Dialect) -> Option<&'static Filter> {
    let filter = FILTERS.iter().find(|filter| filter.name == name)?;
    (filter.plain.is_some() || dialect == Dialect::Dataset).then_some(filter)
}

/// The names of all filters of a dialect.
pub(crate) fn names(dialect: Dialect) -> Vec<&'static str> {
    let filters = FILTERS.iter().filter(|filter| filter.plain.is_some() || dialect == Dialect::Dataset);
    filters.map(|filter| filter.name).collect()
}
