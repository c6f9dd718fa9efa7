//! Entries of the journal, as bytes.

use std::sync::Arc;
use std::time::Duration;

use anabranch_model::{ChatReply, Finish, Usage};

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

/// The vector of one text, with its share of the request's tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedVector {
    pub(crate) vector: Vec<f64>,
    pub(crate) tokens: u64,
}

const REPLY: u8 = 1;
const REFUSAL: u8 = 2;
const VECTOR: u8 = 3;

impl Entry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(64));
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
            Entry::Vector(RecordedVector { vector, tokens }) => {
                out.byte(VECTOR);
                out.number(*tokens);
                out.number(vector.len() as u64);
                vector.iter().for_each(|float| out.0.extend(float.to_le_bytes()));
            }
        }
        out.0
    }

    /// `None` if these are not the bytes of an entry, or of one of a later version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut from = Reader(bytes);
        let entry = match from.byte()? {
            REPLY => Entry::Reply(reply(&mut from)?),
            REFUSAL => Entry::Refusal(from.text()?.to_owned()),
            VECTOR => {
                let (tokens, length) = (from.number()?, from.number()?);
                let bytes = from.take(usize::try_from(length.checked_mul(8)?).ok()?)?;
                let vector =
                    bytes.as_chunks::<8>().0.iter().map(|float| f64::from_le_bytes(*float)).collect();
                Entry::Vector(RecordedVector { vector, tokens })
            }
            _ => return None,
        };
        from.0.is_empty().then_some(entry)
    }
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

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn optional<T>(&mut self, found: Option<&T>, write: impl FnOnce(&mut Writer, &T)) {
        self.byte(u8::from(found.is_some()));
        if let Some(found) = found {
            write(self, found);
        }
    }
}

struct Reader<'a>(&'a [u8]);

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
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(length)?).ok()
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
            (proptest::collection::vec(any::<f64>(), 0..9), any::<u64>())
                .prop_map(|(vector, tokens)| Entry::Vector(RecordedVector { vector, tokens })),
        ]
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(entry in entries()) {
            let bytes = entry.encode();
            let read = Entry::decode(&bytes).unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{entry:?}"));
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
