//! Entries of the journal, as bytes: the version, the origin, the time, the figures, the reply.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anabranch_model::{ChatReply, Finish, Usage};

use super::ledger::Figures;
use super::origin::{Origin, OriginNames};

/// An entry with its origin, for inspecting a journal.
#[derive(Clone, Debug)]
pub(crate) struct RecordedEntry {
    #[cfg_attr(not(test), expect(dead_code, reason = "for those that tell who paid"))]
    pub(crate) origin: OriginNames,
    /// Milliseconds since 1970 at which it was recorded.
    pub(crate) at_ms: u64,
    /// Its part of the ledger.
    pub(crate) figures: Figures,
    pub(crate) entry: Entry,
}

/// A paid reply.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Reply(RecordedReply),
    /// The model refused to answer, with these words.
    Refusal(String),
    Vector(RecordedVector),
}

/// A reply of a chat model, and how long it took.
#[derive(Clone, Debug)]
pub(crate) struct RecordedReply {
    pub(crate) reply: ChatReply,
    pub(crate) took: Duration,
}

/// The vector of one text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedVector {
    pub(crate) vector: Vec<f64>,
}

/// The version of the bytes.
const VERSION: u8 = 2;

const REPLY: u8 = 1;
const REFUSAL: u8 = 2;
const VECTOR: u8 = 3;

/// Milliseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "a record of when a reply was paid for, read by people")]
fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl Entry {
    /// The bytes of an entry that is recorded now.
    pub(crate) fn encode(&self, origin: &Origin, figures: &Figures) -> Vec<u8> {
        self.encode_at(origin, figures, wall_clock_ms())
    }

    fn encode_at(&self, origin: &Origin, figures: &Figures, at_ms: u64) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(128 + origin.bytes().len()));
        out.byte(VERSION);
        out.bytes(origin.bytes());
        out.number(at_ms);
        figures.numbers().into_iter().for_each(|number| out.number(number));
        match self {
            Entry::Reply(RecordedReply { reply, took }) => {
                out.0.reserve(reply.text.len());
                out.byte(REPLY);
                out.number(took.as_millis() as u64);
                out.number(reply.usage.input_tokens);
                out.number(reply.usage.output_tokens);
                out.optional(reply.usage.cached_tokens.as_ref(), |out, cached| out.number(*cached));
                out.number(reply.bytes as u64);
                out.byte(u8::from(reply.demo));
                match &reply.finish {
                    Finish::Stop => out.byte(0),
                    Finish::Length => out.byte(1),
                    Finish::Other(word) => {
                        out.byte(2);
                        out.text(word);
                    }
                }
                out.optional(reply.reasoning.as_ref(), |out, reasoning| out.text(reasoning));
                out.text(&reply.text);
            }
            Entry::Refusal(message) => {
                out.byte(REFUSAL);
                out.text(message);
            }
            Entry::Vector(RecordedVector { vector }) => {
                out.byte(VECTOR);
                out.number(vector.len() as u64);
                vector.iter().for_each(|float| out.0.extend(float.to_le_bytes()));
            }
        }
        out.0
    }

    /// `None` if these are not the bytes of an entry, or of one of another version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut from = Reader(bytes);
        head(&mut from)?;
        body(from)
    }
}

impl RecordedEntry {
    /// The entry with its origin; `None` as for [`Entry::decode`].
    pub(crate) fn decode(bytes: &[u8]) -> Option<RecordedEntry> {
        let mut from = Reader(bytes);
        let (origin, at_ms, figures) = head(&mut from)?;
        Some(RecordedEntry { origin: OriginNames::decode(origin)?, at_ms, figures, entry: body(from)? })
    }
}

/// The origin of an entry and its part of the ledger; `None` if these are not the bytes of an entry.
pub(super) fn counted(bytes: &[u8]) -> Option<(&[u8], Figures)> {
    let (origin, _, figures) = head(&mut Reader(bytes))?;
    Some((origin, figures))
}

fn head<'a>(from: &mut Reader<'a>) -> Option<(&'a [u8], u64, Figures)> {
    if from.byte()? != VERSION {
        return None;
    }
    let (origin, at_ms) = (from.bytes()?, from.number()?);
    let mut numbers = Figures::default().numbers();
    for number in &mut numbers {
        *number = from.number()?;
    }
    Some((origin, at_ms, Figures::of_numbers(numbers)))
}

fn body(mut from: Reader<'_>) -> Option<Entry> {
    let entry = match from.byte()? {
        REPLY => Entry::Reply(reply(&mut from)?),
        REFUSAL => Entry::Refusal(from.text()?.to_owned()),
        VECTOR => {
            let length = from.number()?;
            let bytes = from.take(usize::try_from(length.checked_mul(8)?).ok()?)?;
            let vector = bytes.as_chunks::<8>().0.iter().map(|float| f64::from_le_bytes(*float)).collect();
            Entry::Vector(RecordedVector { vector })
        }
        _ => return None,
    };
    from.0.is_empty().then_some(entry)
}

fn reply(from: &mut Reader<'_>) -> Option<RecordedReply> {
    let took = Duration::from_millis(from.number()?);
    let usage = Usage {
        input_tokens: from.number()?,
        output_tokens: from.number()?,
        cached_tokens: from.optional(Reader::number)?,
    };
    let (bytes, demo) = (usize::try_from(from.number()?).ok()?, from.truth()?);
    let finish = match from.byte()? {
        0 => Finish::Stop,
        1 => Finish::Length,
        2 => Finish::Other(from.text()?.into()),
        _ => return None,
    };
    let reasoning = from.optional(|from| from.text().map(Arc::from))?;
    let text = from.text()?.into();
    let reply = ChatReply { text, reasoning, finish, usage, bytes, demo, rates: None };
    Some(RecordedReply { reply, took })
}

pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Seven bits per byte, the lowest first: most numbers are small.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn optional<T>(&mut self, found: Option<&T>, write: impl FnOnce(&mut Writer, &T)) {
        self.byte(u8::from(found.is_some()));
        if let Some(found) = found {
            write(self, found);
        }
    }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn truth(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// The outer `None` says that the bytes are wrong.
    fn optional<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<Option<T>> {
        match self.truth()? {
            true => read(self).map(Some),
            false => Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries() -> impl Strategy<Value = Entry> {
        let finish = prop_oneof![
            Just(Finish::Stop),
            Just(Finish::Length),
            ".{0,9}".prop_map(|word| Finish::Other(word.into()))
        ];
        let usage = (any::<u64>(), any::<u64>(), proptest::option::of(any::<u64>()));
        let reply = (".{0,40}", proptest::option::of(".{0,9}"), finish, usage, any::<u32>(), any::<bool>());
        prop_oneof![
            reply.prop_map(|(text, reasoning, finish, (input, output, cached), took, demo)| {
                let usage = Usage { input_tokens: input, output_tokens: output, cached_tokens: cached };
                let reply = ChatReply {
                    text: text.into(),
                    reasoning: reasoning.map(Into::into),
                    finish,
                    usage,
                    bytes: took as usize,
                    demo,
                    rates: None,
                };
                Entry::Reply(RecordedReply { reply, took: Duration::from_millis(took.into()) })
            }),
            ".{0,40}".prop_map(Entry::Refusal),
            proptest::collection::vec(any::<f64>(), 0..9)
                .prop_map(|vector| Entry::Vector(RecordedVector { vector })),
        ]
    }

    fn origins() -> impl Strategy<Value = OriginNames> {
        let text = || ".{0,9}";
        (text(), text(), text(), text(), text()).prop_map(|(dataset, build, column, alias, model)| {
            OriginNames { dataset, build, column, alias, model }
        })
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(
            entry in entries(), names in origins(), numbers in any::<[u64; 7]>(), at_ms in any::<u64>(),
        ) {
            let (origin, figures) = (Origin::new(&names), Figures::of_numbers(numbers));
            let bytes = entry.encode_at(&origin, &figures, at_ms);
            let read = Entry::decode(&bytes).unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{entry:?}"));
            prop_assert_eq!(counted(&bytes), Some((origin.bytes(), figures)));
            let recorded = RecordedEntry::decode(&bytes).unwrap();
            prop_assert_eq!((recorded.origin, recorded.figures, recorded.at_ms), (names, figures, at_ms));
            prop_assert_eq!(format!("{:?}", recorded.entry), format!("{entry:?}"));
            for end in 0..bytes.len() {
                prop_assert!(Entry::decode(&bytes[..end]).is_none());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Entry::decode(&bytes);
        }
    }
}
