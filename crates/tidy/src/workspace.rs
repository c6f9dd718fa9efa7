//! The tree the rules look at: paths, the text of Rust, Markdown and TOML files, and the member crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use toml::{Table, Value};

/// The files of a repository, by path from its root.
#[derive(Debug)]
pub struct Workspace {
    files: BTreeMap<String, String>,
    folders: BTreeSet<String>,
}

/// A member crate; its name is its folder's.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) folder: String,
    pub(crate) manifest: Table,
}

impl Workspace {
    /// Reads what git tracks or would track under `root`; without git, everything but `target` and `.git`.
    ///
    /// # Errors
    /// When a folder or file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let paths = match git_paths(root) {
            Some(paths) => paths,
            None => walk(root)?,
        };
        let mut files = Vec::new();
        for path in paths {
            let text = if is_text(&path) { read_text(root, &path)? } else { String::new() };
            files.push((path, text));
        }
        Ok(Self::of(files))
    }

    pub(crate) fn of(files: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let files: BTreeMap<String, String> =
            files.into_iter().map(|(path, text)| (path.into(), text.into())).collect();
        let folders = files.keys().flat_map(|path| folders_of(path)).collect();
        Self { files, folders }
    }

    /// Paths and texts of the files whose name ends in `.extension`, without those that a program wrote.
    pub(crate) fn texts<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let ours = move |path: &str| Path::new(path).extension().is_some_and(|found| found == extension);
        self.files
            .iter()
            .filter(move |(path, text)| ours(path) && !is_generated(path, text))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    pub(crate) fn paths_in(&self, folder: &str) -> impl Iterator<Item = &str> {
        let start = format!("{folder}/");
        self.files.keys().filter(move |path| path.starts_with(&start)).map(String::as_str)
    }

    /// Whether `path` is a file or a folder; a slash at its end is fine.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty() || self.files.contains_key(path) || self.folders.contains(path)
    }

    /// The root manifest; empty when there is none.
    pub(crate) fn root_manifest(&self) -> Table {
        self.text("Cargo.toml").map(parse_manifest).unwrap_or_default()
    }

    pub(crate) fn crates(&self) -> Vec<Crate> {
        let root = self.root_manifest();
        let members = root.get("workspace").and_then(|workspace| workspace.get("members"));
        let members: Vec<&str> =
            members.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        self.texts("toml")
            .filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text)))
            .filter(|(folder, _)| members.iter().any(|member| is_member(member, folder)))
            .map(|(folder, text)| Crate {
                name: folder.rsplit('/').next().unwrap_or(folder).to_owned(),
                folder: folder.to_owned(),
                manifest: parse_manifest(text),
            })
            .collect()
    }
}

fn parse_manifest(text: &str) -> Table {
    text.parse().expect("cargo refuses a broken manifest before any rule runs")
}

/// Only the two forms the root manifest uses: `folder` and `folder/*`.
fn is_member(member: &str, folder: &str) -> bool {
    match member.strip_suffix("/*") {
        Some(parent) => folder.rsplit_once('/').is_some_and(|(found, _)| found == parent),
        None => member == folder,
    }
}

fn folders_of(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect()
}

/// In a folder of its own, and says so.
fn is_generated(path: &str, text: &str) -> bool {
    path.contains("/src/generated/") && text.starts_with("// This file is @generated")
}

fn is_text(path: &str) -> bool {
    [".rs", ".md", ".toml"].iter().any(|end| path.ends_with(end))
}

fn read_text(root: &Path, path: &str) -> io::Result<String> {
    fs::read_to_string(root.join(path)).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}

/// `None` when git is missing or does not know `root`.
fn git_paths(root: &Path) -> Option<Vec<String>> {
    let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(listing).current_dir(root).output().ok()?;
    let paths = String::from_utf8(output.stdout).ok()?;
    // A file deleted but not yet committed is still listed.
    let paths: Vec<String> =
        paths.split_terminator('\0').filter(|path| root.join(path).exists()).map(str::to_owned).collect();
    (output.status.success() && paths.iter().any(|path| path == "Cargo.toml")).then_some(paths)
}

fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = format!("{folder}{}", entry.file_name().to_string_lossy());
            if !entry.file_type()?.is_dir() {
                found.push(path);
            } else if path != "target" && path != ".git" {
                folders.push(format!("{path}/"));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Workspace, git_paths, walk};
    use std::path::Path;

    #[test]
    fn members_are_named_or_matched() {
        let root = "[workspace]\nmembers = ['crates/*', 'bench']";
        let places =
            ["crates/a/Cargo.toml", "bench/Cargo.toml", "crates/a/tests/b/Cargo.toml", "docs/Cargo.toml"];
        let tree = Workspace::of(places.map(|path| (path, "")).into_iter().chain([("Cargo.toml", root)]));
        let names: Vec<String> = tree.crates().into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["bench", "a"]);
    }

    #[test]
    fn files_and_their_folders_exist() {
        let tree = Workspace::of([("crates/a/src/lib.rs", "")]);
        assert!(["crates/a/src/lib.rs", "crates/a/src", "crates/", ""].iter().all(|path| tree.has(path)));
        assert!(!tree.has("crates/a/src/lib"));
    }

    #[test]
    fn generated_files_are_left_out() {
        let mark = "// This file is @generated by prost-build.\n";
        let tree = Workspace::of([
            ("crates/a/src/generated/wire.rs", mark),
            ("crates/a/src/generated/mine.rs", "fn a() {}"),
            ("crates/a/src/lib.rs", mark),
        ]);
        let paths: Vec<&str> = tree.texts("rs").map(|(path, _)| path).collect();
        assert_eq!(paths, ["crates/a/src/generated/mine.rs", "crates/a/src/lib.rs"]);
    }

    #[test]
    fn without_git_the_folder_is_walked() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(git_paths(here).is_none_or(|paths| paths.contains(&"src/workspace.rs".to_owned())));
        assert!(walk(here).unwrap().contains(&"src/workspace.rs".to_owned()));
    }
}
