//! The folder of an index: the names of its files, and how a new file gets its name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use super::error::Error;
use super::span::SpannedFile;
use crate::{Disk, File, Open};

/// The folder of an index.
#[derive(Clone, Debug)]
pub(super) struct Home {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

/// A file of an index. Its number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Run(u64),
    Manifest(u64),
    /// A file that is being written.
    Draft(u64),
}

impl Home {
    /// The folder, created when missing.
    pub(super) fn new(disk: Arc<dyn Disk>, folder: &Path) -> Result<Home, Error> {
        disk.make_folder(folder).map_err(|cause| Error::disk("make", folder, cause))?;
        Ok(Home { disk, folder: folder.to_owned() })
    }

    /// The index's files; other files in the folder are ignored.
    pub(super) fn list(&self) -> Result<Vec<Name>, Error> {
        let entries =
            self.disk.list(&self.folder).map_err(|cause| Error::disk("list", &self.folder, cause))?;
        Ok(entries.iter().filter_map(|entry| entry.name.parse().ok()).collect())
    }

    /// Opens a file that must be there, because another file names it.
    pub(super) fn open(&self, name: Name) -> Result<SpannedFile, Error> {
        let path = self.path(name);
        let file = self.disk.open(&path, Open::Read).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => Error::damaged(&path, "it is missing"),
            _ => Error::disk("open", &path, cause),
        })?;
        let len = file.len().map_err(|cause| Error::disk("measure", &path, cause))?;
        Ok(SpannedFile { path, file, len })
    }

    /// Begins a file that gets its name when it is complete.
    pub(super) fn create(&self, name: Name) -> Result<Draft, Error> {
        let path = self.path(Name::Draft(name.number()));
        let file =
            self.disk.open(&path, Open::Create).map_err(|cause| Error::disk("create", &path, cause))?;
        Ok(Draft { home: self.clone(), name, path, file, len: 0, kept: false })
    }

    /// Removes the files that are no longer needed.
    pub(super) fn remove_all(&self, is_useless: impl Fn(Name) -> bool) -> Result<(), Error> {
        let mut names = self.list()?;
        names.retain(|name| is_useless(*name));
        for path in names.into_iter().map(|name| self.path(name)) {
            self.disk.remove(&path).map_err(|cause| Error::disk("remove", &path, cause))?;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.disk.sync_folder(&self.folder).map_err(|cause| Error::disk("sync", &self.folder, cause))
    }

    /// Whether this is the path of a run.
    pub(super) fn is_run(&self, path: &Path) -> bool {
        let name = path.strip_prefix(&self.folder).ok().and_then(Path::to_str).map(str::parse);
        matches!(name, Some(Ok(Name::Run(_))))
    }

    fn path(&self, name: Name) -> PathBuf {
        self.folder.join(name.to_string())
    }
}

/// A file that is being written. Dropping it removes it, unless it was kept.
#[derive(Debug)]
pub(super) struct Draft {
    home: Home,
    name: Name,
    /// Its present name.
    path: PathBuf,
    file: Arc<dyn File>,
    len: u64,
    kept: bool,
}

impl Draft {
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_at(bytes, self.len);
        written.map_err(|cause| Error::disk("write", &self.path, cause))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync().map_err(|cause| Error::disk("sync", &self.path, cause))
    }

    /// Renames the file, which is complete and synced, to its final name.
    pub(super) fn publish(&mut self) -> Result<(), Error> {
        let path = self.home.path(self.name);
        let renamed = self.home.disk.rename(&self.path, &path);
        renamed.map_err(|cause| Error::disk("rename", &self.path, cause))?;
        self.path = path;
        self.home.sync()
    }

    /// Keeps the file when this is dropped.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// The file as it is now, for reading.
    pub(super) fn read(&self) -> SpannedFile {
        SpannedFile { path: self.home.path(self.name), file: Arc::clone(&self.file), len: self.len }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // A file that cannot be removed now is removed when the index is next opened.
            let _ = self.home.disk.remove(&self.path);
        }
    }
}

impl Name {
    pub(super) fn number(&self) -> u64 {
        let (Name::Run(number) | Name::Manifest(number) | Name::Draft(number)) = *self;
        number
    }

    /// A manifest's number.
    pub(super) fn manifest(&self) -> Option<u64> {
        matches!(self, Name::Manifest(_)).then_some(self.number())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Run(number) => write!(out, "run-{number:010}"),
            Name::Manifest(number) => write!(out, "manifest-{number:010}"),
            Name::Draft(number) => write!(out, "draft-{number:010}"),
        }
    }
}

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Name, ()> {
        let (kind, number) = text.split_once('-').ok_or(())?;
        let number = number.parse().map_err(|_| ())?;
        let name = match kind {
            "run" => Name::Run(number),
            "manifest" => Name::Manifest(number),
            "draft" => Name::Draft(number),
            _ => return Err(()),
        };
        if name.to_string() == text { Ok(name) } else { Err(()) }
    }
}
