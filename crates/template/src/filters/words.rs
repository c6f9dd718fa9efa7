//! Filters of words and lines.

use std::fmt::Write;

use anabranch_value::Value;

use super::Arguments;
use crate::error::{Stop, wrong};
use crate::kinds::count;
use crate::work::{VALUE, Work};

/// A list of the parts of a text.
pub(crate) fn cut<'a>(work: &mut Work, parts: impl Iterator<Item = &'a str>) -> Result<Value, Stop> {
    let mut list = Vec::new();
    for part in parts {
        work.make_part(part.len())?;
        list.push(Value::from(part));
    }
    Ok(list.into())
}

pub(crate) fn lines(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    cut(work, text.lines())
}

pub(crate) fn split(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let (text, separator) = (work.text(value)?, arguments.get(0));
    let separator = separator.map(|separator| work.text(separator)).transpose()?;
    let most = arguments.get(1).map(|most| work.integer(most)).transpose()?;
    split_text(work, &text, separator.as_deref(), most.and_then(|most| usize::try_from(most).ok()))
}

/// A text in parts, at most so many cuts from its beginning.
pub(crate) fn split_text(
    work: &mut Work,
    text: &str,
    separator: Option<&str>,
    most: Option<usize>,
) -> Result<Value, Stop> {
    work.look(text.len())?;
    match (separator, most) {
        (Some(""), _) => wrong("nothing cannot be a separator"),
        (None, None) => cut(work, text.split_whitespace()),
        (None, Some(most)) => {
            let mut left = text.trim_start();
            let mut parts = Vec::new();
            while parts.len() < most
                && let Some(at) = left.find(char::is_whitespace)
            {
                work.steps(1)?;
                work.make(VALUE)?;
                parts.push(&left[..at]);
                left = left[at..].trim_start();
            }
            parts.extend((!left.is_empty()).then_some(left));
            cut(work, parts.into_iter())
        }
        (Some(separator), None) => cut(work, text.split(separator)),
        (Some(separator), Some(most)) => cut(work, text.splitn(most.saturating_add(1), separator)),
    }
}

pub(crate) fn indent(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    let spaces = match arguments.get(0) {
        Some(Value::Text(text)) => text.to_string(),
        _ => {
            let width = arguments.size(work, 0, 4)?;
            work.make(width)?;
            " ".repeat(width)
        }
    };
    let (first, blank) = (arguments.flag(1), arguments.flag(2));
    work.look(text.len())?;
    work.written(|out| {
        for (index, line) in text.split('\n').enumerate() {
            out.write_str(if index > 0 { "\n" } else { "" })?;
            if (index > 0 || first) && (!line.is_empty() || blank || index == 0) {
                out.write_str(&spaces)?;
            }
            out.write_str(line)?;
        }
        Ok(())
    })
}

pub(crate) fn truncate(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    let (length, leeway) = (arguments.size(work, 0, 255)?, arguments.size(work, 3, 5)?);
    let end = arguments.text(2, "...")?;
    work.look(text.len())?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return work.made_text(&text);
    }
    let Some(keep) = length.checked_sub(end.chars().count()) else {
        return wrong(format!("takes a length of at least {}", end.chars().count()));
    };
    let kept: String = text.chars().take(keep).collect();
    let kept = match arguments.flag(1) {
        true => &kept,
        false => kept.rsplit_once(' ').map_or(&*kept, |(before, _)| before),
    };
    work.written(|out| write!(out, "{kept}{end}"))
}

pub(crate) fn wordcount(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    work.look(text.len())?;
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    Ok(count(words.filter(|word| !word.is_empty()).count()))
}

pub(crate) fn wordwrap(work: &mut Work, value: &Value, arguments: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    let width = arguments.size(work, 0, 79)?.max(1);
    let break_long = arguments.get(1).is_none_or(crate::work::is_true);
    let newline = arguments.text(2, "\n")?;
    work.look(text.len().saturating_mul(4))?;
    work.written(|out| {
        for (index, line) in text.lines().enumerate() {
            out.write_str(if index > 0 { newline } else { "" })?;
            wrap_line(out, line, width, break_long, newline)?;
        }
        Ok(())
    })
}

fn wrap_line(
    out: &mut impl Write,
    line: &str,
    width: usize,
    break_long: bool,
    newline: &str,
) -> std::fmt::Result {
    let mut used = 0;
    for word in line.split_whitespace() {
        let mut word = word;
        let mut len = word.chars().count();
        if used > 0 {
            if used + 1 + len <= width {
                write!(out, " {word}")?;
                used += 1 + len;
                continue;
            }
            // A word too long for any line begins in the rest of this one.
            if break_long && len > width && used + 1 < width {
                let at = word.char_indices().nth(width - used - 1).map_or(word.len(), |(at, _)| at);
                write!(out, " {}", &word[..at])?;
                (len, word) = (len - (width - used - 1), &word[at..]);
            }
            out.write_str(newline)?;
        }
        while break_long && len > width {
            let at = word.char_indices().nth(width).map_or(word.len(), |(at, _)| at);
            out.write_str(&word[..at])?;
            out.write_str(newline)?;
            (len, word) = (len - width, &word[at..]);
        }
        out.write_str(word)?;
        used = len;
    }
    Ok(())
}

pub(crate) fn striptags(work: &mut Work, value: &Value, _: &Arguments) -> Result<Value, Stop> {
    let text = work.text(value)?;
    work.look(text.len().saturating_mul(4))?;
    let bare = work.write(|out| {
        let mut left = &*text;
        while let Some(at) = left.find('<') {
            let (close, len) = if left[at..].starts_with("<!--") { ("-->", 3) } else { (">", 1) };
            let Some(end) = left[at..].find(close) else { break };
            out.write_str(&left[..at])?;
            left = &left[at + end + len..];
        }
        out.write_str(left)
    })?;
    let joined = work.write(|out| {
        for (index, word) in bare.split_whitespace().enumerate() {
            out.write_str(if index > 0 { " " } else { "" })?;
            out.write_str(word)?;
        }
        Ok(())
    })?;
    const ENTITIES: [(&str, &str); 6] =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let plain = ENTITIES.iter().fold(joined, |text, (entity, letter)| text.replace(entity, letter));
    work.made_text(&plain)
}
