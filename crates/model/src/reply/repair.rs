//! Parses almost-JSON that models write instead of JSON.

use std::sync::Arc;

use anabranch_value::{Map, Value};

/// Nesting that is followed.
const DEEPEST: usize = 64;

/// The value that a text most likely means; `None` if it cannot be guessed.
pub(super) fn repair(text: &str) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    reader.space();
    let value = reader.value(0)?;
    reader.space();
    // Prose behind the value is fine, a second value is not.
    (!reader.rest().starts_with(['{', '['])).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    /// Skips spaces and comments.
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let end = if trimmed.starts_with("//") || trimmed.starts_with('#') {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
            } else {
                return;
            };
            self.at += end;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        match self.peek()? {
            '{' => self.map(depth),
            '[' => self.list(depth),
            '(' => self.list(depth),
            quote @ ('"' | '\'' | '“') => self.quoted(quote).map(Value::from),
            _ => self.word(),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.separators();
            let Some(next) = self.peek() else { break };
            if next == '}' {
                self.at += 1;
                break;
            }
            // Closed by the wrong sign, or not at all: the list around it goes on.
            if next == ']' {
                break;
            }
            let name = match next {
                quote @ ('"' | '\'' | '“') => self.quoted(quote)?,
                _ => self.bare_name()?,
            };
            self.space();
            if !self.take(':') && !self.take('=') {
                // A name at the cut-off end has no value.
                return self.rest().is_empty().then(|| map.into());
            }
            self.space();
            if self.peek().is_none() {
                break;
            }
            let value =
                if matches!(self.peek(), Some(',' | '}')) { Value::Null } else { self.value(depth + 1)? };
            map.insert(Arc::from(name), value);
        }
        Some(map.into())
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.separators();
            match self.peek() {
                None => break,
                Some(']' | ')') => {
                    self.at += 1;
                    break;
                }
                Some('}') => break,
                Some(_) => list.push(self.value(depth + 1)?),
            }
        }
        Some(list.into())
    }

    fn separators(&mut self) {
        self.space();
        while self.take(',') || self.take(';') {
            self.space();
        }
    }

    /// A name without quotes.
    fn bare_name(&mut self) -> Option<String> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.')))
            .unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| rest[..end].to_owned())
    }

    /// A number or one of the words of JSON, Python or JavaScript; else text up to the next comma or bracket.
    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest.find([',', '}', ']', ')', '\n']).unwrap_or(rest.len());
        let whole = &rest[..end];
        let word = whole.split("//").next().unwrap_or(whole).split(" #").next().unwrap_or(whole).trim();
        self.at += end;
        let value = match word {
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            "null" | "None" | "NULL" | "undefined" | "nil" | "NaN" | "nan" => Value::Null,
            "" => return None,
            word => number(word).unwrap_or_else(|| Value::from(word)),
        };
        Some(value)
    }

    /// A text in quotes. It ends at a quote with a comma, a colon, a bracket or the end behind it, so that quotes in the
    /// middle do not end it.
    fn quoted(&mut self, open: char) -> Option<String> {
        let close = if open == '“' { '”' } else { open };
        self.at += open.len_utf8();
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        let start = self.at;
        while let Some((offset, c)) = chars.next() {
            match c {
                '\\' => {
                    let Some((_, escaped)) = chars.next() else { break };
                    let digits = &self.text[start + offset..];
                    push_escaped(&mut text, escaped, digits, &mut chars);
                }
                c if c == close => {
                    let behind = &self.text[start + offset + c.len_utf8()..];
                    if ends_text(behind) {
                        self.at = start + offset + c.len_utf8();
                        return Some(text);
                    }
                    text.push(c);
                }
                c => text.push(c),
            }
        }
        // The text is cut off, so it ends here.
        self.at = self.text.len();
        Some(text)
    }
}

/// Whether a quote with this text behind it is a closing one.
fn ends_text(behind: &str) -> bool {
    let next = behind.trim_start();
    let Some(first) = next.chars().next() else { return true };
    match first {
        ':' | '}' | ']' | ')' | '=' => true,
        // A comma inside of a text is followed by prose, one behind it by a value or a name.
        ',' => {
            let after = next[1..].trim_start();
            after.is_empty()
                || after.starts_with(['"', '\'', '“', '{', '[', '}', ']', '-', '/', '#'])
                || after.starts_with(|c: char| c.is_ascii_digit())
                || ["true", "false", "null", "True", "False", "None"]
                    .iter()
                    .any(|word| after.starts_with(word))
                || after.find(':').is_some_and(|colon| !after[..colon].trim().contains(char::is_whitespace))
        }
        // A missing comma: the next name or value begins on its own line.
        '"' | '\'' | '{' | '[' => behind[..behind.len() - next.len()].contains('\n'),
        '/' => next.starts_with("//") || next.starts_with("/*"),
        _ => false,
    }
}

/// Adds an escaped character. `source` begins at the backslash; the digits of `\u` are taken from `chars`.
fn push_escaped(text: &mut String, escaped: char, source: &str, chars: &mut std::str::CharIndices<'_>) {
    match escaped {
        'n' => text.push('\n'),
        't' => text.push('\t'),
        'r' => text.push('\r'),
        'b' => text.push('\u{8}'),
        'f' => text.push('\u{c}'),
        'u' => {
            let unit = |at: usize| {
                let digits = source.get(at..at + 6)?.strip_prefix("\\u")?;
                u16::from_str_radix(digits, 16).ok()
            };
            let Some(first) = unit(0) else { return text.push('u') };
            let pair = unit(6).filter(|second| (0xdc00..0xe000).contains(second));
            let (units, used) = match pair {
                Some(second) if (0xd800..0xdc00).contains(&first) => (vec![first, second], 10),
                _ => (vec![first], 4),
            };
            text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
            chars.by_ref().take(used).for_each(drop);
        }
        '\n' => {}
        other @ ('"' | '\'' | '\\' | '/') => text.push(other),
        other => {
            text.push('\\');
            text.push(other);
        }
    }
}

/// A number, also with a plus sign, thousands separators, or without digits on one side of the point.
fn number(word: &str) -> Option<Value> {
    let word = word.strip_prefix('+').unwrap_or(word);
    let digits = word.strip_prefix('-').unwrap_or(word);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let plain = word.replace('_', "");
    if let Ok(int) = plain.parse::<i64>() {
        return Some(Value::Int(int));
    }
    plain.parse::<f64>().ok().filter(|float| float.is_finite()).map(Value::Float)
}
