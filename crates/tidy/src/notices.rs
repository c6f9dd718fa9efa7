//! The licence notices that a shipped program carries: its third-party packages, and the texts in their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::licences::Metadata;

/// How the files' names begin, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// How many folders down such files are: packages with C code keep its licence beside the code.
const DEPTH: usize = 2;

/// One third-party package.
#[derive(Debug)]
pub struct Notice {
    pub(crate) name: String,
    pub(crate) version: String,
    /// As an SPDX expression.
    pub(crate) licence: String,
    pub(crate) texts: Vec<String>,
}

/// The packages that are linked into `program`, a package of the workspace at `root`, built for this machine.
///
/// # Errors
/// What cargo said, or a file that cannot be read.
pub fn linked(root: &Path, program: &str) -> Result<Vec<Notice>, String> {
    let metadata = Metadata::of(root)?;
    let mut found = Vec::new();
    for (name, version) in linked_names(root, program)? {
        let package = metadata.third_party(&name, &version);
        let Some(package) = package else { continue };
        let folder = package.manifest_path.parent().unwrap_or(Path::new(""));
        let texts = texts(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let licence = package.license.clone().unwrap_or_else(|| "as below".to_owned());
        found.push(Notice { name, version, licence, texts });
    }
    Ok(found)
}

/// Names and versions, without macros and build scripts, which leave nothing of themselves in the program.
fn linked_names(root: &Path, program: &str) -> Result<BTreeSet<(String, String)>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--package", program, "--edges", "normal,no-proc-macro"]);
    command.args(["--prefix", "none", "--format", "{p}"]).current_dir(root);
    let output = command.output().map_err(|e| format!("cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(lines.lines().filter_map(name_and_version).collect())
}

/// Of a line like `blake3 v1.8.7 (*)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
}

fn texts(folder: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    find(folder, DEPTH, &mut files)?;
    files.sort();
    files.iter().map(|file| Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())).collect()
}

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_dir = entry.file_type()?.is_dir();
        if is_dir && depth > 0 {
            find(&entry.path(), depth - 1, found)?;
        }
        // A file of code may be called `license.rs`.
        if !is_dir && NAMES.iter().any(|start| name.starts_with(start)) && !name.ends_with(".RS") {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// A list of the packages, then each text once with the packages that carry it.
pub fn document(notices: &[Notice]) -> String {
    let mut out = String::from(
        "This program contains the following packages, and the Rust standard library (MIT OR Apache-2.0).\n\
         The texts that they carry are below; packages without one have the licence named here.\n\n",
    );
    let mut carriers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for notice in notices {
        let package = format!("{} {}", notice.name, notice.version);
        let _ = writeln!(out, "{package}: {}", notice.licence);
        for text in &notice.texts {
            let carriers = carriers.entry(text.trim()).or_default();
            if carriers.last() != Some(&package) {
                carriers.push(package.clone());
            }
        }
    }
    let mut texts: Vec<(&str, Vec<String>)> = carriers.into_iter().collect();
    texts.sort_by(|one, other| one.1.cmp(&other.1));
    for (text, packages) in texts {
        let _ = write!(out, "\n{}\n{}\n\n{text}\n", "=".repeat(80), packages.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{Notice, document, name_and_version};

    #[test]
    fn a_text_stands_once_with_all_who_carry_it() {
        let notice = |name: &str, licence: &str, texts: &[&str]| Notice {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            texts: texts.iter().map(|&text| text.to_owned()).collect(),
        };
        let notices = [
            notice("ape", "MIT", &["Copyright ape\n"]),
            notice("bee", "MIT OR Apache-2.0", &["Apache License", "Copyright bee", "Apache License\n"]),
            notice("cow", "Apache-2.0", &["\nApache License\n"]),
            notice("dog", "MIT", &[]),
        ];
        expect![[r#"
            This program contains the following packages, and the Rust standard library (MIT OR Apache-2.0).
            The texts that they carry are below; packages without one have the licence named here.

            ape 1.0.0: MIT
            bee 1.0.0: MIT OR Apache-2.0
            cow 1.0.0: Apache-2.0
            dog 1.0.0: MIT

            ================================================================================
            ape 1.0.0

            Copyright ape

            ================================================================================
            bee 1.0.0

            Copyright bee

            ================================================================================
            bee 1.0.0, cow 1.0.0

            Apache License
        "#]]
        .assert_eq(&document(&notices));
    }

    #[test]
    fn lines_of_cargo_are_read() {
        let read = |line| name_and_version(line).map(|(name, version)| format!("{name}@{version}"));
        assert_eq!(read("blake3 v1.8.7 (*)").as_deref(), Some("blake3@1.8.7"));
        assert_eq!(read("zstd-sys v2.1.2+zstd.1.5.7").as_deref(), Some("zstd-sys@2.1.2+zstd.1.5.7"));
        assert_eq!(read(""), None);
    }
}
