//! Rule: what a document points at exists, and there is far less prose than code.

use pulldown_cmark::{Event, Parser, Tag};

use crate::{Policy, Violation, Workspace};

/// Checks every Markdown file's links and the paths it names in backticks, then the amount of Markdown.
pub fn check(tree: &Workspace, policy: &Policy) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, text) in tree.texts("md") {
        for (event, range) in Parser::new(text).into_offset_iter() {
            let line = 1 + text[..range.start].matches('\n').count();
            let missing = missing(file, &event, tree, policy);
            found.extend(missing.iter().map(|path| complain(file, line, path)));
        }
    }
    found.extend(too_much(tree, policy));
    found
}

fn complain(file: &str, line: usize, path: &str) -> Violation {
    let (what, way_out) = match climbs(path) {
        true => ("climbs with `..`", "name the path from the repository's root"),
        false => ("does not exist", "correct the path, or document it once it is there"),
    };
    Violation::new(format!("{file}:{line}"), format!("`{path}` {what}"), way_out)
}

/// The paths in one piece of Markdown that are not there.
fn missing(file: &str, event: &Event<'_>, tree: &Workspace, policy: &Policy) -> Vec<String> {
    match event {
        Event::Code(code) => named_paths(code, policy)
            .filter(|path| climbs(path) || !tree.has(path))
            .map(str::to_owned)
            .collect(),
        Event::Start(Tag::Link { dest_url: target, .. } | Tag::Image { dest_url: target, .. }) => {
            let broken = |path: &&str| climbs(path) || !tree.has(&beside(file, path));
            link_path(target).filter(broken).map(str::to_owned).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The words of `code` that begin like a path of this repository and are no pattern; without `:line`.
fn named_paths<'a>(code: &'a str, policy: &Policy) -> impl Iterator<Item = &'a str> {
    code.split_whitespace()
        .filter(|word| !word.contains(['*', '<', '>', '{', '}', '[', ']', '$', '…']))
        .filter(|word| climbs(word) || policy.docs.roots.iter().any(|root| word.starts_with(root)))
        .map(|word| word.split(':').next().unwrap_or(word))
        .map(|path| path.strip_prefix("./").unwrap_or(path))
}

/// The path part of a link that stays in the repository.
fn link_path(target: &str) -> Option<&str> {
    let path = target.split('#').next().filter(|path| !path.is_empty())?;
    let leaves = path.contains("://") || path.contains('@');
    (!leaves).then_some(path)
}

fn beside(file: &str, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    match file.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{path}"),
        None => path.to_owned(),
    }
}

fn climbs(path: &str) -> bool {
    path.contains('/') && path.split('/').any(|segment| segment == "..")
}

fn too_much(tree: &Workspace, policy: &Policy) -> Option<Violation> {
    let lines = |extension| tree.texts(extension).map(|(_, text)| text.lines().count()).sum::<usize>();
    let (rust, markdown) = (lines("rs"), lines("md"));
    let allowed = rust as f64 * policy.docs.markdown_per_rust;
    let counts = rust > policy.docs.counted_from_rust_lines;
    (counts && markdown as f64 > allowed).then(|| {
        let what = format!("{markdown} lines of Markdown for {rust} lines of Rust, more than {allowed:.0}");
        Violation::new("*.md", what, "say it shorter, or in the code's own docs")
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::violation::assert_found;
    use crate::{Policy, Workspace};

    fn check(file: &str, text: &str, expected: &Expect) {
        let tree = [(file, text), ("crates/a/src/lib.rs", ""), ("crates/a/notes.md", ""), ("dev", "")];
        assert_found(&super::check(&Workspace::of(tree), &Policy::of_this_repository()), expected);
    }

    #[test]
    fn what_exists_passes() {
        check(
            "README.md",
            "`crates/a/src/lib.rs:12`, `crates/a/`, `./dev test`, `crates/*/x`, `bench/<date>`",
            &expect![],
        );
        check(
            "README.md",
            "[a](crates/a/notes.md#top) [b](#here) [c](https://example.org/d) [e](./dev) <a@b.org>",
            &expect![],
        );
        check("crates/a/README.md", "[a](notes.md) and `a / b`, `0..n`, `src/gone.rs`", &expect![]);
        check("README.md", "```\ncrates/gone.rs `crates/gone.rs`\n```", &expect![]);
    }

    #[test]
    fn paths_in_backticks_must_exist() {
        check(
            "README.md",
            "\nSee `crates/gone` and run `./gone crates/a/gone.rs`.",
            &expect![[r#"
                README.md:2: `crates/gone` does not exist
                README.md:2: `gone` does not exist
                README.md:2: `crates/a/gone.rs` does not exist"#]],
        );
    }

    #[test]
    fn links_must_exist() {
        check(
            "crates/a/README.md",
            "[a](crates/a/notes.md)\n\n![b](b.png) [c][d]\n\n[d]: gone.md",
            &expect![[r#"
                crates/a/README.md:1: `crates/a/notes.md` does not exist
                crates/a/README.md:3: `b.png` does not exist
                crates/a/README.md:3: `gone.md` does not exist"#]],
        );
    }

    #[test]
    fn nothing_climbs() {
        check(
            "crates/a/README.md",
            "[a](../a/notes.md) `../../dev`",
            &expect![[r#"
                crates/a/README.md:1: `../a/notes.md` climbs with `..`
                crates/a/README.md:1: `../../dev` climbs with `..`"#]],
        );
    }

    #[test]
    fn prose_is_bounded_once_there_is_code() {
        let check = |rust: usize, markdown: usize, expected: &Expect| {
            let tree = [("a.rs", "\n".repeat(rust)), ("a.md", "\n".repeat(markdown))];
            assert_found(&super::check(&Workspace::of(tree), &Policy::of_this_repository()), expected);
        };
        check(5000, 5000, &expect![]);
        check(6000, 900, &expect![]);
        check(6000, 901, &expect!["*.md: 901 lines of Markdown for 6000 lines of Rust, more than 900"]);
    }
}
