//! What a template can make of a value, behind `|`. Each of them bounds what it makes, or makes no more than it is given.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::ops::RangeInclusive;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::kinds::{Number, called, integer, number, text};
use super::operators::add;
use super::work::{Stop, Text, Work, elements, item, wrong};

/// A filter.
pub(super) struct Filter {
    pub(super) name: &'static str,
    /// How many arguments.
    pub(super) takes: RangeInclusive<usize>,
    /// It takes `attribute=`, too.
    pub(super) attribute: bool,
    /// It gives parts of what it is given, or a list of them.
    pub(super) parts: bool,
    pub(super) run: Run,
}

type Run = fn(&mut Work, &Value, &Arguments) -> Result<Value, Stop>;

/// What stands in the parentheses.
pub(super) struct Arguments {
    pub(super) values: Vec<Value>,
    pub(super) attribute: Option<String>,
}

impl Arguments {
    /// The value of an element that counts.
    fn key(&self, element: &Value) -> Result<Value, Stop> {
        let Some(name) = &self.attribute else { return Ok(element.clone()) };
        match item(element, &Value::from(name)) {
            key if key.is_undefined() => wrong(format!("an element has no `{name}`")),
            key => Ok(key),
        }
    }
}

const fn filter(name: &'static str, takes: RangeInclusive<usize>, run: Run) -> Filter {
    Filter { name, takes, attribute: false, parts: false, run }
}

/// A filter that gives parts.
const fn parts(name: &'static str, takes: RangeInclusive<usize>, run: Run) -> Filter {
    Filter { name, takes, attribute: false, parts: true, run }
}

impl Filter {
    const fn with_attribute(mut self) -> Filter {
        self.attribute = true;
        self
    }

    /// Whether the value may be missing.
    pub(super) fn takes_undefined(&self) -> bool {
        matches!(self.name, "d" | "default")
    }
}

/// All of them.
pub(super) static FILTERS: [Filter; 34] = [
    filter("abs", 0..=0, |_, value, _| match number(value)? {
        Number::Integer(integer) => match integer.checked_abs() {
            Some(integer) => Ok(Number::Integer(integer).into()),
            None => wrong("the number is too large"),
        },
        Number::Float(float) => Ok(float.abs().into()),
    }),
    filter("capitalize", 0..=0, |work, value, _| {
        cased(work, value, |text| {
            let mut rest = text.chars();
            rest.next()
                .into_iter()
                .flat_map(char::to_uppercase)
                .chain(rest.flat_map(char::to_lowercase))
                .collect()
        })
    }),
    filter("count", 0..=0, length),
    parts("d", 0..=1, default),
    parts("default", 0..=1, default),
    filter("e", 0..=0, escape),
    filter("escape", 0..=0, escape),
    parts("first", 0..=0, |_, value, _| edge(value, |_| 0)),
    filter("float", 0..=0, |work, value, _| match value.as_str() {
        None => Ok(number(value)?.float().into()),
        Some(digits) => {
            work.look(digits.len())?;
            digits.trim().parse::<f64>().map(Value::from).or_else(|_| wrong("the text is not a number"))
        }
    }),
    filter("int", 0..=0, int),
    parts("items", 0..=0, |work, value, _| entries(work, value, |key, value| vec![key, value].into())),
    filter("join", 0..=1, join).with_attribute(),
    parts("keys", 0..=0, |work, value, _| entries(work, value, |key, _| key)),
    parts("last", 0..=0, |_, value, _| edge(value, |len| len.wrapping_sub(1))),
    filter("length", 0..=0, length),
    parts("lines", 0..=0, |work, value, _| cut(work, text(value)?.lines())),
    parts("list", 0..=0, |work, value, _| Ok(list(work, value)?.into())),
    filter("lower", 0..=0, |work, value, _| cased(work, value, str::to_lowercase)),
    parts("map", 0..=0, |work, value, arguments| {
        let mut list = list(work, value)?;
        for element in &mut list {
            *element = arguments.key(element)?;
        }
        Ok(list.into())
    })
    .with_attribute(),
    parts("max", 0..=0, |work, value, arguments| {
        edge_of_sorted(work, value, arguments, |mut list| list.pop())
    })
    .with_attribute(),
    parts("min", 0..=0, |work, value, arguments| {
        edge_of_sorted(work, value, arguments, |list| list.into_iter().next())
    })
    .with_attribute(),
    filter("replace", 2..=2, replace),
    parts("reverse", 0..=0, |work, value, _| match value.as_str() {
        Some(text) => {
            work.look(text.len())?;
            let reversed = text.chars().rev().collect();
            work.text(reversed)
        }
        None => {
            let mut list = list(work, value)?;
            list.reverse();
            Ok(list.into())
        }
    }),
    filter("round", 0..=1, round),
    parts("sort", 0..=0, |work, value, arguments| Ok(sorted(work, value, arguments)?.into()))
        .with_attribute(),
    parts("split", 0..=1, |work, value, arguments| match arguments.values.first() {
        None => cut(work, text(value)?.split_whitespace()),
        Some(separator) if text(separator)?.is_empty() => wrong("nothing cannot be a separator"),
        Some(separator) => cut(work, text(value)?.split(text(separator)?)),
    }),
    filter("string", 0..=0, |work, value, _| work.written(|made| write!(made, "{value}"))),
    filter("sum", 0..=0, |work, value, arguments| {
        let mut sum = Value::from(0);
        for element in list(work, value)? {
            let key = arguments.key(&element)?;
            number(&key)?;
            sum = add(work, &sum, &key)?;
        }
        Ok(sum)
    })
    .with_attribute(),
    filter("title", 0..=0, |work, value, _| {
        cased(work, value, |text| {
            let mut inside = false;
            text.chars().fold(String::with_capacity(text.len()), |mut made, letter| {
                match std::mem::replace(&mut inside, letter.is_alphanumeric()) {
                    true => made.extend(letter.to_lowercase()),
                    false => made.extend(letter.to_uppercase()),
                }
                made
            })
        })
    }),
    filter("tojson", 0..=0, |work, value, _| work.written(|made| json(made, value))),
    parts("trim", 0..=0, |work, value, _| cased(work, value, |text| text.trim().to_owned())),
    parts("unique", 0..=0, unique).with_attribute(),
    filter("upper", 0..=0, |work, value, _| cased(work, value, str::to_uppercase)),
    parts("values", 0..=0, |work, value, _| entries(work, value, |_, value| value)),
];

/// What has no value has another one.
fn default(_: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    match value.is_undefined() {
        true => Ok(arguments.values.first().cloned().unwrap_or_else(|| "".into())),
        false => Ok(value.clone()),
    }
}

/// A text that becomes another one, at most three times as long.
fn cased(work: &mut Work, value: &Value, change: fn(&str) -> String) -> Result<Value, Stop> {
    let text = text(value)?;
    work.look(text.len())?;
    work.text(change(text))
}

fn length(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    work.look(value.as_str().map_or(0, str::len))?;
    match value.len() {
        Some(len) => Ok(len.into()),
        None => wrong(format!("{} has no length", called(value))),
    }
}

fn escape(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let text = text(value)?;
    work.written(|made| {
        let mut left = text;
        while let Some(at) = left.find(['&', '<', '>', '"', '\'']) {
            made.write_str(&left[..at])?;
            made.write_str(match left.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#x27;",
            })?;
            left = &left[at + 1..];
        }
        made.write_str(left)
    })
}

fn int(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    if let Some(digits) = value.as_str() {
        work.look(digits.len())?;
        return match digits.trim().parse() {
            Ok(integer) => Ok(Number::Integer(integer).into()),
            Err(_) => wrong("the text is not an integer"),
        };
    }
    match number(value)? {
        Number::Float(float) if float.abs() < 1e38 => Ok(Number::Integer(float.trunc() as i128).into()),
        Number::Float(_) => wrong("the number is too large for an integer"),
        integer => Ok(integer.into()),
    }
}

fn round(_: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let digits = match arguments.values.first() {
        None => 0,
        Some(digits) => match integer(digits)? {
            digits @ 0..=15 => digits as i32,
            other => return wrong(format!("{other} is not a number of digits, 0 to 15")),
        },
    };
    match number(value)? {
        Number::Float(float) => {
            let scale = 10_f64.powi(digits);
            let rounded = (float * scale).round() / scale;
            Ok(if rounded.is_finite() { rounded } else { float }.into())
        }
        integer => Ok(integer.into()),
    }
}

/// The elements of a list, or the keys of a map.
pub(super) fn list(work: &mut Work, value: &Value) -> Result<Vec<Value>, Stop> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map => work.list(elements(value)),
        ValueKind::String => wrong("takes a list, not a text; `split` and `lines` make one"),
        _ => wrong(format!("takes a list, not {}", called(value))),
    }
}

fn edge(value: &Value, index: fn(usize) -> usize) -> Result<Value, Stop> {
    match (value.kind(), value.len()) {
        (ValueKind::Seq, Some(0)) => wrong("the list is empty"),
        (ValueKind::Seq, Some(len)) => Ok(item(value, &index(len).into())),
        _ => wrong(format!("takes a list, not {}", called(value))),
    }
}

fn edge_of_sorted(
    work: &mut Work,
    value: &Value,
    arguments: &Arguments,
    take: fn(Vec<Value>) -> Option<Value>,
) -> Result<Value, Stop> {
    match take(sorted(work, value, arguments)?) {
        Some(element) => Ok(element),
        None => wrong("the list is empty"),
    }
}

fn entries(work: &mut Work, value: &Value, entry: fn(Value, Value) -> Value) -> Result<Value, Stop> {
    if value.kind() != ValueKind::Map {
        return wrong(format!("takes a map, not {}", called(value)));
    }
    let entries = elements(value).map(|key| {
        let value = item(value, &key);
        entry(key, value)
    });
    // An entry is a list of two, perhaps.
    work.make(value.len().unwrap_or(0).saturating_mul(4 * size_of::<Value>()))?;
    Ok(work.list(entries)?.into())
}

fn cut<'a>(work: &mut Work, cuts: impl Iterator<Item = &'a str>) -> Result<Value, Stop> {
    let mut list = Vec::new();
    for part in cuts {
        work.steps(1)?;
        work.make(part.len() + size_of::<Value>())?;
        list.push(Value::from(part));
    }
    Ok(list.into())
}

/// Elements with keys that can be told apart and put in order at little cost.
fn keyed(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Vec<(Value, Value)>, Stop> {
    let elements = list(work, value)?;
    work.make(2 * size_of::<Value>() * elements.len())?;
    let (mut bytes, mut keyed) = (0, Vec::with_capacity(elements.len()));
    for element in elements {
        let key = arguments.key(&element)?;
        match key.kind() {
            ValueKind::Number | ValueKind::Bool | ValueKind::None => {}
            ValueKind::String => bytes += key.as_str().map_or(0, str::len),
            _ => return wrong(format!("has no order for {}; `attribute=` names what counts", called(&key))),
        }
        keyed.push((key, element));
    }
    let depth = keyed.len().checked_ilog2().unwrap_or(0) as usize + 1;
    work.look((bytes + 4 * keyed.len()).saturating_mul(depth))?;
    Ok(keyed)
}

fn sorted(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Vec<Value>, Stop> {
    let mut keyed = keyed(work, value, arguments)?;
    if let Some(pair) = keyed.windows(2).find(|pair| pair[0].0.kind() != pair[1].0.kind()) {
        let (one, other) = (called(&pair[0].0), called(&pair[1].0));
        return wrong(format!("has no order for {one} and {other}"));
    }
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(keyed.into_iter().map(|(_, element)| element).collect())
}

fn unique(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let mut seen = BTreeSet::new();
    let keyed = keyed(work, value, arguments)?;
    work.make(2 * size_of::<Value>() * keyed.len())?;
    let new = |(key, element)| seen.insert(key).then_some(element);
    Ok(keyed.into_iter().filter_map(new).collect::<Vec<Value>>().into())
}

fn join(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let separator = arguments.values.first().map_or(Ok(""), text)?;
    let mut list = list(work, value)?;
    for element in &mut list {
        *element = arguments.key(element)?;
    }
    work.written(|made| {
        list.iter().enumerate().try_for_each(|(index, element)| match index {
            0 => write!(made, "{element}"),
            _ => write!(made, "{separator}{element}"),
        })
    })
}

fn replace(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let [text, from, to] = [text(value)?, text(&arguments.values[0])?, text(&arguments.values[1])?];
    if from.is_empty() {
        return wrong("nothing cannot be replaced");
    }
    work.look(text.len())?;
    work.written(|made| {
        let mut behind = 0;
        for (at, found) in text.match_indices(from) {
            made.write_str(&text[behind..at])?;
            made.write_str(to)?;
            behind = at + found.len();
        }
        made.write_str(&text[behind..])
    })
}

fn json(made: &mut Text<'_>, value: &Value) -> fmt::Result {
    match value.kind() {
        ValueKind::None => made.write_str("null"),
        ValueKind::Bool => write!(made, "{}", value.is_true()),
        ValueKind::String => quote(made, value.as_str().unwrap_or_default()),
        ValueKind::Number => match f64::try_from(value.clone()) {
            // JSON has no such number.
            Ok(float) if !float.is_finite() => made.write_str("null"),
            _ => write!(made, "{value}"),
        },
        ValueKind::Seq => {
            made.write_char('[')?;
            for (index, element) in elements(value).enumerate() {
                made.write_str(if index > 0 { "," } else { "" })?;
                json(made, &element)?;
            }
            made.write_char(']')
        }
        ValueKind::Map => {
            made.write_char('{')?;
            for (index, key) in elements(value).enumerate() {
                made.write_str(if index > 0 { "," } else { "" })?;
                quote(made, key.as_str().unwrap_or_default())?;
                made.write_char(':')?;
                json(made, &item(value, &key))?;
            }
            made.write_char('}')
        }
        _ => Err(fmt::Error),
    }
}

fn quote(made: &mut Text<'_>, text: &str) -> fmt::Result {
    made.write_char('"')?;
    let mut left = text;
    while let Some(at) = left.find(|letter: char| letter < ' ' || letter == '"' || letter == '\\') {
        made.write_str(&left[..at])?;
        match left.as_bytes()[at] {
            b'\n' => made.write_str("\\n")?,
            b'\r' => made.write_str("\\r")?,
            b'\t' => made.write_str("\\t")?,
            mark @ (b'"' | b'\\') => write!(made, "\\{}", char::from(mark))?,
            control => write!(made, "\\u{control:04x}")?,
        }
        left = &left[at + 1..];
    }
    made.write_str(left)?;
    made.write_char('"')
}
