//! Without faults, the disk behaves like a folder of the real file system.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anabranch_content::{Disk, Entry, File, Folder, Open, Wait};
use anabranch_testkit::{CrashDisk, Rng};

const FOLDERS: [&str; 4] = ["", "x", "x/y", "z"];
const FILES: [&str; 8] = ["a", "b", "x/a", "x/b", "x/y/a", "x/y/b", "z/a", "a/b"];

#[test]
fn the_disk_answers_as_a_real_folder_does() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real");
    for seed in 0..10 {
        drop(std::fs::remove_dir_all(&root));
        let mut real = (Rng::new(seed), Folder::new(&root).unwrap(), Vec::new());
        let mut ours = (Rng::new(seed), CrashDisk::new(seed), Vec::new());
        for call in 0..200 {
            let real = answer(&mut real.0, &real.1, &mut real.2);
            let ours = answer(&mut ours.0, &ours.1, &mut ours.2);
            assert_eq!(ours, real, "call {call} of seed {seed}");
        }
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// Makes a random call and returns the answer as text.
fn answer(rng: &mut Rng, disk: &dyn Disk, open: &mut Vec<Arc<dyn File>>) -> String {
    let [path, other] = [(); 2].map(|()| Path::new(*rng.choose(&FILES)));
    let folder = Path::new(*rng.choose(&FOLDERS));
    match rng.within(0..12) {
        0 => as_text("make_folder", folder, disk.make_folder(folder)),
        1 => as_text("sync_folder", folder, disk.sync_folder(folder)),
        2 => as_text("list", folder, disk.list(folder).map(sorted)),
        3 => as_text("rename", (path, other), disk.rename(path, other)),
        4 => as_text("remove", path, disk.remove(path)),
        5 => as_text("read", path, disk.open(path, Open::Read).map(|file| open.push(file))),
        6 | 7 => as_text("create", path, disk.open(path, Open::Create).map(|file| open.push(file))),
        _ if open.is_empty() => String::new(),
        call => on_file(&**rng.choose(open), call, rng),
    }
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

fn on_file(file: &dyn File, call: u64, rng: &mut Rng) -> String {
    let (offset, len) = (rng.within(0..2000), rng.within(0..2000) as usize);
    let done = match call {
        8 => file.write_at(&vec![rng.bits() as u8; len], offset),
        9 => file.set_len(offset),
        // A folder also refuses to sync a file that has lost its name.
        10 => file.sync().or(Ok(())),
        _ => {
            let mut bytes = vec![0; len];
            let count = file.read_at(&mut bytes, offset, Wait::Yes);
            return as_text("read_at", offset, count.map(|count| bytes[..count].to_vec()));
        }
    };
    // The kind of error for a write to a read-only file differs, so only success is compared.
    as_text("change", (call, offset), Ok((done.is_ok(), file.len().unwrap())))
}

fn as_text(call: &str, on: impl fmt::Debug, answer: io::Result<impl fmt::Debug>) -> String {
    format!("{call} {on:?}: {:?}", answer.map_err(|error| error.kind()))
}
