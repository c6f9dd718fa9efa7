//! Rule: no Rust file carries a mark of unfinished work or a test that is switched off.

use crate::{Policy, Violation, Workspace};

/// Looks for the banned marks in every Rust file.
pub fn check(tree: &Workspace, policy: &Policy) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts("rs") {
        for (number, line) in text.lines().enumerate() {
            for mark in policy.marks.banned.iter().filter(|mark| has_mark(line, mark)) {
                let place = format!("{path}:{}", number + 1);
                found.push(Violation::new(place, format!("has `{mark}`"), "finish it, or take it out"));
            }
        }
    }
    found
}

/// Whole words only: a letter, digit or underscore at either end makes it another word.
fn has_mark(line: &str, mark: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts_word = mark.starts_with(is_word);
    let ends_word = mark.ends_with(is_word);
    line.match_indices(mark).any(|(at, _)| {
        let joined_before = starts_word && line[..at].ends_with(is_word);
        let joined_after = ends_word && line[at + mark.len()..].starts_with(is_word);
        !joined_before && !joined_after
    })
}

#[cfg(test)]
mod tests {
    use super::has_mark;
    use crate::{Policy, Violation, Workspace};

    fn check(line: &str) -> Vec<Violation> {
        let text = format!("//! Fine.\n{line}\n");
        super::check(&Workspace::of([("crates/a/src/lib.rs", text)]), &Policy::of_this_repository())
    }

    #[test]
    fn every_mark_is_found() {
        for mark in Policy::of_this_repository().marks.banned {
            let found = check(&format!("    {mark}(or so)"));
            assert_eq!(found.len(), 1, "{mark}");
            assert!(found[0].to_string().starts_with(&format!("crates/a/src/lib.rs:2: has `{mark}`")));
        }
    }

    #[test]
    fn the_policy_names_every_kind() {
        let line = ["#[ign", "ore] to", "do!() unimple", "mented!() FIX", "ME X", "XX"].concat();
        assert_eq!(check(&line).len(), 5);
    }

    #[test]
    fn longer_words_pass() {
        assert!(!has_mark("FIXED", "FIXE"));
        assert!(!has_mark("method!(x)", "od!"));
        assert!(has_mark("a (FIXE) b", "FIXE"));
    }
}
