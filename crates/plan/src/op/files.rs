//! The files that a plan names. A plan may be untrusted, so they are confined to the folders that the project allows.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anabranch_text::size;

/// A file's name in the plan, and its bytes.
pub type NamedFile = (String, Arc<[u8]>);

/// The place of the files that a plan names.
#[derive(Clone, Copy)]
pub(crate) enum FilesFrom<'a> {
    /// In the plan's folder, or in one of the folders that the project allows.
    Folder {
        /// The plan's folder: relative paths are relative to it.
        base: &'a Path,
        /// The folders that may contain files, besides the plan's.
        allowed: &'a [PathBuf],
    },
    /// These files, which were read when the plan was loaded elsewhere.
    Kept(&'a [NamedFile]),
}

/// Reads the files that a plan names, and records them.
pub(crate) struct Files<'a> {
    from: FilesFrom<'a>,
    read: RefCell<Vec<NamedFile>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(from: FilesFrom<'a>) -> Files<'a> {
        Files { from, read: RefCell::default() }
    }

    /// The files that were read, in order.
    pub(crate) fn into_read(self) -> Vec<NamedFile> {
        self.read.into_inner()
    }

    /// The folder that relative paths are relative to.
    pub(crate) fn base(&self) -> &'a Path {
        match self.from {
            FilesFrom::Folder { base, .. } => base,
            FilesFrom::Kept(_) => Path::new("."),
        }
    }

    /// The bytes of a file, if it has at most `most`.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Arc<[u8]>, String> {
        let same = |(other, _): &&NamedFile| other == name;
        let bytes: Arc<[u8]> = match self.from {
            FilesFrom::Folder { base, allowed } => read_file(&confined(base, allowed, name)?, most)?.into(),
            FilesFrom::Kept(files) => match files.iter().find(same) {
                Some((_, bytes)) => Arc::clone(bytes),
                None => return Err("was not read when the capture was taken".to_owned()),
            },
        };
        let mut read = self.read.borrow_mut();
        if !read.iter().any(|file| same(&file)) {
            read.push((name.to_owned(), Arc::clone(&bytes)));
        }
        Ok(bytes)
    }
}

/// The path of the file `name`, links followed, if it is in the plan's folder or an allowed one.
///
/// Names that lead outside are refused before the disk is accessed, so that a plan cannot find out which files exist.
fn confined(base: &Path, allowed: &[PathBuf], name: &str) -> Result<PathBuf, String> {
    let unread = |error: std::io::Error| format!("cannot be read: {error}");
    let real = |folder: &Path| {
        // The empty path is the current folder.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folder.canonicalize()
    };
    let base = real(base).map_err(unread)?;
    let mut folders = vec![base.clone()];
    // An allowed folder that is not there allows nothing.
    folders.extend(allowed.iter().filter_map(|folder| real(folder).ok()));
    let within = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let named = without_dots(&base.join(name));
    if within(&named) {
        let found = named.canonicalize().map_err(unread)?;
        if within(&found) {
            return Ok(found);
        }
    }
    let shown: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(format!(
        "is outside of the folders that plans may read ({}); move the file there, or allow its folder in \
         anabranch.toml: `files = [\"/models\"]` under [plan]",
        shown.join(", ")
    ))
}

/// The path with `.` and `..` taken out by name.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let unread = |error: std::io::Error| format!("cannot be read: {error}");
    // Asked before it is opened: opening a pipe would wait for its other end.
    if !std::fs::metadata(path).map_err(unread)?.is_file() {
        return Err("not a file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(unread)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > most {
        return Err(format!("larger than the {} that it may have", size::format(most)));
    }
    Ok(bytes)
}
