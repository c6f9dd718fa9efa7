//! Rule: a crate uses only the crates of this workspace that the policy grants it.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::policy::Edges;
use crate::workspace::Crate;
use crate::{Policy, Violation, Workspace};

/// Compares every edge between member crates with the policy.
pub fn check(tree: &Workspace, policy: &Policy) -> Vec<Violation> {
    let crates = tree.crates();
    let root = tree.root_manifest();
    let packages: BTreeMap<&str, &str> =
        crates.iter().filter_map(|member| Some((package_name(member)?, member.name.as_str()))).collect();
    let mut found = Vec::new();
    for member in &crates {
        let place = format!("{}/Cargo.toml", member.folder);
        let Some(edges) = policy.edges.get(&member.name) else {
            let what = format!("crate `{}` is not in the policy", member.name);
            found.push(Violation::new(place, what, "add it to [edges] in crates/tidy/policy.toml"));
            continue;
        };
        for (kind, package) in dependencies(member, &root) {
            let Some(&used) = packages.get(package.as_str()) else { continue };
            if !granted(edges, kind, used) {
                let what = format!("`{}` may not use `{used}` in [{kind}]", member.name);
                found.push(Violation::new(&place, what, "move what both need down a crate"));
            }
        }
    }
    found
}

fn granted(edges: &Edges, kind: &str, used: &str) -> bool {
    let in_tests = edges.tests.iter().filter(|_| kind == "dev-dependencies");
    edges.uses.iter().chain(in_tests).any(|name| name == used)
}

fn package_name(member: &Crate) -> Option<&str> {
    member.manifest.get("package")?.get("name")?.as_str()
}

/// Each dependency's kind and true package name, those of `[target.*]` too.
fn dependencies(member: &Crate, root: &Table) -> Vec<(&'static str, String)> {
    let targets = member.manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut found = Vec::new();
    for table in [&member.manifest].into_iter().chain(targets) {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let entries = table.get(kind).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(key, entry)| (kind, true_name(key, entry, root))));
        }
    }
    found
}

/// A dependency may be renamed, in place or in `[workspace.dependencies]`.
fn true_name(key: &str, entry: &Value, root: &Table) -> String {
    let inherited = || root.get("workspace")?.get("dependencies")?.get(key);
    let entry = if entry.get("workspace").is_some() { inherited() } else { Some(entry) };
    let renamed = entry.and_then(|entry| entry.get("package")).and_then(Value::as_str);
    renamed.unwrap_or(key).to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::violation::assert_found;
    use crate::{Policy, Workspace};

    const ROOT: &str = "[workspace]\nmembers = ['crates/*']\n\
        [workspace.dependencies]\nranking = { package = 'anabranch-plan', path = 'crates/plan' }\n";

    /// The named crate has the given dependency tables; `engine`, `plan` and `testkit` stand beside it.
    fn check(name: &str, tables: &str, expected: &Expect) {
        let manifest = |name: &str| format!("[package]\nname = 'anabranch-{name}'\n");
        let mut files = vec![("Cargo.toml".to_owned(), ROOT.to_owned())];
        files.extend(
            ["engine", "plan", "testkit"].map(|it| (format!("crates/{it}/Cargo.toml"), manifest(it))),
        );
        files.push((format!("crates/{name}/Cargo.toml"), manifest(name) + tables));
        assert_found(&super::check(&Workspace::of(files), &Policy::of_this_repository()), expected);
    }

    #[test]
    fn granted_edges_pass() {
        check("recipe", "[dependencies]\ntokio = '1'\nanabranch-engine.workspace = true", &expect![]);
        check("recipe", "[dev-dependencies]\nanabranch-testkit.workspace = true", &expect![]);
    }

    #[test]
    fn a_workload_may_not_use_another() {
        check(
            "recipe",
            "[dependencies]\nanabranch-plan.path = '../plan'",
            &expect!["crates/recipe/Cargo.toml: `recipe` may not use `plan` in [dependencies]"],
        );
    }

    #[test]
    fn neither_renaming_nor_a_target_hides_an_edge() {
        check(
            "recipe",
            "[target.'cfg(unix)'.build-dependencies]\nranking.workspace = true",
            &expect!["crates/recipe/Cargo.toml: `recipe` may not use `plan` in [build-dependencies]"],
        );
        check(
            "recipe",
            "[dependencies]\nother = { package = 'anabranch-plan', path = '../plan' }",
            &expect!["crates/recipe/Cargo.toml: `recipe` may not use `plan` in [dependencies]"],
        );
    }

    #[test]
    fn only_tests_use_the_testkit() {
        check(
            "recipe",
            "[dependencies]\nanabranch-testkit.workspace = true",
            &expect!["crates/recipe/Cargo.toml: `recipe` may not use `testkit` in [dependencies]"],
        );
        check(
            "tidy",
            "[dev-dependencies]\nanabranch-testkit.workspace = true",
            &expect!["crates/tidy/Cargo.toml: `tidy` may not use `testkit` in [dev-dependencies]"],
        );
    }

    #[test]
    fn a_crate_must_be_in_the_policy() {
        check("stray", "", &expect!["crates/stray/Cargo.toml: crate `stray` is not in the policy"]);
    }
}
