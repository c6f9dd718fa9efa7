//! Functions that replace what matches.

use std::borrow::Cow;

use bytes::Bytes;
use regex::{Regex, Replacer};

use super::lines::{REGEX, bounded_pattern, pattern, regex};
use super::text;
use crate::Value;
use crate::function::{Call, Fault};
use crate::functions::support::{Body, MAX_BYTES_HELD, Most, signature, unlike, whole};
use crate::registry::Functions;

/// What stands for something redacted.
const REDACTED: &str = "[REDACTED]";

/// The most bytes of all patterns of a call, ready to be looked for.
const PATTERNS_MOST: usize = 64 << 20;

pub(super) fn add(functions: &mut Functions) {
    let about = "The text with all that matches replaced. The input is UTF-8.";
    for id in ["regex_replace/1.0.0", "replace/1.0.0"] {
        let signature = signature(id, about)
            .needs("pattern", REGEX)
            .needs(
                "replacement",
                "the text for each match; `$1` and `${name}` stand for groups, `$$` for `$`",
            )
            .may("max_bytes", MAX_BYTES_HELD)
            .nanos_per_kib(4000);
        functions.add(whole(signature, replacing));
    }
    let listed = signature(
        "redact/1.0.0",
        "The text with all that matches any pattern replaced by `[REDACTED]`, one pattern after the other. The input is \
         UTF-8. 2.0.0 takes patterns with commas, and looks at the text once.",
    );
    functions.add(whole(
        listed
            .needs("patterns", "regular expressions in Rust's syntax, with commas between them")
            .may("max_bytes", MAX_BYTES_HELD)
            .nanos_per_kib(5000),
        redacting_in_turn,
    ));
    let once = signature(
        "redact/2.0.0",
        "The text with all that matches any pattern replaced by `[REDACTED]`; where several match, the first one \
         counts. The input is UTF-8.",
    );
    functions.add(whole(
        once.needs("patterns", "a list of regular expressions in Rust's syntax")
            .may("max_bytes", MAX_BYTES_HELD)
            .nanos_per_kib(4000),
        redacting,
    ));
}

fn replacing(call: &Call<'_>) -> Result<Body, Fault> {
    let pattern = regex(call, "pattern")?;
    let replacement = call.text("replacement")?.to_owned();
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |inputs| replace(&pattern, &replacement, &inputs[0], most)))
}

fn redacting_in_turn(call: &Call<'_>) -> Result<Body, Fault> {
    let patterns: Vec<&str> = call.text("patterns")?.split(',').map(str::trim).collect();
    let each = PATTERNS_MOST / patterns.len();
    let patterns =
        patterns.into_iter().map(|text| not_empty(text, each)).collect::<Result<Vec<Regex>, Fault>>()?;
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |mut inputs| {
        let input = inputs.remove(0);
        patterns.iter().try_fold(input, |text, pattern| replace(pattern, REDACTED, &text, most))
    }))
}

fn redacting(call: &Call<'_>) -> Result<Body, Fault> {
    const ALLOWED: &str = "a list of texts, one or more";
    let value = &call.params["patterns"];
    let Value::List(values) = value else { return Err(unlike("patterns", ALLOWED, value)) };
    let text = |value: &Value| match value {
        Value::Text(text) => not_empty(text, PATTERNS_MOST).map(|_| format!("(?:{text})")),
        other => Err(unlike("patterns", ALLOWED, other)),
    };
    let each = values.iter().map(text).collect::<Result<Vec<String>, Fault>>()?;
    if each.is_empty() {
        return Err(unlike("patterns", ALLOWED, value));
    }
    let any = pattern("patterns", &each.join("|"))?;
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |inputs| replace(&any, REDACTED, &inputs[0], most)))
}

/// A pattern of several, which has at most so many bytes once it is ready.
fn not_empty(text: &str, most: usize) -> Result<Regex, Fault> {
    match text.is_empty() {
        true => Err(Fault::param("patterns", "an empty pattern matches everywhere; leave it out")),
        false => bounded_pattern("patterns", text, most),
    }
}

/// The text with all matches replaced, within bounds.
fn replace(pattern: &Regex, mut replacement: &str, input: &Bytes, most: Most) -> Result<Bytes, Fault> {
    let text = text(0, input)?;
    let plain = replacement.no_expansion().map(Cow::into_owned);
    let (mut made, mut from) = (String::new(), 0);
    // No group is longer than the match.
    let groups = replacement.matches('$').count();
    let mut give = |start: usize, end: usize, expand: &mut dyn FnMut(&mut String)| {
        let longest = groups.saturating_mul(end - start).saturating_add(replacement.len());
        most.allows((made.len() + start - from).saturating_add(longest))?;
        made.push_str(&text[from..start]);
        from = end;
        expand(&mut made);
        Ok(())
    };
    match plain {
        Some(plain) => {
            for found in pattern.find_iter(text) {
                give(found.start(), found.end(), &mut |made| made.push_str(&plain))?;
            }
        }
        None => {
            for found in pattern.captures_iter(text) {
                let all = found.get(0).expect("group 0 is the match");
                give(all.start(), all.end(), &mut |made| found.expand(replacement, made))?;
            }
        }
    }
    if from == 0 && made.is_empty() {
        return Ok(input.clone());
    }
    most.allows(made.len() + text.len() - from)?;
    made.push_str(&text[from..]);
    Ok(made.into())
}
