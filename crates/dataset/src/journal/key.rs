//! Keys of the journal.

use anabranch_content::Address;
use anabranch_model::{ChatRequest, Format, Model, Role};
use anabranch_value::{Map, Value};

/// Makes the keys of one model's replies. All keys of a model begin in the same way, which is hashed once.
pub(crate) struct Keys {
    chat: blake3::Hasher,
    embedding: blake3::Hasher,
}

const CHAT: &str = "anabranch 2026 dataset journal: chat replies";
const EMBEDDING: &str = "anabranch 2026 dataset journal: embeddings";

impl Keys {
    pub(crate) fn new(model: &dyn Model) -> Keys {
        let begin = |context: &str| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            text(&mut hasher, &model.identity().provider);
            text(&mut hasher, &model.identity().model);
            map(&mut hasher, &model.parameters());
            hasher
        };
        Keys { chat: begin(CHAT), embedding: begin(EMBEDDING) }
    }

    /// The key of the reply to a request.
    pub(crate) fn chat(&self, request: &ChatRequest) -> Address {
        let ChatRequest { messages, sampling, format, sample, attempt, extra_body } = request;
        let mut hasher = self.chat.clone();
        number(&mut hasher, *sample);
        number(&mut hasher, u64::from(*attempt));
        for decimal in [sampling.temperature, sampling.top_p] {
            optional(&mut hasher, decimal.map(f64::to_bits));
        }
        optional(&mut hasher, sampling.max_tokens.map(u64::from));
        number(&mut hasher, messages.len() as u64);
        for message in messages.iter() {
            hasher.update(&[match message.role {
                Role::System => 0,
                Role::User => 1,
                Role::Assistant => 2,
            }]);
            text(&mut hasher, &message.text);
        }
        hasher.update(&[u8::from(format.is_some()), u8::from(extra_body.is_some())]);
        if let Some(Format { name, schema }) = format {
            text(&mut hasher, name);
            value(&mut hasher, schema);
        }
        if let Some(extra) = extra_body {
            map(&mut hasher, extra);
        }
        hasher.finalize().into()
    }

    /// The key of the vector of a text. Equal texts have equal vectors, so no sample is part of it.
    pub(crate) fn embedding(&self, embedded: &str) -> Address {
        let mut hasher = self.embedding.clone();
        text(&mut hasher, embedded);
        hasher.finalize().into()
    }
}

fn number(hasher: &mut blake3::Hasher, number: u64) {
    hasher.update(&number.to_le_bytes());
}

fn optional(hasher: &mut blake3::Hasher, found: Option<u64>) {
    hasher.update(&[u8::from(found.is_some())]);
    number(hasher, found.unwrap_or(0));
}

/// With its length in front, so that no two lists of texts look the same.
fn text(hasher: &mut blake3::Hasher, text: &str) {
    number(hasher, text.len() as u64);
    hasher.update(text.as_bytes());
}

fn map(hasher: &mut blake3::Hasher, entries: &Map) {
    number(hasher, entries.len() as u64);
    // The order of fields does not affect a server.
    let mut names: Vec<_> = entries.keys().collect();
    names.sort_unstable();
    for name in names {
        text(hasher, name);
        value(hasher, &entries[name]);
    }
}

fn value(hasher: &mut blake3::Hasher, found: &Value) {
    match found {
        Value::Null => _ = hasher.update(&[0]),
        Value::Bool(truth) => _ = hasher.update(&[1, u8::from(*truth)]),
        Value::Int(int) => _ = hasher.update(&[2]).update(&int.to_le_bytes()),
        Value::Float(float) => _ = hasher.update(&[3]).update(&float.to_bits().to_le_bytes()),
        Value::Text(found) => text(hasher.update(&[4]), found),
        Value::List(items) => {
            number(hasher.update(&[5]), items.len() as u64);
            items.iter().for_each(|item| value(hasher, item));
        }
        Value::Map(entries) => map(hasher.update(&[6]), entries),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use anabranch_model::{Demo, Message};

    use super::*;

    #[test]
    fn every_part_of_a_request_is_part_of_its_key() {
        let keys = Keys::new(&Demo::new());
        let base = ChatRequest::new([Message::user("a"), Message::user("b")]);
        let schema = |text: &str| Value::from_json(text).unwrap();
        let mut others = vec![
            base.clone(),
            ChatRequest::new([Message::user("ab"), Message::user("")]),
            ChatRequest::new([Message::user("a"), Message::assistant("b")]),
            ChatRequest::new([Message::user("a")]),
            ChatRequest { sample: 1, ..base.clone() },
            ChatRequest { attempt: 1, ..base.clone() },
            base.clone().with_format("x", schema(r#"{"type": "object"}"#)),
            base.clone().with_format("x", schema(r#"{"type": "array"}"#)),
            base.clone().with_format("y", schema(r#"{"type": "array"}"#)),
        ];
        for (temperature, top_p, max_tokens) in
            [(Some(0.0), None, None), (None, Some(0.0), None), (None, None, Some(0)), (Some(0.5), None, None)]
        {
            let sampling = anabranch_model::Sampling { temperature, top_p, max_tokens };
            others.push(ChatRequest { sampling, ..base.clone() });
        }
        let distinct: HashSet<Address> = others.iter().map(|request| keys.chat(request)).collect();
        assert_eq!(distinct.len(), others.len());
        assert_eq!(keys.chat(&base), keys.chat(&base.clone()));
        assert_ne!(keys.embedding("a"), keys.embedding("b"));
        let reordered = |text: &str| keys.chat(&base.clone().with_format("x", schema(text)));
        assert_eq!(reordered(r#"{"a": 1, "b": 2}"#), reordered(r#"{"b": 2, "a": 1}"#));
    }
}
