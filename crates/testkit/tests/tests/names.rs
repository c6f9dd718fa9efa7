//! Which names of files and folders survive power loss.

use std::collections::BTreeSet;
use std::path::Path;

use anabranch_content::{Disk, Open};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use crate::files::{POWER, each_crash, keep, keep_folder, paths, rename, sync_above, write};

/// The sets of paths that many crashes of one kind leave.
fn outcomes(disk: &CrashDisk, kind: Crash) -> BTreeSet<String> {
    let mut outcomes = BTreeSet::new();
    each_crash(disk, |crash, found| {
        if crash == kind {
            outcomes.insert(paths(&found));
        }
    });
    outcomes
}

fn check(disk: &CrashDisk, kind: Crash, expected: &[&str]) {
    assert_eq!(outcomes(disk, kind), expected.iter().map(ToString::to_string).collect());
}

#[test]
fn a_synced_file_needs_its_name_synced_too() {
    let disk = CrashDisk::new(0);
    write(&disk, "a", b"bytes").sync().unwrap();
    check(&disk, Crash::Total, &[""]);
    check(&disk, Crash::Power, &["", "a"]);
    disk.sync_folder(Path::new("")).unwrap();
    each_crash(&disk, |_, found| assert_eq!(found.bytes("a").unwrap(), b"bytes"));
}

#[test]
fn a_synced_name_does_not_sync_the_bytes() {
    let disk = CrashDisk::new(0);
    write(&disk, "a", b"bytes");
    disk.sync_folder(Path::new("")).unwrap();
    assert_eq!(disk.crash(0, Crash::Total).bytes("a").unwrap(), b"");
}

#[test]
fn a_new_folder_needs_a_sync_of_its_parent() {
    let disk = CrashDisk::new(0);
    disk.make_folder(Path::new("x/y")).unwrap();
    keep(&disk, "x/y/a", b"bytes");
    check(&disk, Crash::Chaos, &["", "x/y/a"]);
    disk.sync_folder(Path::new("x")).unwrap();
    check(&disk, Crash::Total, &[""]);
    disk.sync_folder(Path::new("")).unwrap();
    check(&disk, Crash::Total, &["x/y/a"]);
}

#[test]
fn a_rename_is_atomic() {
    let disk = CrashDisk::new(0);
    keep(&disk, "new", b"2");
    keep(&disk, "a", b"1");
    rename(&disk, "new", "a");
    let mut found = BTreeSet::new();
    each_crash(&disk, |_, disk| {
        found.insert((disk.bytes("a"), disk.bytes("new")));
    });
    let (one, two) = (Some(b"1".to_vec()), Some(b"2".to_vec()));
    assert_eq!(found, BTreeSet::from([(one, two.clone()), (two.clone(), None)]));

    disk.sync_folder(Path::new("")).unwrap();
    each_crash(&disk, |_, disk| assert_eq!((disk.bytes("a"), disk.bytes("new")), (two.clone(), None)));
}

#[test]
fn a_sync_of_the_target_folder_makes_a_rename_durable() {
    let disk = CrashDisk::new(0);
    keep_folder(&disk, "x");
    keep_folder(&disk, "y");
    keep(&disk, "x/a", b"1");
    rename(&disk, "x/a", "y/a");
    disk.sync_folder(Path::new("x")).unwrap();
    check(&disk, Crash::Power, &["x/a", "y/a"]);
    disk.sync_folder(Path::new("y")).unwrap();
    check(&disk, Crash::Power, &["y/a"]);
}

#[test]
fn a_file_moved_into_a_lost_folder_keeps_its_old_name() {
    let disk = CrashDisk::new(0);
    keep(&disk, "a", b"1");
    disk.make_folder(Path::new("x/y")).unwrap();
    rename(&disk, "a", "x/y/a");
    sync_above(&disk, "x/y/a");
    check(&disk, Crash::Total, &["a"]);
    check(&disk, Crash::Power, &["a", "x/y/a"]);
    check(&disk, Crash::Chaos, &["a", "x/y/a"]);
}

#[test]
fn a_removed_file_may_be_there_again() {
    let disk = CrashDisk::new(0);
    keep(&disk, "a", b"1");
    disk.remove(Path::new("a")).unwrap();
    check(&disk, Crash::Power, &["", "a"]);
    assert_eq!(disk.crash(0, Crash::Total).bytes("a").unwrap(), b"1");
}

#[test]
fn names_survive_in_order_with_a_journal_and_in_any_order_without() {
    let disk = CrashDisk::new(0);
    for path in ["a", "b", "c"] {
        write(&disk, path, b"");
    }
    check(&disk, Crash::Power, &["", "a", "a b", "a b c"]);
    check(&disk, Crash::Chaos, &["", "a", "a b", "a b c", "a c", "b", "b c", "c"]);
}

const FOLDERS: [&str; 4] = ["", "x", "y", "x/z"];

/// Durable files are renamed at random and their old names reused. After a crash, each file exists exactly once.
#[test]
fn renames_neither_lose_nor_duplicate_a_durable_file() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let disk = CrashDisk::new(seed);
        for value in 0..4 {
            keep(&disk, &value.to_string(), &[value]);
        }
        for _ in 0..rng.within(1..25) {
            rename_at_random(&disk, &mut rng);
        }
        for crash in POWER.into_iter().flat_map(|crash| [crash; 10]) {
            let found = disk.crash(rng.bits(), crash);
            assert_eq!(all_bytes(&found), [0, 1, 2, 3], "{crash:?} with seed {seed}");
        }
        FOLDERS.iter().rev().for_each(|folder| drop(disk.sync_folder(Path::new(folder))));
        assert_eq!(disk.crash(0, Crash::Total).files(), disk.files(), "all synced, seed {seed}");
    }
}

fn rename_at_random(disk: &CrashDisk, rng: &mut Rng) {
    let folder = Path::new(*rng.choose(&FOLDERS));
    disk.make_folder(folder).unwrap();
    let path = folder.join(rng.within(0..5).to_string());
    match rng.within(0..4) {
        0 => disk.sync_folder(folder).unwrap(),
        1 => drop(disk.open(&path, Open::Create)),
        _ if disk.bytes(&path).is_none() => disk.rename(&rng.choose(&disk.files()).0, &path).unwrap(),
        _ => {}
    }
}

/// The bytes of all files, sorted. Panics if the folder of a file does not exist.
fn all_bytes(disk: &CrashDisk) -> Vec<u8> {
    let mut all = Vec::new();
    for (path, _) in disk.files() {
        disk.list(path.parent().unwrap()).unwrap();
        all.extend(disk.bytes(path).unwrap());
    }
    all.sort_unstable();
    all
}
