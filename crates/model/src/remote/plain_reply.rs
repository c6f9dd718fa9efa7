//! Parses a reply of OpenAI's protocol in its usual form, without a tree of values.
//!
//! The result is the same as that of [`anabranch_value::Value::from_json`] and a lookup of its fields. Fields that are
//! not needed are still checked, to the same depth. Everything unusual is refused here, and parsed that way.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::request::Usage;

/// The parts of a reply that are used. `null` counts as absent.
pub(super) struct PlainReply<'a> {
    pub(super) content: Option<Cow<'a, str>>,
    pub(super) refusal: Option<Cow<'a, str>>,
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    pub(super) reasoning: Option<Cow<'a, str>>,
    pub(super) finish_reason: Option<Cow<'a, str>>,
    pub(super) usage: Usage,
}

impl<'a> PlainReply<'a> {
    /// `None` if the text is not a good reply of the usual form.
    pub(super) fn read(json: &'a str) -> Option<PlainReply<'a>> {
        let Reply { choices, usage, error: None } = serde_json::from_str(json).ok()? else { return None };
        let FirstChoice(Choice { message, finish_reason }) = choices?;
        let Message { content, refusal, reasoning_content, reasoning } = message?;
        let usage = usage.unwrap_or_default();
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let tokens = |count: Option<Count>| count.map(|Count(count)| count);
        Some(PlainReply {
            content: content.map(|Text(text)| text),
            refusal: refusal.map(|Text(text)| text),
            reasoning_content: reasoning_content.map(|Text(text)| text),
            reasoning: reasoning.map(|Text(text)| text),
            finish_reason: finish_reason.map(|Text(text)| text),
            usage: Usage {
                input_tokens: tokens(usage.prompt_tokens).unwrap_or(0),
                output_tokens: tokens(usage.completion_tokens).unwrap_or(0),
                cached_tokens: tokens(cached),
            },
        })
    }
}

/// A struct of the named fields of a JSON object. A field that comes twice is refused, unless the first is `null`: then
/// the second counts, as it does in a map.
macro_rules! object {
    ($name:ident $(<$life:lifetime>)? { $($field:ident: $kind:ty),* }) => {
        #[derive(Default)]
        struct $name $(<$life>)? {
            $($field: Option<$kind>,)*
        }

        impl<'a> Deserialize<'a> for $name $(<$life>)? {
            fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'a> Visitor<'a> for Fields {
                    type Value = $name $(<$life>)?;

                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'a>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                        let mut object = $name::default();
                        while let Some(Text(name)) = entries.next_key()? {
                            match &*name {
                                $(stringify!($field) if object.$field.is_none() => {
                                    object.$field = entries.next_value()?;
                                })*
                                $(stringify!($field) => {
                                    return Err(Error::duplicate_field(stringify!($field)));
                                })*
                                _ => {
                                    entries.next_value::<SkippedValue>()?;
                                }
                            }
                        }
                        Ok(object)
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    };
}

object!(Reply<'a> { choices: FirstChoice<'a>, usage: TokenUsage, error: SkippedValue });
object!(Choice<'a> { message: Message<'a>, finish_reason: Text<'a> });
object!(Message<'a> { content: Text<'a>, refusal: Text<'a>, reasoning_content: Text<'a>, reasoning: Text<'a> });
object!(TokenUsage { prompt_tokens: Count, completion_tokens: Count, prompt_tokens_details: Details });
object!(Details { cached_tokens: Count });

/// The first of a list that is not empty.
struct FirstChoice<'a>(Choice<'a>);

impl<'a> Deserialize<'a> for FirstChoice<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;

        impl<'a> Visitor<'a> for Items {
            type Value = FirstChoice<'a>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list that is not empty")
            }

            fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let first = items.next_element()?.ok_or_else(|| Error::invalid_length(0, &self))?;
                while items.next_element::<SkippedValue>()?.is_some() {}
                Ok(FirstChoice(first))
            }
        }

        deserializer.deserialize_seq(Items)
    }
}

/// A text, borrowed unless it has escapes.
struct Text<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for Text<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Characters;

        impl<'a> Visitor<'a> for Characters {
            type Value = Text<'a>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Characters)
    }
}

/// A number of tokens: an integer that is small enough to be exact as a float.
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;

        impl Visitor<'_> for Digits {
            type Value = Count;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a whole number up to 2^53")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
                let exact = number <= 1 << f64::MANTISSA_DIGITS;
                exact.then_some(Count(number)).ok_or_else(|| E::custom("too large a number"))
            }
        }

        deserializer.deserialize_any(Digits)
    }
}

/// A value that is checked and dropped. `IgnoredAny` would not do: it takes any depth, numbers that no float can hold, and
/// halves of surrogate pairs.
struct SkippedValue;

impl<'de> Deserialize<'de> for SkippedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SkippedValue)
    }
}

impl<'de> Visitor<'de> for SkippedValue {
    type Value = SkippedValue;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<SkippedValue, E> {
        Ok(SkippedValue)
    }

    fn visit_bool<E>(self, _: bool) -> Result<SkippedValue, E> {
        Ok(SkippedValue)
    }

    fn visit_i64<E>(self, _: i64) -> Result<SkippedValue, E> {
        Ok(SkippedValue)
    }

    fn visit_u64<E>(self, _: u64) -> Result<SkippedValue, E> {
        Ok(SkippedValue)
    }

    fn visit_f64<E>(self, _: f64) -> Result<SkippedValue, E> {
        Ok(SkippedValue)
    }

    fn visit_str<E>(self, _: &str) -> Result<SkippedValue, E> {
        Ok(SkippedValue)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<SkippedValue, A::Error> {
        while items.next_element::<SkippedValue>()?.is_some() {}
        Ok(SkippedValue)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<SkippedValue, A::Error> {
        while entries.next_entry::<SkippedValue, SkippedValue>()?.is_some() {}
        Ok(SkippedValue)
    }
}
