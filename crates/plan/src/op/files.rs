//! The files that a plan names.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anabranch_text::size;

/// A file's name, as the plan has it, and its bytes.
pub type NamedFile = (String, Arc<[u8]>);

/// Where the files that a plan names are.
#[derive(Clone, Copy)]
pub(crate) enum FilesFrom<'a> {
    /// In a folder, if their paths are relative.
    Folder(&'a Path),
    /// Here: they were read when the plan was loaded elsewhere.
    Kept(&'a [NamedFile]),
}

/// Reads the files that a plan names, and keeps what it read.
pub(crate) struct Files<'a> {
    from: FilesFrom<'a>,
    read: RefCell<Vec<NamedFile>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(from: FilesFrom<'a>) -> Files<'a> {
        Files { from, read: RefCell::default() }
    }

    /// What was read, in order.
    pub(crate) fn into_read(self) -> Vec<NamedFile> {
        self.read.into_inner()
    }

    /// The folder that relative paths are relative to.
    pub(crate) fn base(&self) -> &'a Path {
        match self.from {
            FilesFrom::Folder(base) => base,
            FilesFrom::Kept(_) => Path::new("."),
        }
    }

    /// The bytes of a file that has at most so many.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Arc<[u8]>, String> {
        let same = |(other, _): &&NamedFile| other == name;
        let bytes: Arc<[u8]> = match self.from {
            FilesFrom::Folder(base) => read_file(&base.join(name), most)?.into(),
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
