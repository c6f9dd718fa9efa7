//! Filters of texts.

use std::fmt::Write;

use anabranch_value::Value;

use super::Arguments;
use crate::error::{Stop, wrong};
use crate::print::{self, COMPACT, Layout, SPACED};
use crate::work::Work;

/// A text that becomes another one, at most three times as long.
pub(crate) fn changed(work: &mut Work, value: &Value, change: fn(&str) -> String) -> Result<Value, Stop> {
    let text = work.text(value)?;
    work.look(text.len())?;
    work.made_text(&change(&text))
}

pub(crate) fn upper(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    changed(work, value, str::to_uppercase)
}

pub(crate) fn lower(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    changed(work, value, str::to_lowercase)
}

/// A text with a capital first letter and small ones behind it.
pub(crate) fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest.flat_map(char::to_lowercase)).collect()
}

pub(crate) fn capitalize(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    changed(work, value, capitalized)
}

/// A text whose words have capital first letters; a word begins where this is true of the letter before.
fn titled(text: &str, separates: impl Fn(char) -> bool) -> String {
    let mut inside = false;
    text.chars().fold(String::with_capacity(text.len()), |mut made, letter| {
        match std::mem::replace(&mut inside, !separates(letter)) {
            true => made.extend(letter.to_lowercase()),
            false => made.extend(letter.to_uppercase()),
        }
        made
    })
}

/// The method `title` of Python: a word begins behind anything that is not a letter.
pub(crate) fn python_title(text: &str) -> String {
    titled(text, |letter| !letter.is_alphabetic())
}

pub(crate) fn title(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    match work.is_plain() {
        true => changed(work, value, |text| titled(text, |letter| !letter.is_alphanumeric())),
        false => changed(work, value, |text| {
            titled(text, |letter| letter.is_whitespace() || "-({[<".contains(letter))
        }),
    }
}

pub(crate) fn trim(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    match arguments.get(0) {
        None => changed(work, value, |text| text.trim().to_owned()),
        Some(chars) => {
            let (text, chars) = (work.text(value)?, work.text(chars)?);
            // Each letter is looked up in `chars`.
            work.look(text.len().saturating_mul(1 + chars.len() / 8))?;
            work.made_text(text.trim_matches(|letter| chars.contains(letter)))
        }
    }
}

pub(crate) fn center(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    work.look(text.len())?;
    let width = arguments.size(work, 0, 80)?;
    let pad = width.saturating_sub(text.chars().count());
    // Of an odd number of spaces, the one more is left or right as Python has it.
    let left = pad / 2 + (pad & width & 1);
    padded(work, &text, left, pad - left)
}

/// A text with spaces around it.
fn padded(work: &mut Work, text: &str, left: usize, right: usize) -> Result<Value, Stop> {
    work.make(left.saturating_add(right).saturating_add(text.len()))?;
    Ok(format!("{}{text}{}", " ".repeat(left), " ".repeat(right)).into())
}

pub(crate) fn escape(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let (quote, apostrophe) = if work.is_plain() { ("&quot;", "&#x27;") } else { ("&#34;", "&#39;") };
    let text = work.text(value)?;
    work.written(|out| {
        let mut left = &*text;
        while let Some(at) = left.find(['&', '<', '>', '"', '\'']) {
            out.write_str(&left[..at])?;
            out.write_str(match left.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => quote,
                _ => apostrophe,
            })?;
            left = &left[at + 1..];
        }
        out.write_str(left)
    })
}

pub(crate) fn replace(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let missing = Value::Null;
    let argument = |index: usize| arguments.values.get(index).and_then(Option::as_ref).unwrap_or(&missing);
    let (text, from, to) = (work.text(value)?, work.text(argument(0))?, work.text(argument(1))?);
    let most = arguments.get(2).map(|count| work.integer(count)).transpose()?;
    // As in Python, a negative count is no count.
    let most = most.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    replaced(work, &text, &from, &to, most)
}

/// A text with at most so many parts replaced.
pub(crate) fn replaced(
    work: &mut Work,
    text: &str,
    from: &str,
    to: &str,
    most: usize,
) -> Result<Value, Stop> {
    if from.is_empty() {
        return wrong("nothing cannot be replaced");
    }
    work.look(text.len())?;
    work.written(|out| {
        let mut behind = 0;
        for (at, found) in text.match_indices(from).take(most) {
            out.write_str(&text[behind..at])?;
            out.write_str(to)?;
            behind = at + found.len();
        }
        out.write_str(&text[behind..])
    })
}

pub(crate) fn string(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let dialect = work.dialect;
    work.written(|out| print::print(out, value, dialect))
}

pub(crate) fn pprint(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let dialect = work.dialect;
    work.written(|out| print::repr(out, value, dialect))
}

/// JSON with its letters as they are, and the entries of maps in their order.
pub(crate) fn tojson(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let layout = match arguments.get(0) {
        None if work.is_plain() => COMPACT,
        None => SPACED,
        Some(indent) => match work.size(indent)? {
            spaces @ 0..=16 => Layout::indented(spaces),
            other => return wrong(format!("`indent` is at most 16 spaces, not {other}")),
        },
    };
    work.written(|out| print::json(out, value, &layout, 0))
}

pub(crate) fn urlencode(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let pairs: Vec<(Value, Value)> = match value {
        Value::Map(map) => map.iter().map(|(name, value)| (name.clone().into(), value.clone())).collect(),
        Value::List(list) => {
            let pair = |pair: &Value| match pair.as_list() {
                Some([name, value]) => Ok((name.clone(), value.clone())),
                _ => wrong("takes a list of pairs, a map or a text"),
            };
            list.iter().map(pair).collect::<Result<_, Stop>>()?
        }
        value => {
            let text = work.text(value)?;
            return work.written(|out| percent_encoded(out, &text, true));
        }
    };
    work.make(pairs.len() * 2 * crate::work::VALUE)?;
    let mut texts = Vec::new();
    for (name, value) in &pairs {
        texts.push((work.text(name)?, work.text(value)?));
    }
    work.written(|out| {
        for (index, (name, value)) in texts.iter().enumerate() {
            out.write_str(if index > 0 { "&" } else { "" })?;
            percent_encoded(out, name, false)?;
            out.write_char('=')?;
            percent_encoded(out, value, false)?;
        }
        Ok(())
    })
}

/// A text in the letters of a URL; as a part of a query a slash is encoded and a space is a plus.
fn percent_encoded(out: &mut impl Write, text: &str, is_path: bool) -> std::fmt::Result {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.write_char(char::from(byte))?;
            }
            b'/' if is_path => out.write_char('/')?,
            b' ' if !is_path => out.write_char('+')?,
            other => write!(out, "%{other:02X}")?,
        }
    }
    Ok(())
}
