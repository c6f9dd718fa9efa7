//! Functions that replace matches.

use std::sync::Arc;

use bytes::Bytes;

use super::pattern::{Pattern, PatternCompiler, REGEX};
use super::text;
use crate::budget::CallBudget;
use crate::function::{Call, Fault};
use crate::functions::kernels::signature;
use crate::functions::output::{Output, OutputLimit};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::whole::{Body, whole};

/// The replacement for redacted text.
const REDACTED: &str = "[REDACTED]";

/// The maximum number of patterns per call.
const PATTERNS_MOST: usize = 256;

/// The maximum total length of all patterns of a call, in bytes.
const PATTERNS_BYTES_MOST: usize = 16 << 10;

pub(super) fn add(functions: &mut Functions) {
    let about = "The text with every match of the pattern replaced. The input is UTF-8.";
    for id in ["regex_replace/1.0.0", "replace/1.0.0"] {
        let signature = signature(id, about)
            .needs("pattern", ParamKind::Text, REGEX)
            .needs(
                "replacement",
                ParamKind::Text,
                "the text for each match; `$1` and `${name}` stand for groups, `$$` for `$`",
            )
            .bounds_held_output()
            .compiles()
            .nanos_per_kib(4000);
        functions.add(whole(signature, replacing));
    }
    let listed = signature(
        "redact/1.0.0",
        "The text with every match of each pattern replaced by `[REDACTED]`, one pattern after the other. \
         The input is UTF-8. Version 2.0.0 accepts patterns with commas, and reads the text once.",
    );
    functions.add(whole(
        listed
            .needs("patterns", ParamKind::Text, "regular expressions in Rust's syntax, separated by commas")
            .bounds_held_output()
            .compiles()
            .nanos_per_kib(5000),
        redacting_in_turn,
    ));
    let once = signature(
        "redact/2.0.0",
        "The text with every match of any pattern replaced by `[REDACTED]`. If several patterns match at a \
         position, the first one is used. The input is UTF-8.",
    );
    functions.add(whole(
        once.needs("patterns", ParamKind::list(ParamKind::Text, 1), "regular expressions in Rust's syntax")
            .bounds_held_output()
            .compiles()
            .nanos_per_kib(4000),
        redacting,
    ));
}

fn replacing(call: &Call<'_>) -> Result<Body, Fault> {
    let pattern = Pattern::of(call, "pattern")?;
    let replacement = call.text("replacement")?.to_owned();
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |inputs, budget| replace(&pattern, &replacement, &inputs[0], most, budget)))
}

fn redacting_in_turn(call: &Call<'_>) -> Result<Body, Fault> {
    let texts = patterns(call)?;
    let mut compiler = PatternCompiler::new(call, "patterns");
    let patterns =
        texts.iter().map(|text| compiler.compile(text)).collect::<Result<Vec<Pattern>, Fault>>()?;
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |mut inputs, budget| {
        let input = inputs.remove(0);
        patterns.iter().try_fold(input, |text, pattern| replace(pattern, REDACTED, &text, most, budget))
    }))
}

fn redacting(call: &Call<'_>) -> Result<Body, Fault> {
    let texts = patterns(call)?;
    // Each pattern is checked alone, so that an error names the pattern.
    let mut alone = PatternCompiler::new(call, "patterns");
    texts.iter().try_for_each(|text| alone.check(text))?;
    let any = texts.iter().map(|text| format!("(?:{text})")).collect::<Vec<_>>().join("|");
    let any = PatternCompiler::new(call, "patterns").compile(&any)?;
    let most = call.max_bytes_held()?;
    Ok(Box::new(move |inputs, budget| replace(&any, REDACTED, &inputs[0], most, budget)))
}

/// The patterns of a call, if they are few and short enough to be compiled together.
fn patterns<'a>(call: &Call<'a>) -> Result<Vec<&'a str>, Fault> {
    let texts = call.texts_most("patterns", PATTERNS_MOST)?;
    let wrong = |problem: String| Err(Fault::param("patterns", problem));
    if texts.iter().any(|text| text.is_empty()) {
        return wrong("an empty pattern matches everywhere; leave it out".to_owned());
    }
    let bytes: usize = texts.iter().map(|text| text.len() + "(?:)|".len()).sum();
    match bytes > PATTERNS_BYTES_MOST {
        true => wrong(format!("the patterns have {bytes} bytes; they may have {PATTERNS_BYTES_MOST}")),
        false => Ok(texts),
    }
}

/// The text with all matches replaced, within the bounds.
fn replace(
    pattern: &Pattern,
    replacement: &str,
    input: &Bytes,
    most: OutputLimit,
    budget: &Arc<CallBudget>,
) -> Result<Bytes, Fault> {
    let text = text(0, input)?;
    let groups = replacement.matches('$').count();
    let mut made = Output::new(most, budget);
    let mut from = 0;
    pattern.matches(text, budget, |span| {
        // No group is longer than the match.
        let longest = groups.saturating_mul(span.len()).saturating_add(replacement.len());
        made.reserve((span.start - from).saturating_add(longest))?;
        made.write(&text.as_bytes()[from..span.start])?;
        from = span.end;
        if groups == 0 {
            return made.write(replacement.as_bytes());
        }
        let mut expanded = String::new();
        pattern.groups(text, span, budget)?.interpolate_string_into(text, replacement, &mut expanded);
        made.write(expanded.as_bytes())
    })?;
    if from == 0 && made.is_empty() {
        return Ok(input.clone());
    }
    made.write(&text.as_bytes()[from..])?;
    Ok(made.into_bytes())
}
