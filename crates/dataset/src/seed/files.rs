//! The files of a seed: patterns and folders.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::error::Error;

/// The most files of a seed.
const MAX_FILES: usize = 5_000_000;

/// The maximum nesting depth of folders.
const MAX_DEPTH: usize = 128;

/// The longest file whose contents become a cell.
const MAX_CONTENT: u64 = 64 << 20;

/// The files that a path with `*` in its last part names, by name.
pub(super) fn matching(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = |problem: &str| Error::Path { path: path.display().to_string(), problem: problem.into() };
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| wrong("names no file"))?;
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if is_pattern(&folder.to_string_lossy()) && !folder.exists() {
        return Err(wrong("has a wildcard in a folder: only the file name may have one"));
    }
    if !is_pattern(name) || path.exists() {
        let problem =
            if path.is_dir() { "is a folder: use the seed type `directory`" } else { "does not exist" };
        return if path.is_file() { Ok(vec![path.to_owned()]) } else { Err(wrong(problem)) };
    }
    let pattern = glob(name)?;
    let mut files = Vec::new();
    for entry in read_folder(folder)? {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| pattern.is_match(name)) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    if files.is_empty() { Err(Error::NoFile { pattern: path.display().to_string() }) } else { Ok(files) }
}

/// The files of a folder whose names match, with their paths below the folder, sorted by these.
pub(super) fn below(folder: &Path, pattern: &str, recursive: bool) -> Result<Vec<(String, PathBuf)>, Error> {
    if !folder.is_dir() {
        let problem = "is not a folder".into();
        return Err(Error::Path { path: folder.display().to_string(), problem });
    }
    let matcher = glob(pattern)?;
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        for entry in read_folder(&folder)? {
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|name| Error::Path {
                path: folder.join(name).display().to_string(),
                problem: "is not UTF-8: rename the file".into(),
            })?;
            let kind = entry.file_type().map_err(|cause| Error::Io { path: path.clone(), cause })?;
            // A link to a folder is not followed: it may lead in a circle.
            if kind.is_dir() {
                if recursive && depth < MAX_DEPTH {
                    folders.push((path, format!("{prefix}{name}/"), depth + 1));
                }
            } else if matcher.is_match(&name) && path.is_file() {
                files.push((format!("{prefix}{name}"), path));
            }
        }
        if files.len() + folders.len() > MAX_FILES {
            return Err(Error::TooLarge { limit: MAX_FILES as u64, unit: "files" });
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::NoFile { pattern: folder.join(pattern).display().to_string() });
    }
    Ok(files)
}

fn read_folder(folder: &Path) -> Result<Vec<fs::DirEntry>, Error> {
    let io = |cause| Error::Io { path: folder.to_owned(), cause };
    let entries = fs::read_dir(folder).map_err(io)?.take(MAX_FILES + 1);
    let entries: Vec<fs::DirEntry> = entries.collect::<Result<_, _>>().map_err(io)?;
    if entries.len() > MAX_FILES {
        return Err(Error::TooLarge { limit: MAX_FILES as u64, unit: "files" });
    }
    Ok(entries)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// A file name pattern: `*`, `?`, `[abc]` and `[!abc]`.
fn glob(pattern: &str) -> Result<Regex, Error> {
    let mut regex = String::from("(?s)^");
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        match next {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match rest.get(1..).and_then(|behind| behind.find(']')) {
                Some(end) => {
                    let (set, negated) = match rest[..end + 1].strip_prefix('!') {
                        Some(set) => (set, "^"),
                        None => (&rest[..end + 1], ""),
                    };
                    let set =
                        set.replace('\\', r"\\").replace('[', r"\[").replace('^', r"\^").replace('&', r"\&");
                    regex.push_str(&format!("[{negated}{}]", set.replace('~', r"\~")));
                    rest = &rest[end + 2..];
                }
                None => regex.push_str(r"\["),
            },
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    Regex::new(&regex).map_err(|error| Error::Path {
        path: pattern.to_owned(),
        problem: format!("is not a file name pattern: {error}"),
    })
}

/// The encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// UTF-8 whose byte order mark, if there is one, is left out.
    Utf8Mark,
    Latin1,
}

impl Encoding {
    pub(super) fn new(name: &str) -> Result<Encoding, Error> {
        match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "utf-8" | "utf8" => Ok(Encoding::Utf8),
            "utf-8-sig" => Ok(Encoding::Utf8Mark),
            "latin-1" | "latin1" | "iso-8859-1" => Ok(Encoding::Latin1),
            _ => Err(Error::Encoding(name.to_owned())),
        }
    }

    /// The text of a file, or an error message.
    pub(super) fn read(self, path: &Path) -> Result<String, String> {
        let mut bytes = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(MAX_CONTENT + 1).read_to_end(&mut bytes));
        read.map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
        if bytes.len() as u64 > MAX_CONTENT {
            return Err(format!("`{}` is longer than {} MiB: split it", path.display(), MAX_CONTENT >> 20));
        }
        if self == Encoding::Latin1 {
            return Ok(bytes.into_iter().map(char::from).collect());
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!(
                "`{}` is not UTF-8 at byte {at}: convert it, set `encoding: latin-1`, or narrow `file_pattern`",
                path.display()
            )
        })?;
        match text.strip_prefix('\u{feff}') {
            Some(behind) if self == Encoding::Utf8Mark => Ok(behind.to_owned()),
            _ => Ok(text),
        }
    }
}
