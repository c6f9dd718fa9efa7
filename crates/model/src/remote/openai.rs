//! The bodies of OpenAI's protocol.

use std::borrow::Cow;
use std::sync::Arc;

use anabranch_value::{Map, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use super::plain_reply::PlainReply;
use super::{Leave, Server};
use crate::error::{Error, shorten};
use crate::request::{ChatReply, ChatRequest, EmbedReply, EmbedRequest, Finish, Message, Sampling, Usage};
use crate::schema;

pub(super) fn chat_body(server: &Server, request: &ChatRequest, leave: Leave) -> Map {
    let messages = request.messages.iter().map(|message| {
        let role = Value::from(message.role.as_str());
        Value::map([("role", role), ("content", text_blocks(&message.text))])
    });
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.into(), value);
    put("model", Arc::clone(&server.identity.model).into());
    put("messages", Value::list(messages));
    if let Some(temperature) = request.sampling.temperature {
        put("temperature", temperature.into());
    }
    if let Some(top_p) = request.sampling.top_p {
        put("top_p", top_p.into());
    }
    if let Some(max_tokens) = request.sampling.max_tokens {
        let renamed = leave.has(Leave::MAX_TOKENS);
        put(if renamed { "max_completion_tokens" } else { "max_tokens" }, i64::from(max_tokens).into());
    }
    if let Some(format) = &request.format
        && !leave.has(Leave::SCHEMA)
    {
        let schema = Value::map([
            ("name", Value::from(plain_name(&format.name))),
            ("schema", format.schema.clone()),
            ("strict", schema::is_strict(&format.schema).into()),
        ]);
        put("response_format", Value::map([("type", "json_schema".into()), ("json_schema", schema)]));
    }
    body
}

/// The JSON of [`chat_body`] for a request without a schema, written at once.
pub(super) fn plain_chat_body(server: &Server, request: &ChatRequest, leave: Leave) -> Vec<u8> {
    let Sampling { temperature, top_p, max_tokens } = request.sampling;
    let (max_completion_tokens, max_tokens) =
        if leave.has(Leave::MAX_TOKENS) { (max_tokens, None) } else { (None, max_tokens) };
    let body = PlainBody {
        model: &server.identity.model,
        messages: PlainMessages(&request.messages),
        temperature,
        top_p,
        max_tokens,
        max_completion_tokens,
    };
    let texts: usize = request.messages.iter().map(|message| message.text.len() + 64).sum();
    let mut json = Vec::with_capacity(texts + texts / 8 + 160);
    serde_json::to_writer(&mut json, &body).expect("a vector takes all bytes, and names are text");
    json
}

#[derive(Serialize)]
struct PlainBody<'a> {
    model: &'a str,
    messages: PlainMessages<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

struct PlainMessages<'a>(&'a [Message]);

impl Serialize for PlainMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|message| PlainMessage {
            role: message.role.as_str(),
            content: [PlainBlock { r#type: "text", text: &message.text }],
        }))
    }
}

#[derive(Serialize)]
struct PlainMessage<'a> {
    role: &'static str,
    content: [PlainBlock<'a>; 1],
}

#[derive(Serialize)]
struct PlainBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Content as a list of blocks, which all servers of this protocol take.
pub(super) fn text_blocks(text: &Arc<str>) -> Value {
    Value::list([Value::map([("type", Value::from("text")), ("text", Arc::clone(text).into())])])
}

/// A name with the characters that a schema's or a tool's name may have.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().map(plain).take(64).collect();
    if name.is_empty() { "reply".to_owned() } else { name }
}

/// The reply of a good answer of the usual form; `None` for any other, which [`read_chat`] then reads or explains.
pub(super) fn read_plain_chat(server: &Server, body: &[u8]) -> Option<Result<ChatReply, Error>> {
    let said = PlainReply::read(std::str::from_utf8(body).ok()?)?;
    Some(chat_reply(server, &said, body.len()))
}

pub(super) fn read_chat(server: &Server, reply: &Value, bytes: usize) -> Result<ChatReply, Error> {
    let choice = reply.get("choices").and_then(|choices| choices.as_list()?.first());
    let message = choice.and_then(|choice| choice.get("message"));
    let message = message.filter(|message| message.as_map().is_some());
    let message = message.ok_or_else(|| server.malformed("it has no `choices[0].message`"))?;
    let text_of = |name: &str| message.get(name).and_then(Value::as_text).map(Cow::Borrowed);
    let said = PlainReply {
        content: Some(content(message.get("content"))),
        refusal: text_of("refusal"),
        reasoning_content: text_of("reasoning_content"),
        reasoning: text_of("reasoning"),
        finish_reason: choice.and_then(|choice| choice.get("finish_reason")?.as_text()).map(Cow::Borrowed),
        usage: usage(reply),
    };
    chat_reply(server, &said, bytes)
}

fn chat_reply(server: &Server, said: &PlainReply<'_>, bytes: usize) -> Result<ChatReply, Error> {
    fn filled<'a>(text: &'a Option<Cow<'_, str>>) -> Option<&'a str> {
        text.as_deref().filter(|text| !text.is_empty())
    }
    let text = said.content.as_deref().unwrap_or_default();
    let finish = said.finish_reason.as_deref().unwrap_or("stop");
    if text.trim().is_empty() {
        let refusal = filled(&said.refusal).or((finish == "content_filter").then_some("content filter"));
        if let Some(refusal) = refusal {
            return Err(Error::Refused { endpoint: server.name(), message: shorten(refusal) });
        }
    }
    let finish = match finish {
        "stop" | "eos" | "end_turn" => Finish::Stop,
        "length" | "max_tokens" => Finish::Length,
        other => Finish::Other(shorten(other).into()),
    };
    let reasoning = filled(&said.reasoning_content).or_else(|| filled(&said.reasoning)).map(Into::into);
    Ok(ChatReply { text: text.into(), reasoning, finish, usage: said.usage, bytes, demo: false, rates: None })
}

/// The text of content: a text, or the text blocks of a list.
fn content(content: Option<&Value>) -> Cow<'_, str> {
    match content {
        Some(Value::Text(text)) => Cow::Borrowed(text),
        Some(Value::List(blocks)) => {
            blocks.iter().filter_map(|block| block.get("text").unwrap_or(block).as_text()).collect()
        }
        _ => Cow::Borrowed(""),
    }
}

fn usage(reply: &Value) -> Usage {
    let usage = reply.get("usage").unwrap_or(&Value::Null);
    let cached = usage.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"));
    Usage {
        input_tokens: tokens(usage.get("prompt_tokens")).unwrap_or(0),
        output_tokens: tokens(usage.get("completion_tokens")).unwrap_or(0),
        cached_tokens: tokens(cached),
    }
}

/// A number of tokens.
pub(super) fn tokens(value: Option<&Value>) -> Option<u64> {
    value?.as_number().filter(|number| *number >= 0.0).map(|number| number as u64)
}

pub(super) fn embed_body(server: &Server, request: &EmbedRequest) -> Map {
    let mut body = Map::new();
    body.insert("model".into(), Arc::clone(&server.identity.model).into());
    body.insert("input".into(), Value::list(request.texts.iter().map(|text| Arc::clone(text).into())));
    body.insert("encoding_format".into(), server.embedding.encoding_format.as_str().into());
    if let Some(dimensions) = server.embedding.dimensions {
        body.insert("dimensions".into(), i64::from(dimensions).into());
    }
    body
}

/// The vectors in the order of the texts, regardless of the order in the reply.
pub(super) fn read_vectors(
    server: &Server,
    reply: &Value,
    texts: usize,
    bytes: usize,
) -> Result<EmbedReply, Error> {
    let items =
        reply.get("data").and_then(Value::as_list).ok_or_else(|| server.malformed("it has no `data`"))?;
    if items.len() != texts {
        return Err(server.malformed(format!("it has {} vectors for {texts} texts", items.len())));
    }
    let mut vectors: Vec<Option<Vec<f64>>> = vec![None; texts];
    for (place, item) in items.iter().enumerate() {
        let index = match item.get("index") {
            Some(Value::Int(index)) => usize::try_from(*index).ok(),
            None => Some(place),
            Some(_) => None,
        };
        let slot = index.and_then(|index| vectors.get_mut(index)).filter(|slot| slot.is_none());
        let slot = slot.ok_or_else(|| server.malformed(format!("`data[{place}].index` is not right")))?;
        let vector = item.get("embedding").and_then(vector);
        *slot = Some(vector.ok_or_else(|| {
            server.malformed(format!("`data[{place}].embedding` is not a vector of numbers"))
        })?);
    }
    let vectors: Vec<Vec<f64>> = vectors.into_iter().flatten().collect();
    if vectors.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
        return Err(server.malformed("its vectors have different lengths"));
    }
    Ok(EmbedReply { vectors, usage: usage(reply), bytes, demo: false, rates: None })
}

/// A vector as a list of numbers, or as the base64 of 32-bit floats, lowest byte first.
fn vector(value: &Value) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = match value {
        Value::List(numbers) => numbers.iter().map(Value::as_number).collect::<Option<_>>()?,
        Value::Text(text) => {
            let bytes = STANDARD.decode(text.as_bytes()).ok()?;
            let (floats, rest) = bytes.as_chunks::<4>();
            if !rest.is_empty() {
                return None;
            }
            floats.iter().map(|float| f64::from(f32::from_le_bytes(*float))).collect()
        }
        _ => return None,
    };
    (!numbers.is_empty() && numbers.iter().all(|number| number.is_finite())).then_some(numbers)
}
