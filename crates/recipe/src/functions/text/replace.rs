//! Functions that replace what matches.

use std::borrow::Cow;

use bytes::Bytes;
use regex::{Regex, Replacer};

use super::lines::{REGEX, pattern, regex};
use super::text;
use crate::Value;
use crate::function::{Call, Fault};
use crate::functions::support::{Body, MOST_BYTES, signature, unlike, whole};
use crate::registry::Functions;

/// What stands for something redacted.
const REDACTED: &str = "[REDACTED]";

pub(super) fn add(functions: &mut Functions) {
    let about = "The text with all that matches replaced. The input is UTF-8; at most 1 GiB is given.";
    for id in ["regex_replace/1.0.0", "replace/1.0.0"] {
        let signature = signature(id, about)
            .needs("pattern", REGEX)
            .needs(
                "replacement",
                "the text for each match; `$1` and `${name}` stand for groups, `$$` for `$`",
            )
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
            .nanos_per_kib(5000),
        redacting_in_turn,
    ));
    let once = signature(
        "redact/2.0.0",
        "The text with all that matches any pattern replaced by `[REDACTED]`; where several match, the first one \
         counts. The input is UTF-8.",
    );
    functions.add(whole(
        once.needs("patterns", "a list of regular expressions in Rust's syntax").nanos_per_kib(4000),
        redacting,
    ));
}

fn replacing(call: &Call<'_>) -> Result<Body, Fault> {
    let pattern = regex(call, "pattern")?;
    let replacement = call.text("replacement")?.to_owned();
    Ok(Box::new(move |inputs| replace(&pattern, &replacement, &inputs[0])))
}

fn redacting_in_turn(call: &Call<'_>) -> Result<Body, Fault> {
    let patterns = call.text("patterns")?.split(',').map(str::trim);
    let patterns = patterns.map(not_empty).collect::<Result<Vec<Regex>, Fault>>()?;
    Ok(Box::new(move |mut inputs| {
        let input = inputs.remove(0);
        patterns.iter().try_fold(input, |text, pattern| replace(pattern, REDACTED, &text))
    }))
}

fn redacting(call: &Call<'_>) -> Result<Body, Fault> {
    const ALLOWED: &str = "a list of texts, one or more";
    let value = &call.params["patterns"];
    let Value::List(values) = value else { return Err(unlike("patterns", ALLOWED, value)) };
    let text = |value: &Value| match value {
        Value::Text(text) => not_empty(text).map(|_| format!("(?:{text})")),
        other => Err(unlike("patterns", ALLOWED, other)),
    };
    let each = values.iter().map(text).collect::<Result<Vec<String>, Fault>>()?;
    if each.is_empty() {
        return Err(unlike("patterns", ALLOWED, value));
    }
    let any = pattern("patterns", &each.join("|"))?;
    Ok(Box::new(move |inputs| replace(&any, REDACTED, &inputs[0])))
}

fn not_empty(text: &str) -> Result<Regex, Fault> {
    match text.is_empty() {
        true => Err(Fault::param("patterns", "an empty pattern matches everywhere; leave it out")),
        false => pattern("patterns", text),
    }
}

/// The text with all matches replaced, within bounds.
fn replace(pattern: &Regex, mut replacement: &str, input: &Bytes) -> Result<Bytes, Fault> {
    let text = text(0, input)?;
    let plain = replacement.no_expansion().map(Cow::into_owned);
    let (mut made, mut from) = (String::new(), 0);
    let mut give = |start: usize, end: usize, expand: &mut dyn FnMut(&mut String)| {
        made.push_str(&text[from..start]);
        from = end;
        expand(&mut made);
        match made.len() as u64 > MOST_BYTES {
            true => Err(Fault::TooLarge { what: "the output", most: MOST_BYTES }),
            false => Ok(()),
        }
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
    made.push_str(&text[from..]);
    Ok(made.into())
}
