//! Files and folders that a recipe file names. They are checked where the file is read, and again once they are open:
//! a link may have taken the place of one in between.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// A file or a folder that a recipe file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    path: PathBuf,
    /// The folder that it must be in, without links; `None` if it may be anywhere.
    within: Option<PathBuf>,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Within,
    Outside,
}

impl NamedPath {
    /// A path that must lead into this folder, if there is one.
    pub(super) fn new(path: PathBuf, within: Option<&Path>) -> io::Result<NamedPath> {
        let within = within.map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
        let within = within.map(Path::canonicalize).transpose()?;
        Ok(NamedPath { path, within })
    }

    /// The path as the recipe file has it, from the current folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file or the folder. The error of one that lies outside of the recipe file's folder does not tell
    /// whether it exists.
    pub fn open(&self) -> io::Result<File> {
        if self.whereabouts() == Whereabouts::Outside {
            return Err(self.outside());
        }
        // A pipe that has taken the file's place would block until somebody writes to it.
        let file =
            OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&self.path)?;
        let opened = file.metadata()?;
        if !opened.is_file() && !opened.is_dir() {
            let problem = format!("`{}` is neither a file nor a folder", self.path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        match &self.within {
            Some(within) if !is_within(&file, &opened, &self.path, within) => Err(self.outside()),
            _ => Ok(file),
        }
    }

    /// Where the path leads at this moment. What does not exist lies where its nearest folder lies; a link that leads
    /// nowhere could lead anywhere.
    pub(super) fn whereabouts(&self) -> Whereabouts {
        let Some(within) = &self.within else { return Whereabouts::Within };
        for part in self.path.ancestors() {
            let part = if part == Path::new("") { Path::new(".") } else { part };
            match part.canonicalize() {
                Ok(real) if real.starts_with(within) => return Whereabouts::Within,
                Ok(_) => return Whereabouts::Outside,
                Err(_) if part.symlink_metadata().is_ok() => return Whereabouts::Outside,
                Err(_) => {}
            }
        }
        Whereabouts::Outside
    }

    fn outside(&self) -> io::Error {
        let problem = format!("`{}` is outside of the recipe file's folder", self.path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, problem)
    }
}

/// Whether an open file lies within a folder, whatever its path leads to now.
fn is_within(file: &File, opened: &Metadata, path: &Path, within: &Path) -> bool {
    match std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())) {
        Ok(real) => real.starts_with(within),
        Err(_) => is_found_within(opened, path, within),
    }
}

/// The same without `/proc`: whether the path still leads to the open file, and into the folder.
fn is_found_within(opened: &Metadata, path: &Path, within: &Path) -> bool {
    let is_opened = |found: Metadata| (found.dev(), found.ino()) == (opened.dev(), opened.ino());
    path.canonicalize()
        .is_ok_and(|real| real.starts_with(within) && std::fs::symlink_metadata(&real).is_ok_and(is_opened))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of a test; it may be left from an earlier process of this number.
    fn empty_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("anabranch-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_pipe_that_takes_the_place_of_a_checked_file_does_not_block() {
        let folder = empty_folder("named-pipe");
        let path = folder.join("file");
        let named = NamedPath::new(path.clone(), Some(&folder)).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let opening = std::thread::Builder::new().spawn(move || tell.send(named.open().map(drop)));
        let opened = told.recv_timeout(std::time::Duration::from_secs(60)).expect("it does not block");
        assert!(opened.unwrap_err().to_string().ends_with("is neither a file nor a folder"));
        opening.unwrap().join().unwrap().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Where there is no `/proc`, the path must still lead to the file that was opened.
    #[test]
    fn an_open_file_is_found_by_its_device_and_inode() {
        let folder = empty_folder("named-inode");
        let inner = folder.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let inner = inner.canonicalize().unwrap();
        fs::write(folder.join("secret"), "secret").unwrap();
        fs::write(inner.join("file"), "file").unwrap();
        let opened = File::open(inner.join("file")).unwrap().metadata().unwrap();
        assert!(is_found_within(&opened, &inner.join("file"), &inner));
        let secret = File::open(folder.join("secret")).unwrap().metadata().unwrap();
        assert!(!is_found_within(&secret, &inner.join("file"), &inner), "another file");
        assert!(!is_found_within(&secret, &folder.join("secret"), &inner), "another folder");
        symlink("../secret", inner.join("link")).unwrap();
        assert!(!is_found_within(&secret, &inner.join("link"), &inner), "a link out of the folder");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_link_that_takes_the_place_of_a_checked_file_is_not_followed() {
        let folder = empty_folder("named");
        fs::create_dir_all(folder.join("inner/deep")).unwrap();
        fs::write(folder.join("secret"), "secret").unwrap();
        fs::write(folder.join("inner/file"), "file").unwrap();
        let inner = folder.join("inner");
        let named = |name: &str| NamedPath::new(inner.join(name), Some(&inner)).unwrap();
        let file = named("file");
        let read = |named: &NamedPath| -> io::Result<String> {
            let mut text = String::new();
            named.open()?.read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(read(&file).unwrap(), "file");
        fs::remove_file(inner.join("file")).unwrap();
        assert_eq!(read(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
        symlink("../secret", inner.join("file")).unwrap();
        let refused = |named: &NamedPath| {
            let error = read(named).unwrap_err().to_string();
            assert!(error.contains("is outside of the recipe file's folder"), "{error}");
        };
        refused(&file);
        // Whether a file exists there is not told.
        symlink("../none", inner.join("nowhere")).unwrap();
        symlink("..", inner.join("up")).unwrap();
        for name in
            ["nowhere", "../none", "../secret", "up/none", "up/secret", "deep/../../none", "/none/at/all"]
        {
            assert_eq!(named(name).whereabouts(), Whereabouts::Outside, "{name}");
            refused(&named(name));
        }
        for name in ["none", "deep/none", "none/../../none"] {
            assert_eq!(read(&named(name)).unwrap_err().kind(), io::ErrorKind::NotFound, "{name}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
