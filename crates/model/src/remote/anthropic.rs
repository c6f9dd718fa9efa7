//! The bodies of Anthropic's protocol.

use anabranch_value::{Map, Value};

use super::openai::{plain_name, text_blocks, tokens};
use super::{Leave, Server};
use crate::error::{Error, shorten};
use crate::request::{ChatReply, ChatRequest, Finish, Role, Usage};

/// The protocol has no default of its own.
const MAX_TOKENS: u32 = 4096;

pub(super) fn chat_body(server: &Server, request: &ChatRequest, leave: Leave) -> Map {
    let of_system = |role| role == Role::System;
    let system: Vec<&str> = request
        .messages
        .iter()
        .filter(|message| of_system(message.role))
        .map(|message| &*message.text)
        .collect();
    let messages = request.messages.iter().filter(|message| !of_system(message.role)).map(|message| {
        let role = Value::from(message.role.as_str());
        Value::map([("role", role), ("content", text_blocks(&message.text))])
    });
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.into(), value);
    put("model", server.identity.model.clone().into());
    put("max_tokens", i64::from(request.sampling.max_tokens.unwrap_or(MAX_TOKENS)).into());
    if !system.is_empty() {
        put("system", system.join("\n\n").into());
    }
    put("messages", Value::list(messages));
    if let Some(temperature) = request.sampling.temperature {
        put("temperature", temperature.into());
    }
    if let Some(top_p) = request.sampling.top_p {
        put("top_p", top_p.into());
    }
    // A tool's input is always an object.
    if let Some(format) = &request.format
        && !leave.has(Leave::SCHEMA)
        && format.schema.get("type").and_then(Value::as_text) == Some("object")
    {
        let name = Value::from(plain_name(&format.name));
        let tool = Value::map([
            ("name", name.clone()),
            ("description", "Takes the reply.".into()),
            ("input_schema", format.schema.clone()),
        ]);
        put("tools", Value::list([tool]));
        put("tool_choice", Value::map([("type", "tool".into()), ("name", name)]));
    }
    body
}

pub(super) fn read_chat(server: &Server, reply: &Value, bytes: usize) -> Result<ChatReply, Error> {
    let blocks = reply.get("content").and_then(Value::as_list);
    let blocks = blocks.ok_or_else(|| server.malformed("it has no `content`"))?;
    let kind = |block: &Value| block.get("type").and_then(Value::as_text).unwrap_or("").to_owned();
    let texts = |wanted: &str, name: &str| -> String {
        let of_kind = blocks.iter().filter(|block| kind(block) == wanted);
        of_kind.filter_map(|block| block.get(name)?.as_text()).collect()
    };
    let tool = blocks.iter().find(|block| kind(block) == "tool_use").and_then(|block| block.get("input"));
    let text = tool.map_or_else(|| texts("text", "text"), Value::to_json);
    let reasoning = Some(texts("thinking", "thinking")).filter(|text| !text.is_empty()).map(Into::into);
    let finish = match reply.get("stop_reason").and_then(Value::as_text).unwrap_or("end_turn") {
        "refusal" => {
            let message = if text.is_empty() { "no reason given".to_owned() } else { shorten(&text) };
            return Err(Error::Refused { endpoint: server.name(), message });
        }
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" if tool.is_some() => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        other => Finish::Other(shorten(other).into()),
    };
    let usage = usage(reply.get("usage").unwrap_or(&Value::Null));
    Ok(ChatReply { text: text.into(), reasoning, finish, usage, bytes, demo: false, rates: None })
}

/// `input_tokens` leaves out the tokens that were read from or written to the cache.
fn usage(usage: &Value) -> Usage {
    let count = |name: &str| tokens(usage.get(name));
    let cached = count("cache_read_input_tokens");
    let input = [count("input_tokens"), cached, count("cache_creation_input_tokens")];
    Usage {
        input_tokens: input.into_iter().flatten().fold(0, u64::saturating_add),
        output_tokens: count("output_tokens").unwrap_or(0),
        cached_tokens: cached,
    }
}
