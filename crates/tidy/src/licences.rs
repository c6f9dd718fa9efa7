//! Rule: every package that the default members are built or tested with has a licence that we allow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::{Policy, Violation};

/// The part of `cargo metadata` that this rule reads.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_default_members: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    name: String,
    version: String,
    pub(crate) license: Option<String>,
    /// `None` for packages by path, which are ours.
    source: Option<String>,
    pub(crate) manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

impl Metadata {
    /// Asks cargo about the workspace at `root`; goes online only when something was never downloaded.
    ///
    /// # Errors
    /// What cargo said.
    pub fn of(root: &Path) -> Result<Self, String> {
        cargo_metadata(root, &["--offline"]).or_else(|_| cargo_metadata(root, &[]))
    }

    /// The package, unless it is ours.
    pub(crate) fn third_party(&self, name: &str, version: &str) -> Option<&Package> {
        let is_it = |package: &&Package| package.name == name && package.version == version;
        self.packages.iter().filter(|package| package.source.is_some()).find(is_it)
    }
}

fn cargo_metadata(root: &Path, more: &[&str]) -> Result<Metadata, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked"]).args(more).current_dir(root);
    let output = command.output().map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))
}

/// Compares each third-party package's licence with the allow-list and the exceptions.
pub fn check(metadata: &Metadata, policy: &Policy) -> Vec<Violation> {
    let reached = reached(metadata);
    let foreign = |package: &&Package| package.source.is_some() && reached.contains(package.id.as_str());
    let packages: Vec<&Package> = metadata.packages.iter().filter(foreign).collect();
    let mut found: Vec<Violation> = packages.iter().filter_map(|package| complain(package, policy)).collect();
    found.extend(stale_exceptions(&packages, policy));
    found
}

/// The default members and all they need, on any platform.
fn reached(metadata: &Metadata) -> BTreeSet<&str> {
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let mut open: Vec<&str> = metadata.workspace_default_members.iter().map(String::as_str).collect();
    let mut reached = BTreeSet::new();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| &node.dependencies).map(String::as_str));
        }
    }
    reached
}

fn complain(package: &Package, policy: &Policy) -> Option<Violation> {
    let exception = policy.licences.exceptions.get(&package.name);
    let what = match (&package.license, exception) {
        (None, Some(_)) => return None,
        (None, None) => "names no licence".to_owned(),
        (Some(licence), _) => {
            let one_more = exception.map(|exception| exception.licence.as_str());
            match satisfied(licence, policy.licences.allowed.iter().map(String::as_str).chain(one_more)) {
                Ok(true) => return None,
                Ok(false) => format!("has the licence `{licence}`, which is not allowed"),
                Err(e) => format!("has a licence that cannot be read: {}", e.reason),
            }
        }
    };
    let place = format!("{} {}", package.name, package.version);
    let way_out = "use another package, or add it to [licences.exceptions] in crates/tidy/policy.toml";
    Some(Violation::new(place, what, way_out))
}

/// Lax, because old packages still write `MIT/Apache-2.0`.
fn satisfied<'a>(licence: &str, allowed: impl Iterator<Item = &'a str>) -> Result<bool, spdx::ParseError> {
    let allowed = allowed.map(Licensee::parse).collect::<Result<Vec<_>, _>>()?;
    let expression = Expression::parse_mode(licence, ParseMode::LAX)?;
    Ok(expression.evaluate(|needed| allowed.iter().any(|licensee| licensee.satisfies(needed))))
}

fn stale_exceptions(packages: &[&Package], policy: &Policy) -> Vec<Violation> {
    let allowed = || policy.licences.allowed.iter().map(String::as_str);
    let needed = |package: &&Package| {
        let fine = |licence: &String| satisfied(licence, allowed()) == Ok(true);
        !package.license.as_ref().is_some_and(fine)
    };
    let needing: BTreeSet<&str> =
        packages.iter().copied().filter(needed).map(|package| package.name.as_str()).collect();
    let complain = |name: &String, what| {
        let place = format!("[licences.exceptions] {name}");
        Violation::new(place, what, "correct or delete it in crates/tidy/policy.toml")
    };
    let mut found = Vec::new();
    for (name, exception) in &policy.licences.exceptions {
        if !needing.contains(name.as_str()) {
            found.push(complain(name, "is not needed"));
        }
        if exception.reason.trim().is_empty() {
            found.push(complain(name, "gives no reason"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use expect_test::{Expect, expect};

    use super::{Metadata, Node, Package, Resolve};
    use crate::Policy;
    use crate::policy::Exception;
    use crate::violation::assert_found;

    /// `us`, the one default member, needs `mid`; `mid` needs `leaf`, which has the given licence.
    fn metadata(licence: Option<&str>) -> Metadata {
        let package = |id: &str, license: Option<&str>, source: Option<&str>| Package {
            id: id.to_owned(),
            name: id.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            manifest_path: PathBuf::new(),
        };
        let node = |id: &str, needs: &[&str]| Node {
            id: id.to_owned(),
            dependencies: needs.iter().map(|&id| id.to_owned()).collect(),
        };
        let far = Some("registry");
        Metadata {
            packages: vec![
                package("us", None, None),
                package("mid", Some("MIT"), far),
                package("leaf", licence, far),
                package("unreached", Some("AGPL-3.0"), far),
            ],
            resolve: Resolve { nodes: vec![node("us", &["mid"]), node("mid", &["leaf"]), node("leaf", &[])] },
            workspace_default_members: vec!["us".to_owned()],
        }
    }

    fn check(licence: Option<&str>, exception: Option<(&str, &str, &str)>, expected: &Expect) {
        let mut policy = Policy::of_this_repository();
        let exceptions = exception.into_iter().map(|(name, licence, reason)| {
            (name.to_owned(), Exception { licence: licence.to_owned(), reason: reason.to_owned() })
        });
        policy.licences.exceptions = exceptions.collect();
        assert_found(&super::check(&metadata(licence), &policy), expected);
    }

    #[test]
    fn allowed_licences_pass() {
        let fine = [
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ];
        for licence in fine {
            check(Some(licence), None, &expect![]);
        }
    }

    #[test]
    fn other_licences_are_found() {
        check(Some("MPL-2.0"), None, &expect!["leaf 1.0.0: has the licence `MPL-2.0`, which is not allowed"]);
        check(
            Some("MIT AND GPL-3.0"),
            None,
            &expect!["leaf 1.0.0: has the licence `MIT AND GPL-3.0`, which is not allowed"],
        );
        check(Some("My own"), None, &expect!["leaf 1.0.0: has a licence that cannot be read: unknown term"]);
        check(None, None, &expect!["leaf 1.0.0: names no licence"]);
    }

    #[test]
    fn an_exception_allows_one_licence_more() {
        check(Some("MPL-2.0"), Some(("leaf", "MPL-2.0", "used unchanged")), &expect![]);
        check(None, Some(("leaf", "MIT", "in its README")), &expect![]);
        check(
            Some("GPL-3.0"),
            Some(("leaf", "MPL-2.0", "used unchanged")),
            &expect!["leaf 1.0.0: has the licence `GPL-3.0`, which is not allowed"],
        );
    }

    #[test]
    fn an_exception_is_needed_and_has_a_reason() {
        check(
            Some("MPL-2.0"),
            Some(("leaf", "MPL-2.0", " ")),
            &expect!["[licences.exceptions] leaf: gives no reason"],
        );
        check(
            Some("MIT"),
            Some(("leaf", "MPL-2.0", "used unchanged")),
            &expect!["[licences.exceptions] leaf: is not needed"],
        );
        check(
            Some("MIT"),
            Some(("gone", "MPL-2.0", "used unchanged")),
            &expect!["[licences.exceptions] gone: is not needed"],
        );
    }
}
