//! Replies of the two protocols.

use anabranch_value::Value;

use super::schema::sample;
use super::{ModelCall, ModelScript, hash};
use crate::rng::Rng;

/// The body of a reply, or the status of an error.
pub(super) fn answer(call: &ModelCall, script: &ModelScript, content: u64) -> Result<String, u16> {
    if call.body.as_map().is_none() {
        return Err(400);
    }
    if call.path.ends_with("/chat/completions") {
        chat(call, script, content)
    } else if call.path.ends_with("/messages") {
        messages(call, script, content)
    } else if call.path.ends_with("/embeddings") {
        embeddings(&call.body, script)
    } else {
        Err(404)
    }
}

/// The texts of the user's messages.
pub(super) fn prompt(body: &Value) -> String {
    let messages = body.get("messages").and_then(Value::as_list).unwrap_or_default();
    let users =
        messages.iter().filter(|message| message.get("role").and_then(Value::as_text) == Some("user"));
    let texts = users.flat_map(|message| match message.get("content") {
        Some(Value::Text(text)) => vec![text.to_string()],
        Some(Value::List(blocks)) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_text().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn chat(call: &ModelCall, script: &ModelScript, content: u64) -> Result<String, u16> {
    let format = call.body.get("response_format");
    let schema = format.and_then(|format| format.get("json_schema")?.get("schema"));
    if format.is_some() && script.refuses_schemas {
        return Err(REFUSED_SCHEMA);
    }
    let text = text(call, script, content, schema);
    let message = Value::map([("role", Value::from("assistant")), ("content", text.as_str().into())]);
    let choice =
        Value::map([("index", Value::Int(0)), ("message", message), ("finish_reason", Value::from("stop"))]);
    let usage =
        Value::map([("prompt_tokens", tokens(&prompt(&call.body))), ("completion_tokens", tokens(&text))]);
    let reply = [("id", Value::from("scripted")), ("choices", Value::list([choice])), ("usage", usage)];
    Ok(Value::map(reply).to_json())
}

/// The status by which a native schema is refused; see `http::play` for its body.
const REFUSED_SCHEMA: u16 = 422;

fn messages(call: &ModelCall, script: &ModelScript, content: u64) -> Result<String, u16> {
    let tool = call.body.get("tools").and_then(|tools| tools.as_list()?.first());
    if tool.is_some() && script.refuses_schemas {
        return Err(REFUSED_SCHEMA);
    }
    let text = text(call, script, content, tool.and_then(|tool| tool.get("input_schema")));
    let block = match tool {
        Some(tool) => Value::map([
            ("type", Value::from("tool_use")),
            ("name", tool.get("name").cloned().unwrap_or_default()),
            ("input", Value::from_json(&text).unwrap_or_default()),
        ]),
        None => Value::map([("type", Value::from("text")), ("text", text.as_str().into())]),
    };
    let stop = if tool.is_some() { "tool_use" } else { "end_turn" };
    let usage = Value::map([("input_tokens", tokens(&prompt(&call.body))), ("output_tokens", tokens(&text))]);
    let reply = [("content", Value::list([block])), ("stop_reason", stop.into()), ("usage", usage)];
    Ok(Value::map(reply).to_json())
}

/// The text of a reply: scripted, in the form of a schema, code, or a sentence.
fn text(call: &ModelCall, script: &ModelScript, content: u64, native: Option<&Value>) -> String {
    if let Some(reply) = &script.reply {
        return reply(call);
    }
    let mut rng = Rng::new(content);
    if let Some(schema) = native {
        return sample(schema, &mut rng).to_json();
    }
    let prompt = prompt(&call.body);
    if let Some((_, rest)) = prompt.rsplit_once("<response_schema>")
        && let Some((schema, _)) = rest.split_once("</response_schema>")
        && let Ok(schema) = Value::from_json(schema.trim())
    {
        return format!("Here it is:\n```json\n{}\n```", sample(&schema, &mut rng).to_json());
    }
    let fence =
        prompt.rsplit_once("```").map(|(_, rest)| rest.split([' ', '\n', '.', '`']).next().unwrap_or(""));
    match fence.filter(|tag| !tag.is_empty()) {
        Some("sql") => "```sql\nSELECT 1 AS scripted;\n```".to_owned(),
        Some("python") => format!("```python\nscripted = {}\n```", rng.within(0..100)),
        Some(tag) => format!("```{tag}\nscripted\n```"),
        None => format!("scripted reply {:04x}", rng.within(0..0x10000)),
    }
}

fn embeddings(body: &Value, script: &ModelScript) -> Result<String, u16> {
    let texts = match body.get("input") {
        Some(Value::List(texts)) => texts.to_vec(),
        Some(text @ Value::Text(_)) => vec![text.clone()],
        _ => return Err(400),
    };
    let asked = body.get("dimensions").and_then(Value::as_number).map(|number| number as usize);
    let dimensions = asked.unwrap_or(if script.dimensions == 0 { 8 } else { script.dimensions });
    let base64 = body.get("encoding_format").and_then(Value::as_text) == Some("base64");
    let vectors = texts.iter().enumerate().map(|(index, text)| {
        let mut rng = Rng::new(hash(text.as_text().unwrap_or("").as_bytes(), 0));
        let floats: Vec<f32> = (0..dimensions).map(|_| rng.within(0..1024) as f32 / 1024.0).collect();
        let vector = match base64 {
            true => encoded(&floats).into(),
            false => Value::list(floats.iter().map(|float| f64::from(*float).into())),
        };
        Value::map([("index", Value::Int(index as i64)), ("embedding", vector)])
    });
    // Backwards: clients must go by the index.
    let mut data: Vec<Value> = vectors.collect();
    data.reverse();
    let usage = Value::map([("prompt_tokens", Value::Int(texts.len() as i64))]);
    Ok(Value::map([("data", Value::from(data)), ("usage", usage)]).to_json())
}

/// Base64 of the floats' bytes, lowest first.
fn encoded(floats: &[f32]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
    let groups = bytes.chunks(3).flat_map(|group| {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        (0..4).map(move |at| match at <= group.len() {
            true => SIGNS[(bits >> (18 - 6 * at) & 63) as usize] as char,
            false => '=',
        })
    });
    groups.collect()
}

fn tokens(text: &str) -> Value {
    Value::Int(text.len().div_ceil(4) as i64)
}
