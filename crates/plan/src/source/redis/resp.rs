//! The protocol RESP, versions 2 and 3, decoded from the read buffer into a [`Sink`], without a tree of values.
//!
//! A [`Decoder`] can stop after any byte and continue with more. Before anything is allocated it checks lengths, depth
//! and the bytes that the replies to one trip may take, so a hostile server cannot make it allocate.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::sink::Sink;
use crate::source::values;

/// The deepest nesting of a reply. Replies to commands of ours have at most five levels.
const MAX_DEPTH: usize = 16;

/// The longest line: an error, a simple string, or a number.
const MAX_LINE: usize = 64 << 10;

/// The length of the shortest value, `_\r\n`. A list of `n` values takes at least `n` times as many bytes.
const SHORTEST: u64 = 3;

/// A part of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A string of any kind, or a number too big for 64 bits.
    Text(&'a [u8]),
    Error(&'a [u8]),
    Int(i64),
    Double(f64),
    Bool(bool),
    Null,
    /// The beginning of a group with this many values, or pairs of values.
    Begin(Group, u64),
}

/// A value that holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    List,
    Set,
    Map,
    /// A message that answers no command.
    Push,
    /// Facts about the value that follows.
    Attribute,
}

/// The reason why bytes are not a valid reply. The connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProtocolError(pub(super) Cow<'static, str>);

fn broken<T>(why: impl Into<Cow<'static, str>>) -> Result<T, ProtocolError> {
    Err(ProtocolError(why.into()))
}

/// The first token of `input` and its length; `None` if more bytes are needed. No text may be longer than `most`.
fn token(input: &[u8], most: usize) -> Result<Option<(Token<'_>, usize)>, ProtocolError> {
    let Some(kind) = input.first() else { return Ok(None) };
    let group = match kind {
        b'$' | b'=' | b'!' => return text(*kind, input, most),
        b'*' => Group::List,
        b'~' => Group::Set,
        b'%' => Group::Map,
        b'>' => Group::Push,
        b'|' => Group::Attribute,
        _ => return simple(*kind, input),
    };
    let Some((len, end)) = number(input)? else { return Ok(None) };
    match u64::try_from(len) {
        Ok(len) => Ok(Some((Token::Begin(group, len), end))),
        Err(_) if len == -1 && group == Group::List => Ok(Some((Token::Null, end))),
        Err(_) => broken(format!("the length {len}")),
    }
}

/// A text after its length.
fn text(kind: u8, input: &[u8], most: usize) -> Result<Option<(Token<'_>, usize)>, ProtocolError> {
    let Some((len, start)) = number(input)? else { return Ok(None) };
    if len == -1 && kind == b'$' {
        return Ok(Some((Token::Null, start)));
    }
    let Ok(len) = usize::try_from(len) else { return broken(format!("the length {len}")) };
    if len > most {
        return broken(format!("a text of {len} bytes where {most} are left of the bound on a reply"));
    }
    let end = start + len;
    let Some(after) = input.get(end..end + 2) else { return Ok(None) };
    if after != b"\r\n" {
        return broken("a text that does not end where its length says");
    }
    let bytes = &input[start..end];
    let token = match (kind, bytes) {
        (b'!', bytes) => Token::Error(bytes),
        // The first three bytes name a format.
        (b'=', [_, _, _, b':', bytes @ ..]) => Token::Text(bytes),
        (b'=', _) => return broken("a verbatim text without its format"),
        (_, bytes) => Token::Text(bytes),
    };
    Ok(Some((token, end + 2)))
}

/// A value that is one line.
fn simple(kind: u8, input: &[u8]) -> Result<Option<(Token<'_>, usize)>, ProtocolError> {
    if kind == b':' {
        return Ok(number(input)?.map(|(value, end)| (Token::Int(value), end)));
    }
    if !matches!(kind, b'+' | b'-' | b'_' | b'#' | b',' | b'(') {
        return broken(format!("{:?} where a value begins", char::from(kind)));
    }
    let Some(len) = input[1..].iter().position(|byte| *byte == b'\r') else {
        return if input.len() > MAX_LINE { broken("a line that does not end") } else { Ok(None) };
    };
    let (line, end) = (&input[1..=len], len + 3);
    match input.get(len + 2) {
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return broken("a line that ends with half a line break"),
    }
    let token = match (kind, line) {
        (b'+' | b'(', line) => Token::Text(line),
        (b'-', line) => Token::Error(line),
        (b'_', b"") => Token::Null,
        (b'#', b"t") => Token::Bool(true),
        (b'#', b"f") => Token::Bool(false),
        (b',', line) => match str::from_utf8(line).ok().and_then(|line| line.parse().ok()) {
            Some(value) => Token::Double(value),
            None => return broken("a double that is not a number"),
        },
        _ => return broken("a value that is none of its kind"),
    };
    Ok(Some((token, end)))
}

/// The number between the first byte and the line break, and where its line ends.
fn number(input: &[u8]) -> Result<Option<(i64, usize)>, ProtocolError> {
    let (sign, start) = match input.get(1) {
        None => return Ok(None),
        Some(b'-') => (-1, 2),
        Some(b'+') => (1, 2),
        Some(_) => (1, 1),
    };
    let mut value: i64 = 0;
    for (at, byte) in input.iter().enumerate().skip(start) {
        match byte {
            b'0'..=b'9' => {
                let digit = sign * i64::from(byte - b'0');
                match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
                    Some(next) => value = next,
                    None => return broken("a number of more than 64 bits"),
                }
            }
            b'\r' if at > start => {
                return match input.get(at + 1) {
                    None => Ok(None),
                    Some(b'\n') => Ok(Some((value, at + 2))),
                    Some(_) => broken("a number without its line break"),
                };
            }
            other => return broken(format!("{:?} in a number", char::from(*other))),
        }
        if at > start + 24 {
            return broken("a number that does not end");
        }
    }
    Ok(None)
}

/// Decodes replies, one after the other.
#[derive(Default)]
pub(super) struct Decoder {
    /// The groups that are open, the outermost first.
    open: Vec<Open>,
    /// From this depth on values are skipped.
    skip: Option<usize>,
    /// Bytes that the replies of the trip may still take.
    left: usize,
}

struct Open {
    group: Group,
    /// Values still to come.
    left: u64,
}

impl Decoder {
    /// Begins the replies of a trip, which may take this many bytes.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.left = bytes;
    }

    /// Decodes from `input` until the reply is complete or more bytes are needed: how many bytes were used, and
    /// whether the reply is complete.
    pub(super) fn feed(&mut self, input: &[u8], sink: &mut Sink) -> Result<(usize, bool), ProtocolError> {
        let mut at = 0;
        loop {
            if let ([open], None) = (&mut self.open[..], self.skip) {
                let used = sink.run(&input[at..], &mut open.left);
                at += used;
                self.spend(used)?;
                if used > 0 && self.settle(sink) {
                    return Ok((at, true));
                }
            }
            let Some((token, len)) = token(&input[at..], self.left)? else { return Ok((at, false)) };
            at += len;
            self.spend(len)?;
            if self.take(token, sink)? {
                return Ok((at, true));
            }
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return broken("more bytes than the bound on a reply"),
        }
        Ok(())
    }

    /// Takes a token; whether it completes the reply.
    fn take(&mut self, token: Token<'_>, sink: &mut Sink) -> Result<bool, ProtocolError> {
        let depth = self.open.len();
        let Token::Begin(group, len) = token else {
            if self.skip.is_none() {
                sink.scalar(depth, token);
            }
            let Some(open) = self.open.last_mut() else { return Ok(true) };
            open.left -= 1;
            return Ok(self.settle(sink));
        };
        let pairs = matches!(group, Group::Map | Group::Attribute);
        let left = if pairs { len.saturating_mul(2) } else { len };
        if left.saturating_mul(SHORTEST) > self.left as u64 {
            return broken(format!("a group of {len} values where {} bytes are left", self.left));
        }
        if depth == MAX_DEPTH {
            return broken(format!("values nested deeper than {MAX_DEPTH} levels"));
        }
        let aside = matches!(group, Group::Push | Group::Attribute);
        if group == Group::Push && depth > 0 {
            return broken("a push message inside a reply");
        }
        if self.skip.is_none() && (aside || !sink.begin(depth, group, len)) {
            self.skip = Some(depth);
        }
        self.open.push(Open { group, left });
        Ok(self.settle(sink))
    }

    /// Closes the groups that are complete; whether the reply is.
    fn settle(&mut self, sink: &mut Sink) -> bool {
        while let Some(Open { group, left: 0 }) = self.open.last() {
            let aside = matches!(group, Group::Push | Group::Attribute);
            self.open.pop();
            let depth = self.open.len();
            match self.skip {
                Some(from) if from == depth => self.skip = None,
                Some(_) => {}
                None => sink.end(depth),
            }
            if aside {
                return false;
            }
            match self.open.last_mut() {
                Some(parent) => parent.left -= 1,
                None => return true,
            }
        }
        false
    }
}

/// Takes ids off the front of `input` while they are texts of plain digits, at most `left` of them; the bytes used.
pub(super) fn take_ids(input: &[u8], left: &mut u64, ids: &mut Vec<i64>) -> usize {
    let mut at = 0;
    while *left > 0 {
        let Some((id, used)) = plain_id(&input[at..]) else { break };
        ids.push(id);
        at += used;
        *left -= 1;
    }
    at
}

/// An id of 1 to 18 digits as a text, and the bytes it takes.
#[inline]
fn plain_id(input: &[u8]) -> Option<(i64, usize)> {
    let (len, start) = match *input {
        [b'$', ones @ b'1'..=b'9', b'\r', b'\n', ..] => (usize::from(ones - b'0'), 4),
        [b'$', b'1', ones @ b'0'..=b'8', b'\r', b'\n', ..] => (usize::from(ones - b'0') + 10, 5),
        _ => return None,
    };
    let end = start + len;
    let input = input.get(..end + 2)?;
    if !input.ends_with(b"\r\n") {
        return None;
    }
    let id = match (len, input[..end].last_chunk()) {
        (4..=8, Some(last)) => eight_digits(*last, len)?,
        _ => values::plain_digits(&input[start..end])?,
    };
    Some((id, end + 2))
}

/// The number that the last `len` of eight bytes make, if they are digits. All digits are worked on at once: first
/// pairs of them are added up, then fours, then all.
#[inline]
fn eight_digits(bytes: [u8; 8], len: usize) -> Option<i64> {
    const ZEROS: u64 = u64::from_le_bytes(*b"00000000");
    const ABOVE_NINE: u64 = 0x4646_4646_4646_4646;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    const FOURS: u64 = 0x0000_00ff_0000_00ff;
    // The first byte is the lowest. Those before the digits become zeros.
    let others = (1 << (8 * (8 - len))) - 1;
    let digits = (u64::from_le_bytes(bytes) & !others) | (ZEROS & others);
    let values = digits.wrapping_sub(ZEROS);
    if (digits.wrapping_add(ABOVE_NINE) | values) & HIGH_BITS != 0 {
        return None;
    }
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let high = (pairs & FOURS).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & FOURS).wrapping_mul(1 + (10_000 << 32));
    Some((high.wrapping_add(low) >> 32) as i64)
}
