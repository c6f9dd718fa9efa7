//! The files of a plan: which may be read, and where in them something is.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use anabranch_text::{Problem, size};
use sha2::{Digest as _, Sha256};

use crate::job::{At, Files, ImportResolution};

/// The longest file.
const LONGEST: u64 = 1 << 20;

/// The longest path of an import.
const LONGEST_PATH: usize = 4096;

/// The extension of plan files.
pub(crate) const ENDING: &str = ".plan.ts";

/// The files of one plan: the plan's own, and those of its folder that it imports.
pub(crate) struct Sources {
    /// The folder that nothing is read outside of, without links.
    root: PathBuf,
    /// By number.
    files: Vec<Source>,
    /// The metadata of all requested files, read just before the files. Their number is limited by the number of
    /// requests.
    looked_at: Vec<SourceFile>,
}

/// A file of a plan, or one that would be if it could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path.
    pub path: PathBuf,
    /// Its metadata just before it was read.
    pub look: Look,
}

/// The metadata of a file: the time of its last change, and its length; `None` if there is no such file.
pub type Look = Option<(SystemTime, u64)>;

/// Reads the metadata of a file.
pub fn look(file: &Path) -> Look {
    let seen = std::fs::metadata(file).ok()?;
    Some((seen.modified().ok()?, seen.len()))
}

struct Source {
    /// The path for messages.
    name: PathBuf,
    /// The path without links.
    real: PathBuf,
    text: String,
}

impl Sources {
    /// The plan's own file, and the folder that all others must be in.
    pub(crate) fn open(file: &Path, root: &Path) -> Result<Sources, Problem> {
        let looked_at = vec![SourceFile { path: file.to_owned(), look: look(file) }];
        let wrong = |what: String| Problem::new(file.display().to_string(), what);
        let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
        let real = file.canonicalize().map_err(unreadable)?;
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        let root = root.canonicalize().map_err(unreadable)?;
        let text = read(&real).map_err(wrong)?;
        Ok(Sources { root, files: vec![Source { name: file.to_owned(), real, text }], looked_at })
    }

    /// The text of the plan's own file.
    pub(crate) fn text(&self) -> &str {
        &self.files[0].text
    }

    /// All files that were read so far, and the missing ones.
    pub(crate) fn into_looked_at(self) -> Vec<SourceFile> {
        self.looked_at
    }

    /// The plan's own file, as people see it.
    pub(crate) fn name(&self) -> String {
        self.files[0].name.display().to_string()
    }

    /// A digest of the content of all files, regardless of the order of reading and the location of their folder.
    pub(crate) fn digest(&self) -> String {
        let path = |file: &Source| {
            let path = file.real.strip_prefix(&self.root).unwrap_or(&file.real);
            path.to_string_lossy().replace('\\', "/")
        };
        let mut files: Vec<(String, &str)> =
            self.files.iter().map(|file| (path(file), file.text.as_str())).collect();
        files.sort_unstable();
        let mut digest = Sha256::new();
        for part in files.iter().flat_map(|(path, text)| [path.as_str(), text]) {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A problem at a location, with the line if the location is valid.
    pub(crate) fn problem(&self, at: Option<At>, what: impl Into<String>, help: Option<String>) -> Problem {
        let found = at.and_then(|at| Some((self.files.get(at.file as usize)?, at)));
        let problem = match found {
            None => Problem::new(self.name(), what),
            Some((file, at)) => {
                let (name, bytes) = (file.name.display().to_string(), at.start as usize..at.end as usize);
                Problem::in_source(&name, &file.text, bytes, what)
            }
        };
        Problem { help, ..problem }
    }

    /// The file that a path means, without links, or why it cannot be imported.
    fn resolve(&self, path: &Path, specifier: &str) -> Result<PathBuf, ImportResolution> {
        let refused =
            |what: String, help: &str| ImportResolution::Refused { what, help: Some(help.to_owned()) };
        let Some(real) = path.canonicalize().ok().filter(|real| real.is_file()) else {
            let help = "a path is relative to the file that imports it; `.ts` may be left out";
            return Err(refused(format!("there is no file `{specifier}`"), help));
        };
        if !real.starts_with(&self.root) {
            let what = format!("`{specifier}` is outside of the plans' folder");
            return Err(refused(what, "move what plans share into the folder"));
        }
        if path.to_string_lossy().ends_with(ENDING) {
            let what = format!("`{specifier}` is a plan, and plans do not import plans");
            return Err(refused(what, "move what they share into a file NAME.fragment.ts"));
        }
        Ok(real)
    }

    /// Reads a file, unless it was already read.
    fn add(
        &mut self,
        name: &Path,
        path: &Path,
        specifier: &str,
    ) -> Result<ImportResolution, ImportResolution> {
        let real = self.resolve(path, specifier)?;
        let shown = name.display().to_string();
        if let Some(number) = self.files.iter().position(|file| file.real == real) {
            return Ok(ImportResolution::File { number: number as u32, name: shown, text: None });
        }
        let unreadable =
            |what| ImportResolution::Refused { what: format!("`{specifier}` {what}"), help: None };
        let text = read(&real).map_err(unreadable)?;
        self.files.push(Source { name: name.to_owned(), real, text: text.clone() });
        Ok(ImportResolution::File { number: self.files.len() as u32 - 1, name: shown, text: Some(text) })
    }
}

impl Files for Sources {
    fn import(&mut self, from: u32, specifier: &str) -> ImportResolution {
        let refused =
            |what: String, help: &str| ImportResolution::Refused { what, help: Some(help.to_owned()) };
        let Some(importer) = self.files.get(from as usize) else {
            return ImportResolution::Refused { what: format!("no file imports `{specifier}`"), help: None };
        };
        if specifier.len() > LONGEST_PATH {
            return refused("this is longer than a path can be".to_owned(), "plans import from \"./...\"");
        }
        if !specifier.starts_with("./") && !specifier.starts_with("../") {
            let what = format!("there is no package `{specifier}`");
            let help = "plans import from \"anabranch\", and from files of their folder: \"./...\"";
            return refused(what, help);
        }
        let file = file_of(specifier);
        let name = plain(&importer.name.parent().unwrap_or(Path::new("")).join(&file));
        let path = importer.real.parent().unwrap_or(Path::new("/")).join(&file);
        let look = look(&path);
        let imported = self.add(&name, &path, specifier).unwrap_or_else(|refused| refused);
        // For a known file, its metadata at the time of reading counts.
        if !matches!(imported, ImportResolution::File { text: None, .. }) {
            self.looked_at.push(SourceFile { path: name, look });
        }
        imported
    }
}

/// The file that a specifier means, as editors have it.
fn file_of(specifier: &str) -> String {
    match specifier.strip_suffix(".js") {
        _ if specifier.ends_with(".ts") => specifier.to_owned(),
        Some(stem) => format!("{stem}.ts"),
        None => format!("{specifier}.ts"),
    }
}

/// The text of a file, or an error message.
fn read(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    if !file.is_file() {
        return Err("is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(file).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("is longer than {}", size::format(LONGEST)));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("is not a text in UTF-8: byte {} is none of one", error.utf8_error().valid_up_to())
    })
}

/// A path without `.` and, where it can be seen, without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
