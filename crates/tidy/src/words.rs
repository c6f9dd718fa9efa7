//! Rule: the lower crates name no workload, neither in code nor in comments nor in file names.

use std::collections::BTreeSet;

use crate::{Policy, Violation, Workspace};

const WAY_OUT: &str = "say it in the engine's own words (graph, node, run, address), or move the code up";

/// Looks for banned words in every Rust file of the scope.
pub fn check(tree: &Workspace, policy: &Policy) -> Vec<Violation> {
    let plurals = policy.words.banned.iter().map(|word| format!("{word}s"));
    let banned: BTreeSet<String> = policy.words.banned.iter().cloned().chain(plurals).collect();
    let mut found = Vec::new();
    for (path, text) in tree.texts("rs") {
        let Some(scope) = policy.words.scope.iter().find(|scope| path.starts_with(*scope)) else { continue };
        for word in banned_words(&path[scope.len()..], &banned) {
            found.push(Violation::new(path, format!("the file's name says `{word}`"), WAY_OUT));
        }
        for (number, line) in text.lines().enumerate() {
            for word in banned_words(line, &banned) {
                let place = format!("{path}:{}", number + 1);
                found.push(Violation::new(place, format!("says `{word}`"), WAY_OUT));
            }
        }
    }
    found
}

fn banned_words<'a>(line: &str, banned: &'a BTreeSet<String>) -> Vec<&'a str> {
    let identifiers = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    identifiers.flat_map(runs_of_parts).filter_map(|run| banned.get(&run)).map(String::as_str).collect()
}

/// `DataSetId` gives data, dataset, datasetid, set, setid, id: a banned word may be spelt over several parts.
fn runs_of_parts(identifier: &str) -> Vec<String> {
    let parts = parts(identifier);
    let starts = 0..parts.len();
    starts
        .flat_map(|from| (from + 1..=parts.len()).map(move |to| (from, to)))
        .map(|(from, to)| parts[from..to].concat())
        .collect()
}

/// The lower-case words of a snake_case or CamelCase identifier; digits separate.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for (at, c) in identifier.char_indices() {
        let before_lower = identifier[at..].chars().nth(1).is_some_and(char::is_lowercase);
        let starts_word = c.is_uppercase() && (after_lower || before_lower);
        if starts_word || !c.is_alphabetic() {
            parts.push(String::new());
        }
        if c.is_alphabetic() {
            parts.last_mut().expect("starts with one").extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::violation::assert_found;
    use crate::{Policy, Workspace};

    fn check(path: &str, text: &str, expected: &Expect) {
        let found = super::check(&Workspace::of([(path, text)]), &Policy::of_this_repository());
        assert_found(&found, expected);
    }

    fn check_engine(text: &str, expected: &Expect) {
        check("crates/engine/src/run.rs", text, expected);
    }

    #[test]
    fn other_words_pass() {
        check_engine("// We explain the plain airplane, promptly.\nfn replant() {}", &expect![]);
        check("crates/plan/src/lib.rs", "struct Plan;", &expect![]);
        check("crates/engine/tests/tests.rs", "struct Plan;", &expect![]);
    }

    #[test]
    fn comments_and_plurals_are_seen() {
        check_engine(
            "\n/// Runs plans (or a RECIPE).",
            &expect![[r#"
                crates/engine/src/run.rs:2: says `plans`
                crates/engine/src/run.rs:2: says `recipe`"#]],
        );
    }

    #[test]
    fn parts_of_identifiers_are_seen() {
        check_engine(
            "fn load_plan2(x: DataSetId) {}",
            &expect![[r#"
                crates/engine/src/run.rs:1: says `plan`
                crates/engine/src/run.rs:1: says `dataset`"#]],
        );
        check_engine(
            "struct LLMClient; // LLMs",
            &expect![[r#"
                crates/engine/src/run.rs:1: says `llm`
                crates/engine/src/run.rs:1: says `llms`"#]],
        );
        check_engine(
            "use gRPC; // DataDesigner's data_sets",
            &expect![[r#"
                crates/engine/src/run.rs:1: says `grpc`
                crates/engine/src/run.rs:1: says `datadesigner`
                crates/engine/src/run.rs:1: says `datasets`"#]],
        );
    }

    #[test]
    fn names_of_files_are_seen() {
        check(
            "crates/content/src/recipe/mod.rs",
            "",
            &expect!["crates/content/src/recipe/mod.rs: the file's name says `recipe`"],
        );
    }
}
