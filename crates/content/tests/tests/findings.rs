//! Faults that a review found, each as the smallest test that shows it.

mod crowded;
mod gate;
mod hot;
mod imported;
mod names;
mod promoted;
mod removed;
mod swept;
mod diverged;
mod quota;
mod rot;
mod threads;
mod endings;
mod seen;
mod moving;
mod owners;
mod lost;

use std::path::Path;

use anabranch_content::{Address, Context};
use anabranch_testkit::CrashDisk;

pub(crate) const CONTEXT: Context<'static> = Context("anabranch tests 2026 findings");

/// Where some bytes begin in the files below a folder: the last such place.
fn find(disk: &CrashDisk, folder: &str, bytes: &[u8]) -> Option<(std::path::PathBuf, usize)> {
    let files = disk.files().into_iter().map(|(path, _)| path).filter(|path| path.starts_with(folder));
    files
        .filter_map(|path| Some((position(&disk.bytes(&path)?, bytes)?, path)))
        .next_back()
        .map(|(at, path)| (path, at))
}

fn position(of: &[u8], bytes: &[u8]) -> Option<usize> {
    of.windows(bytes.len()).rposition(|window| window == bytes)
}

/// The file of a large blob, if it has one.
fn file_of(disk: &CrashDisk, address: &Address) -> Option<std::path::PathBuf> {
    let is_its =
        |path: &Path| path.starts_with("files") && path.to_string_lossy().contains(&address.to_string());
    disk.files().into_iter().map(|(path, _)| path).find(|path| is_its(path))
}

/// Has the next process make the index anew from the log.
fn remove_index(disk: &CrashDisk) {
    for (path, _) in disk.files().into_iter().filter(|(path, _)| path.starts_with("index")) {
        disk.remove_file(path);
    }
}
