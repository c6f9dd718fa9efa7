//! JSON in a reply.

use anabranch_value::Value;

use super::ReplyProblem;
use super::fence::fences;
use super::repair::repair;
use crate::error::shorten;

/// The longest reply that is searched.
const LONGEST: usize = 8 << 20;

/// The JSON value of a reply: the whole reply, else the last `json` block, else the last block that is JSON, else the first
/// object or list in the text. If nothing is JSON as it stands, common mistakes are repaired: commas too many, single
/// quotes, names without quotes, Python's words, line breaks in texts, comments, a cut-off end.
///
/// ```
/// use anabranch_model::reply::json;
/// assert_eq!(json("Sure!\n```json\n{'a': True,}\n```").unwrap().to_json(), r#"{"a":true}"#);
/// ```
pub fn json(reply: &str) -> Result<Value, ReplyProblem> {
    if reply.len() > LONGEST {
        return Err(ReplyProblem(format!("the reply is longer than {LONGEST} bytes")));
    }
    let reply = reply.trim().trim_start_matches('\u{feff}');
    if reply.is_empty() {
        return Err(ReplyProblem("the reply is empty; it should be JSON".to_owned()));
    }
    let whole = Value::from_json(reply);
    let not_json = match whole {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let fences = fences(reply);
    let marked = |tag: &str| matches!(tag.to_ascii_lowercase().as_str(), "json" | "json5" | "jsonc");
    let blocks: Vec<&str> = {
        let json = fences.iter().rev().filter(|fence| marked(fence.tag));
        let others = fences.iter().rev().filter(|fence| !marked(fence.tag));
        json.chain(others).map(|fence| fence.body.trim()).collect()
    };
    if let Some(value) = blocks.iter().find_map(|block| Value::from_json(block).ok()) {
        return Ok(value);
    }
    let starts = |text: &&str| text.starts_with(['{', '[']);
    // A bracket in the prose outside of a block is probably not JSON.
    let spans = if blocks.iter().any(starts) { Vec::new() } else { spans(reply) };
    if let Some(value) = spans.iter().find_map(|span| Value::from_json(span).ok()) {
        return Ok(value);
    }
    let mut candidates = blocks.iter().copied().chain(spans.iter().copied()).filter(starts).take(MAX_SPANS);
    candidates.find_map(repair).ok_or_else(|| {
        ReplyProblem(format!(
            "the reply is {not_json}; it begins with `{}`",
            shorten(&reply[..cut(reply, 80)])
        ))
    })
}

/// Objects and lists that are tried.
const MAX_SPANS: usize = 8;

/// The outermost objects and lists in a text, in order. One that is not closed reaches to the text's end.
fn spans(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while spans.len() < MAX_SPANS {
        let Some(start) =
            bytes[at..].iter().position(|byte| matches!(byte, b'{' | b'[')).map(|found| at + found)
        else {
            break;
        };
        let end = closing(&bytes[start..]).map_or(bytes.len(), |len| start + len);
        // A text quote that never closes may hide the right end: the next attempt begins inside then.
        spans.push(text[start..end].trim_end());
        at = if end == bytes.len() { start + 1 } else { end };
    }
    spans
}

/// The length of the object or list at the start.
fn closing(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The largest length up to `len` at which a text can be cut.
fn cut(text: &str, len: usize) -> usize {
    text.floor_char_boundary(len)
}
