//! An incremental JSON parser: emits tokens as soon as their bytes arrive, in bounded memory.

use std::borrow::Cow;

/// The deepest nesting.
const MAX_DEPTH: usize = 32;

/// The longest text or number, in bytes.
const MAX_TOKEN: usize = 1 << 20;

/// A part of a JSON text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    BeginObject,
    EndObject,
    BeginList,
    EndList,
    /// The name of a member.
    Name(Cow<'a, str>),
    Text(Cow<'a, str>),
    /// A number as it is written.
    Number(&'a str),
    Bool(bool),
    Null,
}

/// Takes tokens, and may refuse them.
pub(super) trait Sink {
    type Error;

    fn token(&mut self, token: Token<'_>) -> Result<(), Self::Error>;
}

/// The reason why a text cannot be parsed.
#[derive(Debug, PartialEq)]
pub(super) enum JsonError<E> {
    /// It is not JSON, from this byte on.
    Syntax(u64, &'static str),
    /// The sink refused a token.
    Refused(E),
}

/// The next thing that may come.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    Value,
    ValueOrEnd,
    NameOrEnd,
    Name,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// Cuts a text that comes in pieces into tokens.
pub(super) struct Tokens {
    next: Next,
    /// The open groups, the outermost first: whether each is an object.
    open: Vec<bool>,
    /// The beginning of a token whose end has not come.
    rest: Vec<u8>,
    /// The number of its bytes that were searched for its end.
    searched: usize,
    /// The bytes of all earlier tokens.
    consumed: u64,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens { next: Next::Value, open: Vec::new(), rest: Vec::new(), searched: 0, consumed: 0 }
    }
}

impl Tokens {
    /// Takes more of the text.
    pub(super) fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), JsonError<S::Error>> {
        if self.rest.is_empty() {
            let used = self.take(bytes, false, sink)?;
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend_from_slice(bytes);
            let used = self.take(&whole, false, sink)?;
            whole.drain(..used);
            self.rest = whole;
        }
        if self.rest.len() > MAX_TOKEN {
            return Err(JsonError::Syntax(self.consumed, "a text of more than 1 MiB"));
        }
        Ok(())
    }

    /// Ends the text.
    pub(super) fn finish<S: Sink>(&mut self, sink: &mut S) -> Result<(), JsonError<S::Error>> {
        let rest = std::mem::take(&mut self.rest);
        self.take(&rest, true, sink)?;
        match self.next {
            Next::Nothing => Ok(()),
            _ => Err(JsonError::Syntax(self.consumed, "the end of the reply")),
        }
    }

    /// Hands over the tokens that are complete; the bytes used.
    fn take<S: Sink>(
        &mut self,
        bytes: &[u8],
        last: bool,
        sink: &mut S,
    ) -> Result<usize, JsonError<S::Error>> {
        let mut at = 0;
        loop {
            let space = bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            let skipped = space.count();
            at += skipped;
            self.consumed += skipped as u64;
            let Some(first) = bytes.get(at) else { return Ok(at) };
            let used = match self.mark(*first, sink)? {
                true => 1,
                false => match self.scalar(&bytes[at..], last, sink)? {
                    Some(used) => used,
                    None => return Ok(at),
                },
            };
            at += used;
            self.consumed += used as u64;
        }
    }

    /// Takes a token of one byte, if `byte` is one.
    fn mark<S: Sink>(&mut self, byte: u8, sink: &mut S) -> Result<bool, JsonError<S::Error>> {
        let begins = matches!(self.next, Next::Value | Next::ValueOrEnd);
        let token = match (byte, self.next) {
            (b'{', _) if begins => {
                self.open(true)?;
                self.next = Next::NameOrEnd;
                Token::BeginObject
            }
            (b'[', _) if begins => {
                self.open(false)?;
                self.next = Next::ValueOrEnd;
                Token::BeginList
            }
            (b'}', Next::NameOrEnd | Next::CommaOrEnd) if self.open.last() == Some(&true) => {
                self.open.pop();
                self.end_value();
                Token::EndObject
            }
            (b']', Next::ValueOrEnd | Next::CommaOrEnd) if self.open.last() == Some(&false) => {
                self.open.pop();
                self.end_value();
                Token::EndList
            }
            (b',', Next::CommaOrEnd) => {
                self.next = if self.open.last() == Some(&true) { Next::Name } else { Next::Value };
                return Ok(true);
            }
            (b':', Next::Colon) => {
                self.next = Next::Value;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        sink.token(token).map_err(JsonError::Refused)?;
        Ok(true)
    }

    fn open<E>(&mut self, object: bool) -> Result<(), JsonError<E>> {
        if self.open.len() == MAX_DEPTH {
            return Err(JsonError::Syntax(self.consumed, "values nested deeper than 32 levels"));
        }
        self.open.push(object);
        Ok(())
    }

    fn end_value(&mut self) {
        self.next = if self.open.is_empty() { Next::Nothing } else { Next::CommaOrEnd };
    }

    /// Takes a text, a number or a word; `None` if its end has not come.
    fn scalar<S: Sink>(
        &mut self,
        bytes: &[u8],
        last: bool,
        sink: &mut S,
    ) -> Result<Option<usize>, JsonError<S::Error>> {
        let wrong = JsonError::Syntax(self.consumed, "a byte that does not belong there");
        let is_name = matches!(self.next, Next::Name | Next::NameOrEnd);
        if !is_name && !matches!(self.next, Next::Value | Next::ValueOrEnd) {
            return Err(wrong);
        }
        if bytes[0] == b'"' {
            let Some((text, used)) = self.text(bytes)? else {
                return if last {
                    Err(JsonError::Syntax(self.consumed, "a text that breaks off"))
                } else {
                    Ok(None)
                };
            };
            if used > MAX_TOKEN {
                return Err(JsonError::Syntax(self.consumed, "a text of more than 1 MiB"));
            }
            if is_name {
                self.next = Next::Colon;
                sink.token(Token::Name(text)).map_err(JsonError::Refused)?;
            } else {
                self.end_value();
                sink.token(Token::Text(text)).map_err(JsonError::Refused)?;
            }
            return Ok(Some(used));
        }
        let word = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
        let used = word.count();
        if is_name || used == 0 {
            return Err(wrong);
        }
        if used == bytes.len() && !last {
            return Ok(None);
        }
        let token = match &bytes[..used] {
            b"null" => Token::Null,
            b"true" => Token::Bool(true),
            b"false" => Token::Bool(false),
            number if is_number(number) => match str::from_utf8(number) {
                Ok(number) => Token::Number(number),
                Err(_) => return Err(wrong),
            },
            _ => return Err(wrong),
        };
        self.end_value();
        sink.token(token).map_err(JsonError::Refused)?;
        Ok(Some(used))
    }

    /// A text with its quotes, and its length; `None` if its end has not come.
    fn text<'a, E>(&mut self, bytes: &'a [u8]) -> Result<Option<(Cow<'a, str>, usize)>, JsonError<E>> {
        let mut at = self.searched.max(1);
        loop {
            match bytes.get(at) {
                None => {
                    self.searched = at.min(bytes.len());
                    return Ok(None);
                }
                Some(b'"') => break,
                // The byte after it is always part of the escape.
                Some(b'\\') if at + 1 == bytes.len() => {
                    self.searched = at;
                    return Ok(None);
                }
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
        self.searched = 0;
        let wrong = JsonError::Syntax(self.consumed, "a text that is not UTF-8, or has a broken escape");
        let plain = &bytes[1..at];
        let text = if plain.iter().any(|byte| *byte == b'\\' || *byte < 0x20) {
            match serde_json::from_slice::<String>(&bytes[..=at]) {
                Ok(text) => Cow::Owned(text),
                Err(_) => return Err(wrong),
            }
        } else {
            match str::from_utf8(plain) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => return Err(wrong),
            }
        };
        Ok(Some((text, at + 1)))
    }
}

/// True if this is a number as JSON writes them.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let mut rest = &text[whole..];
    if let [b'.', fraction @ ..] = rest {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    match rest {
        [] => true,
        [b'e' | b'E', exponent @ ..] => {
            let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent) == exponent.len()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes tokens as JSON again.
    #[derive(Default)]
    struct JsonWriter(String);

    impl Sink for JsonWriter {
        type Error = std::convert::Infallible;

        fn token(&mut self, token: Token<'_>) -> Result<(), Self::Error> {
            let comma = !self.0.is_empty() && !self.0.ends_with(['[', '{', ':']);
            if comma && !matches!(token, Token::EndList | Token::EndObject) {
                self.0.push(',');
            }
            let quoted = |text: &str| serde_json::to_string(text).unwrap();
            match token {
                Token::BeginObject => self.0.push('{'),
                Token::EndObject => self.0.push('}'),
                Token::BeginList => self.0.push('['),
                Token::EndList => self.0.push(']'),
                Token::Name(name) => self.0.push_str(&format!("{}:", quoted(&name))),
                Token::Text(text) => self.0.push_str(&quoted(&text)),
                Token::Number(number) => self.0.push_str(number),
                Token::Bool(value) => self.0.push_str(&value.to_string()),
                Token::Null => self.0.push_str("null"),
            }
            Ok(())
        }
    }

    fn read(bytes: &[u8], cuts: &[usize]) -> Option<String> {
        let (mut tokens, mut written) = (Tokens::default(), JsonWriter::default());
        let mut ends: Vec<usize> =
            cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
        ends.sort_unstable();
        for piece in ends.windows(2) {
            tokens.feed(&bytes[piece[0]..piece[1]], &mut written).ok()?;
        }
        tokens.finish(&mut written).ok()?;
        Some(written.0)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Texts that are almost JSON: the same verdict and the same values as those of serde_json, at any split.
        #[test]
        fn agrees_with_serde_json(
            words in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\\n\"", "\"\\\"\"", "\"b\":", "1", "-0.5e3", "01", "1.",
                "null", "true", "fals", " ", "[]", "{}", "[1,2]", "{\"c\":[null]}", "\"", "\\", "\u{1}", "\"ü\"",
            ]), 0..12),
            cuts in prop::collection::vec(any::<usize>(), 0..6),
        ) {
            let text = words.concat();
            let expected: Result<&serde_json::value::RawValue, _> = serde_json::from_str(&text);
            let found = read(text.as_bytes(), &cuts);
            prop_assert_eq!(found.is_some(), expected.is_ok(), "{:?}", text);
            if let Some(found) = found {
                let again: serde_json::Value = serde_json::from_str(&found).unwrap();
                let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(again, expected);
            }
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        assert_eq!(read("[".repeat(40).as_bytes(), &[]), None);
        let long = format!("\"{}\"", "x".repeat(MAX_TOKEN + 1));
        assert_eq!(read(long.as_bytes(), &[9, 99]), None);
    }
}
