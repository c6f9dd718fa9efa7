//! Makes new files and folders. Existing ones are never replaced.

use std::fs::{DirBuilder, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::out;

/// Fails if one of these files exists, before any of them is written.
pub(crate) fn missing<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    for file in files {
        if is_there(file)? {
            return Err(Failure::of(format!(
                "{} exists already; existing files are not replaced",
                file.display()
            )));
        }
    }
    Ok(())
}

/// Whether a file exists.
pub(crate) fn is_there(file: &Path) -> Result<bool, Failure> {
    file.try_exists().map_err(|error| Failure::of(format!("cannot look for {}: {error}", file.display())))
}

/// Writes a new file, and creates its folders.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::of(format!("cannot write {}: {error}", file.display()));
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let mut opened = OpenOptions::new().write(true).create_new(true).open(file).map_err(fail)?;
    opened.write_all(text.as_bytes()).map_err(fail)?;
    out::note(&format!("wrote {}", file.display()));
    Ok(())
}

/// Makes a folder for temporary files that only this user can read. Another user could make a link of a predictable
/// name.
pub(crate) fn temporary_folder(purpose: &str) -> Result<PathBuf, Failure> {
    let number = RandomState::new().hash_one(purpose);
    let folder = std::env::temp_dir().join(format!("anabranch-{purpose}-{number:016x}"));
    let made = DirBuilder::new().mode(0o700).create(&folder);
    made.map_err(|error| Failure::of(format!("cannot make {}: {error}", folder.display())))?;
    Ok(folder)
}
