//! Files and folders that a recipe file names. They are checked where the file is read, and again once they are open:
//! a link may have taken the place of one in between.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

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
        let file = File::open(&self.path)?;
        // The path that was really opened, whatever the one above leads to now.
        if let Some(within) = &self.within
            && !std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?.starts_with(within)
        {
            return Err(self.outside());
        }
        Ok(file)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_takes_the_place_of_a_checked_file_is_not_followed() {
        let folder = std::env::temp_dir().join(format!("anabranch-named-{}", std::process::id()));
        // It may be left from an earlier process of this number.
        let _ = fs::remove_dir_all(&folder);
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
