//! The loader's errors about plan JSON, in the words of TypeScript.

use anabranch_plan::Problem;
use anabranch_plan::op::Ops;

use super::method;
use crate::surface;

/// The start of quoted text in the loader's messages. Quoted text is not rephrased.
const QUOTED: &str = ", not the string";

/// Phrases that only make sense in plan JSON.
const PHRASES: [(&str, &str); 2] = [
    ("add it to capabilities_required", "call `ctx.requireCapability` with it"),
    (
        r#"{"default": {key: value}}, {"stale": {"max_age_ms": n}} or {"node": id}"#,
        "{ default: { key: value } }, { stale: { maxAgeMs } } or rows",
    ),
];

/// The same problem in other words.
pub(crate) fn in_typescript(problem: &Problem, ops: &Ops) -> Problem {
    let mut told = problem.clone();
    told.what = words(&problem.what, ops);
    told.help = problem.help.as_deref().map(|help| words(help, ops));
    told
}

fn words(text: &str, ops: &Ops) -> String {
    let (own, quoted) = text.split_at(text.find(QUOTED).unwrap_or(text.len()));
    let phrased = PHRASES.iter().fold(own.to_owned(), |text, (json, here)| text.replace(json, here));
    let mut out = String::with_capacity(phrased.len() + quoted.len());
    let mut rest = phrased.as_str();
    // Word by word. A word has the characters of parameter and op names.
    while !rest.is_empty() {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let in_ticks = out.ends_with('`') && after.starts_with('`');
        out.push_str(&word_of(word, in_ticks, ops).unwrap_or_else(|| word.to_owned()));
        let next = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out + quoted
}

/// The name of an op or a parameter in TypeScript, if a word is its name in plan JSON and the two differ.
fn word_of(word: &str, in_ticks: bool, ops: &Ops) -> Option<String> {
    if word.contains("::") {
        let name = method(ops.get(word)?.spec());
        return Some(if in_ticks { name } else { format!("`{name}`") });
    }
    if !in_ticks || !word.contains('_') {
        return None;
    }
    let universal =
        surface::UNIVERSAL.iter().find(|(_, json)| *json == word).map(|(here, _)| (*here).to_owned());
    universal.or_else(|| {
        let mut params = ops.iter().flat_map(|op| op.spec().params);
        params.find(|param| param.name == word).map(surface::option)
    })
}

#[cfg(test)]
mod tests {
    use anabranch_plan::op::Ops;

    use super::words;

    #[test]
    fn names_of_plan_json_are_names_of_typescript() {
        let check = |text, expected| assert_eq!(words(text, &Ops::builtin()), expected);
        check("core::filter chooses among rows", "`filter` chooses among rows");
        check("use `core::group_limit` or test::sleep", "use `groupLimit` or `test.sleep`");
        check("`on_right` names the one", "`onRight` names the one");
        check("without a `timeout_ms`, expr_id", "without a `timeoutMs`, expr_id");
        check("the `pred_id` of a `my_key`", "the `pred` of a `my_key`");
        check("add it to capabilities_required", "call `ctx.requireCapability` with it");
        check(
            "must be a `timeout_ms`, not the string `timeout_ms`",
            "must be a `timeoutMs`, not the string `timeout_ms`",
        );
        check("größer: `löwe_`", "größer: `löwe_`");
    }
}
