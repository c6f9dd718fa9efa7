//! Rule: every crate has code, a story, the workspace's lints and settings, and one integration-test binary.

use std::collections::BTreeSet;

use toml::Value;

use crate::workspace::Crate;
use crate::{Policy, Violation, Workspace};

/// Looks at each member crate's manifest and files.
pub fn check(tree: &Workspace, policy: &Policy) -> Vec<Violation> {
    let check = |member: &Crate| {
        let mut found = manifest(member, policy);
        found.extend(story(member, tree));
        found.extend(emptiness(member, tree, policy));
        found.extend(test_binaries(member, tree, policy));
        found.extend(unrun_tests(member, tree));
        found
    };
    tree.crates().iter().flat_map(check).collect()
}

fn manifest(member: &Crate, policy: &Policy) -> Vec<Violation> {
    let place = format!("{}/Cargo.toml", member.folder);
    let package = member.manifest.get("package");
    let mut found = Vec::new();
    for field in &policy.crates.inherited {
        if !inherits(package.and_then(|package| package.get(field))) {
            let what = format!("has its own `{field}`, or none");
            found.push(Violation::new(&place, what, format!("write `{field}.workspace = true`")));
        }
    }
    if !inherits(member.manifest.get("lints")) {
        found.push(Violation::new(place, "leaves the workspace's lints", "write `lints.workspace = true`"));
    }
    found
}

fn inherits(entry: Option<&Value>) -> bool {
    entry.and_then(|entry| entry.get("workspace")).and_then(Value::as_bool) == Some(true)
}

/// `lib.rs` or `main.rs` opens with what the crate is for.
fn story(member: &Crate, tree: &Workspace) -> Vec<Violation> {
    let roots = ["src/lib.rs", "src/main.rs"].map(|root| format!("{}/{root}", member.folder));
    let roots: Vec<(&String, &str)> =
        roots.iter().filter_map(|root| Some((root, tree.text(root)?))).collect();
    if roots.is_empty() {
        let what = "has no src/lib.rs or src/main.rs";
        return vec![Violation::new(&member.folder, what, "start with the `//!` story there")];
    }
    let untold = roots.into_iter().filter(|(_, text)| !text.starts_with("//!"));
    untold
        .map(|(root, _)| Violation::new(root, "does not start with `//!`", "say first what the crate is for"))
        .collect()
}

fn emptiness(member: &Crate, tree: &Workspace, policy: &Policy) -> Option<Violation> {
    let source = format!("{}/src/", member.folder);
    let is_code =
        |path: &str| path.starts_with(&source) && !path.ends_with("/tests.rs") && !path.contains("/tests/");
    let lines: usize =
        tree.texts("rs").filter(|(path, _)| is_code(path)).map(|(_, text)| code_lines(text)).sum();
    (lines < policy.crates.code_lines).then(|| {
        let what =
            format!("is an empty crate: {lines} lines of code, fewer than {}", policy.crates.code_lines);
        Violation::new(&member.folder, what, "add the crate together with its first code")
    })
}

/// Lines that are not blank, comment, attribute or in a test module.
fn code_lines(text: &str) -> usize {
    // What is not Rust is reported by the rule on sizes.
    let Ok(file) = syn::parse_file(text) else { return 0 };
    let tests: Vec<_> = file.items.iter().filter_map(test_module_lines).collect();
    let is_code = |line: &str| !line.is_empty() && !line.starts_with("//") && !line.starts_with('#');
    let numbered = (1..).zip(text.lines());
    numbered
        .filter(|(number, line)| is_code(line.trim()) && !tests.iter().any(|test| test.contains(number)))
        .count()
}

fn test_module_lines(item: &syn::Item) -> Option<std::ops::RangeInclusive<usize>> {
    let syn::Item::Mod(module) = item else { return None };
    let is_test = |attribute: &syn::Attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    };
    let (brace, _) = module.content.as_ref().filter(|_| module.attrs.iter().any(is_test))?;
    Some(module.mod_token.span.start().line..=brace.span.close().end().line)
}

/// Each test binary links the whole crate once more, so there is one: `tests/tests/main.rs`, with modules.
fn test_binaries(member: &Crate, tree: &Workspace, policy: &Policy) -> Option<Violation> {
    let folder = format!("{}/tests", member.folder);
    let files: Vec<&str> = tree.paths_in(&folder).map(|path| &path[folder.len() + 1..]).collect();
    let declared = member.manifest.get("test").and_then(Value::as_array).into_iter().flatten();
    let declared = declared.filter_map(|test| test.get("name").and_then(Value::as_str));
    let binaries: BTreeSet<&str> = files.iter().filter_map(|file| binary(file)).chain(declared).collect();
    if files.is_empty() && binaries.is_empty() {
        return None;
    }
    let recorded = policy.crates.test_binaries.get(&member.name);
    let expected = recorded
        .map_or_else(|| BTreeSet::from(["tests"]), |names| names.iter().map(String::as_str).collect());
    (binaries != expected).then(|| {
        let what = format!("has the integration-test binaries {binaries:?}, not {expected:?}");
        let way_out = "make them modules of tests/tests/main.rs, or list them in crates/tidy/policy.toml";
        Violation::new(folder, what, way_out)
    })
}

/// `test = false` and `doctest = false` of a library save a build, where there is nothing to run.
fn unrun_tests(member: &Crate, tree: &Workspace) -> Vec<Violation> {
    let is_test = |line: &str| line == "#[cfg(test)]" || line == "#[test]";
    let is_example = |line: &str| ["/// ```", "//! ```"].iter().any(|start| line.starts_with(start));
    let library = member.manifest.get("lib");
    let source = format!("{}/src/", member.folder);
    let complain = |setting: &str, is_one: &dyn Fn(&str) -> bool| {
        if library?.get(setting)?.as_bool()? {
            return None;
        }
        let mut files = tree.texts("rs").filter(|(path, _)| path.starts_with(&source));
        let (path, _) = files.find(|(_, text)| text.lines().any(|line| is_one(line.trim())))?;
        let what = format!("says `{setting} = false`, but {path} has such a test");
        let place = format!("{}/Cargo.toml", member.folder);
        Some(Violation::new(place, what, format!("delete `{setting} = false`")))
    };
    [complain("test", &is_test), complain("doctest", &is_example)].into_iter().flatten().collect()
}

/// The binary that cargo makes of a file in `tests/`: `name.rs` or `name/main.rs`.
fn binary(file: &str) -> Option<&str> {
    let name = file.strip_suffix("/main.rs").or_else(|| file.strip_suffix(".rs"))?;
    (!name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::violation::assert_found;
    use crate::{Policy, Workspace};

    const MANIFEST: &str = "[package]\nname = 'a'\nedition.workspace = true\nlicense.workspace = true\n\
        [lints]\nworkspace = true\n";

    fn library(lines: usize) -> String {
        format!("//! Story.\n{}", "fn a() {}\n".repeat(lines))
    }

    /// A good crate `crates/a` with the given files added or replaced.
    fn check(files: &[(&str, &str)], expected: &Expect) {
        let root = "[workspace]\nmembers = ['crates/*']";
        let library = library(20);
        let good = [
            ("Cargo.toml", root),
            ("crates/a/Cargo.toml", MANIFEST),
            ("crates/a/src/lib.rs", library.as_str()),
        ];
        let tree = Workspace::of(good.into_iter().chain(files.iter().copied()));
        assert_found(&super::check(&tree, &Policy::of_this_repository()), expected);
    }

    #[test]
    fn a_good_crate_passes() {
        check(&[], &expect![]);
        check(
            &[
                ("crates/a/tests/tests/main.rs", ""),
                ("crates/a/tests/run.rs.txt", ""),
                ("crates/a/tests/b/c.rs", ""),
            ],
            &expect![],
        );
    }

    #[test]
    fn settings_come_from_the_workspace() {
        check(
            &[("crates/a/Cargo.toml", "[package]\nname = 'a'\nedition = '2024'")],
            &expect![[r#"
                crates/a/Cargo.toml: has its own `edition`, or none
                crates/a/Cargo.toml: has its own `license`, or none
                crates/a/Cargo.toml: leaves the workspace's lints"#]],
        );
    }

    #[test]
    fn the_story_comes_first() {
        check(
            &[("crates/a/src/lib.rs", &library(20).replace("//!", "//"))],
            &expect!["crates/a/src/lib.rs: does not start with `//!`"],
        );
        check(
            &[("crates/a/src/main.rs", "fn main() {}")],
            &expect!["crates/a/src/main.rs: does not start with `//!`"],
        );
    }

    #[test]
    fn an_empty_crate_is_found() {
        check(
            &[("crates/a/src/lib.rs", &library(19))],
            &expect!["crates/a: is an empty crate: 19 lines of code, fewer than 20"],
        );
        let only_tests = format!("//! Story.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "fn a() {}\n".repeat(30));
        check(
            &[("crates/a/src/lib.rs", &only_tests), ("crates/a/src/tests.rs", &library(30))],
            &expect!["crates/a: is an empty crate: 0 lines of code, fewer than 20"],
        );
        check(
            &[("crates/a/src/lib.rs", &format!("//! Story.\n{}", "// fn a() {}\n#![x]\n\n".repeat(30)))],
            &expect!["crates/a: is an empty crate: 0 lines of code, fewer than 20"],
        );
    }

    #[test]
    fn there_is_one_test_binary() {
        check(
            &[("crates/a/tests/tests/main.rs", ""), ("crates/a/tests/more.rs", "")],
            &expect![[
                r#"crates/a/tests: has the integration-test binaries {"more", "tests"}, not {"tests"}"#
            ]],
        );
        check(
            &[("crates/a/tests/run/main.rs", "")],
            &expect![[r#"crates/a/tests: has the integration-test binaries {"run"}, not {"tests"}"#]],
        );
        check(
            &[("crates/a/Cargo.toml", &format!("{MANIFEST}[[test]]\nname = 'far'\npath = 'far.rs'"))],
            &expect![[r#"crates/a/tests: has the integration-test binaries {"far"}, not {"tests"}"#]],
        );
    }

    #[test]
    fn no_test_is_left_out() {
        let manifest = format!("{MANIFEST}[lib]\ntest = false\ndoctest = false");
        let crate_with = |file: &'static str, expected: &Expect| {
            check(&[("crates/a/Cargo.toml", &manifest), ("crates/a/src/b.rs", file)], expected);
        };
        crate_with("/// A `#[test]`.\nfn b() {}", &expect![]);
        crate_with(
            "#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}",
            &expect!["crates/a/Cargo.toml: says `test = false`, but crates/a/src/b.rs has such a test"],
        );
        crate_with(
            "    /// ```no_run\n    /// b();\n    /// ```\nfn b() {}",
            &expect!["crates/a/Cargo.toml: says `doctest = false`, but crates/a/src/b.rs has such a test"],
        );
    }
}
