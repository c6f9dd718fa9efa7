//! Short words for what the tests do to a disk.

use std::path::Path;
use std::sync::Arc;

use anabranch_content::{Disk, File, Open};
use anabranch_testkit::{Crash, CrashDisk};

/// The ways in which power fails.
pub(crate) const POWER: [Crash; 3] = [Crash::Total, Crash::Power, Crash::Chaos];

/// A new file with these bytes, nothing of it synced.
pub(crate) fn write(disk: &CrashDisk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), Open::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

/// A new file with these bytes, durable in a folder that is.
pub(crate) fn keep(disk: &CrashDisk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = write(disk, path, bytes);
    file.sync().unwrap();
    sync_above(disk, path);
    file
}

/// A folder in a folder that is durable, durable.
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

/// The paths of the files, in order, with spaces between.
pub(crate) fn paths(disk: &CrashDisk) -> String {
    let paths: Vec<_> = disk.files().into_iter().map(|(path, _)| path.display().to_string()).collect();
    paths.join(" ")
}

/// The disk after each of many failures of power; `look` panics with the seed in sight.
pub(crate) fn each_crash(disk: &CrashDisk, mut look: impl FnMut(Crash, CrashDisk)) {
    for crash in POWER {
        for seed in 0..1000 {
            let found = disk.crash(seed, crash);
            let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(crash, found)));
            assert!(looked.is_ok(), "{crash:?} with seed {seed}");
        }
    }
}
