//! Helpers to write, sync and list files.

use std::path::Path;
use std::sync::Arc;

use anabranch_content::{Disk, File, Open};
use anabranch_testkit::{Crash, CrashDisk};

/// All kinds of power loss.
pub(crate) const POWER: [Crash; 3] = [Crash::Total, Crash::Power, Crash::Chaos];

/// Creates a file with these bytes and syncs nothing.
pub(crate) fn write(disk: &CrashDisk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), Open::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

/// Creates a file with these bytes and makes it durable, provided that its folder is.
pub(crate) fn keep(disk: &CrashDisk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = write(disk, path, bytes);
    file.sync().unwrap();
    sync_above(disk, path);
    file
}

/// Creates a folder and makes it durable, provided that its parent is.
pub(crate) fn keep_folder(disk: &CrashDisk, path: &str) {
    disk.make_folder(Path::new(path)).unwrap();
    sync_above(disk, path);
}

pub(crate) fn rename(disk: &CrashDisk, from: &str, to: &str) {
    disk.rename(Path::new(from), Path::new(to)).unwrap();
}

pub(crate) fn sync_above(disk: &CrashDisk, path: &str) {
    disk.sync_folder(Path::new(path).parent().unwrap()).unwrap();
}

/// The paths of all files, sorted and separated by spaces.
pub(crate) fn paths(disk: &CrashDisk) -> String {
    let paths: Vec<_> = disk.files().into_iter().map(|(path, _)| path.display().to_string()).collect();
    paths.join(" ")
}

/// Calls `look` with the disk after each of many power losses. If it panics, the message has the seed.
pub(crate) fn each_crash(disk: &CrashDisk, mut look: impl FnMut(Crash, CrashDisk)) {
    for crash in POWER {
        for seed in 0..1000 {
            let found = disk.crash(seed, crash);
            let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(crash, found)));
            assert!(looked.is_ok(), "{crash:?} with seed {seed}");
        }
    }
}
