//! Finds everything in a folder on disk. Links are read, never followed.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_content::Address;
use anabranch_recipe::{Folder, NamedPath};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};

use super::super::input;
use super::super::progress::Meter;
use super::watched::{FileState, FileToRead, changed_meanwhile};
use crate::failure::Failure;
use crate::out;

/// A folder on disk with everything in it.
pub(in super::super) struct WalkedFolder {
    pub(super) path: PathBuf,
    /// The path of the store.
    store: PathBuf,
    /// The entries of each folder, each after the folders inside of it. The last one is the whole.
    pub(super) folders: Vec<Vec<(String, WalkedEntry)>>,
    pub(super) files: Vec<FileToRead>,
    pub(super) links: usize,
    pub(super) bytes: u64,
    /// The path of the store, if it is inside of the folder.
    left_out: Option<PathBuf>,
}

/// An entry of a folder on disk.
#[derive(PartialEq, Eq)]
pub(super) enum WalkedEntry {
    /// The index of the file.
    File(usize),
    /// The index of the folder.
    Folder(usize),
    Link(String),
}

impl WalkedFolder {
    /// Finds everything in a folder, except for the store itself.
    pub(in super::super) fn find(path: &Path, store: &Path) -> Result<WalkedFolder, Failure> {
        WalkedFolder::find_in(path, &open(path)?, store)
    }

    /// Finds everything in a folder that a recipe file names.
    pub(in super::super) fn named(named: &NamedPath, store: &Path) -> Result<WalkedFolder, Failure> {
        let folder = named.open().map_err(|error| input::unread(named.path(), &error))?;
        WalkedFolder::find_in(named.path(), &folder.into(), store)
    }

    fn find_in(path: &Path, folder: &OwnedFd, store: &Path) -> Result<WalkedFolder, Failure> {
        let meter = Arc::new(Mutex::new(Meter::new("reading", None)));
        let walked = walk(path, folder, store, &meter)?;
        if let Some(left_out) = &walked.left_out {
            out::note(&format!("left out {}: it is the store itself", left_out.display()));
        }
        *meter.lock().unwrap_or_else(PoisonError::into_inner) = Meter::new("reading", Some(walked.bytes));
        Ok(walked)
    }

    /// Walks the folder again. Any change is an error, because the files that were read never existed together.
    pub(super) fn check_unchanged(&self) -> Result<(), Failure> {
        let meter = Arc::new(Mutex::new(Meter::silent()));
        let again = walk(&self.path, &open(&self.path)?, &self.store, &meter)?;
        let mut pairs = self.files.iter().zip(&again.files);
        let changed = match pairs.find(|(one, other)| !one.is_same(other)) {
            Some((file, _)) => file.path(),
            None if self.files.len() == again.files.len() && self.folders == again.folders => return Ok(()),
            None => self.path.as_path(),
        };
        Err(Failure::of(changed_meanwhile(changed)))
    }
}

fn open(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|error| unread(path, error))
}

fn walk(
    path: &Path,
    folder: &OwnedFd,
    store: &Path,
    meter: &Arc<Mutex<Meter>>,
) -> Result<WalkedFolder, Failure> {
    let number = std::fs::metadata(store).ok().map(|found| {
        use std::os::unix::fs::MetadataExt as _;
        (i128::from(found.dev()), i128::from(found.ino()))
    });
    let walked = WalkedFolder {
        path: path.to_owned(),
        store: store.to_owned(),
        folders: Vec::new(),
        files: Vec::new(),
        links: 0,
        bytes: 0,
        left_out: None,
    };
    let mut walk = Walk { walked, count: 0, store: number, meter: Arc::clone(meter) };
    walk.folder(path, folder, 1)?;
    Ok(walk.walked)
}

struct Walk {
    walked: WalkedFolder,
    /// The number of files, folders and links so far.
    count: usize,
    /// The device and the inode of the store's folder.
    store: Option<(i128, i128)>,
    meter: Arc<Mutex<Meter>>,
}

impl Walk {
    /// Walks an open folder. Returns its index.
    fn folder(&mut self, path: &Path, folder: &OwnedFd, depth: usize) -> Result<usize, Failure> {
        if depth > Folder::<Address>::DEPTH_MOST {
            return Err(wrong(path, &format!("more than {} folders are inside of each other", depth - 1)));
        }
        let failed = |error| unread(path, error);
        let mut found = Vec::new();
        for entry in Dir::read_from(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let name = text(path, name)?;
            self.count += 1;
            if self.count > Folder::<Address>::ALL_MOST {
                let most = Folder::<Address>::ALL_MOST;
                return Err(wrong(
                    path,
                    &format!("the folder has more than {most} files, folders and links"),
                ));
            }
            found.push(name);
        }
        // The order in which a disk lists names is arbitrary. Errors come in order of names.
        found.sort_unstable();
        let mut entries = Vec::with_capacity(found.len());
        for name in found {
            let inside = path.join(&name);
            if let Some(entry) = self.entry(folder, &inside, &name, depth)? {
                entries.push((name, entry));
            }
        }
        self.walked.folders.push(entries);
        Ok(self.walked.folders.len() - 1)
    }

    fn entry(
        &mut self,
        folder: &OwnedFd,
        path: &Path,
        name: &str,
        depth: usize,
    ) -> Result<Option<WalkedEntry>, Failure> {
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| unread(path, error))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(path, &stat).map(Some),
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new()).map_err(|error| unread(path, error))?;
                self.walked.links += 1;
                let target = target.into_string();
                let target =
                    target.map_err(|_| wrong(path, "the link holds a path that is not UTF-8; remove it"))?;
                Ok(Some(WalkedEntry::Link(target)))
            }
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = openat(folder.as_fd(), name, flags, Mode::empty());
                let opened = opened.map_err(|error| unread(path, error))?;
                let stat = fstat(&opened).map_err(|error| unread(path, error))?;
                if self.store == Some((i128::from(stat.st_dev), i128::from(stat.st_ino))) {
                    self.walked.left_out = Some(path.to_owned());
                    return Ok(None);
                }
                Ok(Some(WalkedEntry::Folder(self.folder(path, &opened, depth + 1)?)))
            }
            _ => Err(wrong(
                path,
                "not a file, a folder or a link; a folder with a device, a pipe or a socket cannot be stored",
            )),
        }
    }

    fn file(&mut self, path: &Path, stat: &Stat) -> Result<WalkedEntry, Failure> {
        let WalkedFolder { files, bytes, .. } = &mut self.walked;
        *bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        if *bytes > Folder::<Address>::BYTES_MOST {
            return Err(wrong(path, "the files of the folder have more than 16 TiB up to here"));
        }
        let executable = stat.st_mode & 0o100 != 0;
        let (seen, meter) = (FileState::of(stat), Arc::clone(&self.meter));
        files.push(FileToRead { path: path.to_owned(), executable, seen, meter });
        Ok(WalkedEntry::File(files.len() - 1))
    }
}

/// A file name as text.
fn text(folder: &Path, name: &CStr) -> Result<String, Failure> {
    match name.to_str() {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => {
            let path: PathBuf = folder.join(name.to_string_lossy().as_ref());
            Err(wrong(&path, &format!("the name {name:?} is not UTF-8; rename it")))
        }
    }
}

fn wrong(path: &Path, problem: &str) -> Failure {
    Failure::of(format!("{}: {problem}", path.display()))
}

fn unread(path: &Path, error: rustix::io::Errno) -> Failure {
    Failure::of(format!("cannot read {}: {}", path.display(), std::io::Error::from(error)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions, Permissions};
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    type Change = fn(&Path);

    fn append(path: &Path) {
        OpenOptions::new().append(true).open(path).unwrap().write_all(b"x").unwrap();
    }

    const CHANGES: [(&str, Change); 7] = [
        ("a file grows", |folder| append(&folder.join("file"))),
        ("a file is removed", |folder| fs::remove_file(folder.join("inside/last")).unwrap()),
        ("a file is added", |folder| fs::write(folder.join("inside/new"), "").unwrap()),
        ("a folder is added", |folder| fs::create_dir(folder.join("inside/new")).unwrap()),
        ("a link gets another target", |folder| {
            fs::remove_file(folder.join("link")).unwrap();
            symlink("inside", folder.join("link")).unwrap();
        }),
        ("a file is replaced by an equal one", |folder| {
            fs::write(folder.join("other"), "old").unwrap();
            fs::rename(folder.join("other"), folder.join("file")).unwrap();
        }),
        ("a file becomes executable", |folder| {
            fs::set_permissions(folder.join("file"), Permissions::from_mode(0o755)).unwrap();
        }),
    ];

    /// A folder of this test, and what was found in it.
    fn walked(name: &str) -> (PathBuf, WalkedFolder) {
        let name = format!("anabranch-walk-{}-{}", std::process::id(), name.replace(' ', "-"));
        let folder = std::env::temp_dir().join(name);
        // It may be left from an earlier process of this number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("inside")).unwrap();
        fs::write(folder.join("file"), "old").unwrap();
        fs::write(folder.join("inside/last"), "last").unwrap();
        symlink("file", folder.join("link")).unwrap();
        let walked = WalkedFolder::find(&folder, &folder.join(".anabranch")).unwrap();
        (folder, walked)
    }

    #[test]
    fn every_change_of_a_folder_after_the_walk_is_noticed() {
        for (name, change) in CHANGES {
            let (folder, walked) = walked(name);
            assert!(walked.check_unchanged().is_ok(), "before {name}");
            change(&folder);
            let failure = format!("{:?}", walked.check_unchanged().unwrap_err());
            assert!(failure.contains("put the folder again"), "{name}: {failure}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn a_file_that_changes_before_or_while_it_is_read_is_an_error() {
        let (folder, walked) = walked("a read");
        let path = folder.join("file");
        let file = walked.files.iter().find(|file| file.path() == path).unwrap();
        let mut reader = file.reader().unwrap();
        let mut first = [0; 2];
        reader.read_exact(&mut first).unwrap();
        append(&path);
        let problem = "changed while the folder was read; put the folder again";
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        let error = file.open().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        fs::remove_file(&path).unwrap();
        let error = file.open().unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
