//! Which names power loss takes.

use std::collections::BTreeSet;
use std::path::Path;

use anabranch_content::{Disk, Open};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use crate::files::{POWER, each_crash, keep, keep_folder, paths, rename, sync_above, write};

/// What all crashes of a disk in a way leave, as sets of paths.
fn outcomes(disk: &CrashDisk, way: Crash) -> BTreeSet<String> {
    let mut outcomes = BTreeSet::new();
    each_crash(disk, |crash, found| {
        if crash == way {
            outcomes.insert(paths(&found));
        }
    });
    outcomes
}

fn check(disk: &CrashDisk, way: Crash, expected: &[&str]) {
    assert_eq!(outcomes(disk, way), expected.iter().map(ToString::to_string).collect());
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
fn a_new_folder_needs_the_one_above_synced() {
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
fn a_rename_happens_or_does_not() {
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
fn a_rename_belongs_to_the_folder_it_moves_to() {
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
fn a_file_that_moved_into_a_lost_folder_is_where_it_was() {
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
fn a_removed_file_may_be_back() {
    let disk = CrashDisk::new(0);
    keep(&disk, "a", b"1");
    disk.remove(Path::new("a")).unwrap();
    check(&disk, Crash::Power, &["", "a"]);
    assert_eq!(disk.crash(0, Crash::Total).bytes("a").unwrap(), b"1");
}

#[test]
fn names_happen_in_order_under_a_journal_and_in_any_without() {
    let disk = CrashDisk::new(0);
    for path in ["a", "b", "c"] {
        write(&disk, path, b"");
    }
    check(&disk, Crash::Power, &["", "a", "a b", "a b c"]);
    check(&disk, Crash::Chaos, &["", "a", "a b", "a b c", "a c", "b", "b c", "c"]);
}

const HOMES: [&str; 4] = ["", "x", "y", "x/z"];

/// Files move about and their old names are used again; whatever was synced, each is there once.
#[test]
fn no_durable_file_is_lost_or_doubled_by_renames() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let disk = CrashDisk::new(seed);
        for value in 0..4 {
            keep(&disk, &value.to_string(), &[value]);
        }
        for _ in 0..rng.within(1..25) {
            move_about(&disk, &mut rng);
        }
        for crash in POWER.into_iter().flat_map(|crash| [crash; 10]) {
            let found = disk.crash(rng.bits(), crash);
            assert_eq!(all_bytes(&found), [0, 1, 2, 3], "{crash:?} with seed {seed}");
        }
        HOMES.iter().rev().for_each(|home| drop(disk.sync_folder(Path::new(home))));
        assert_eq!(disk.crash(0, Crash::Total).files(), disk.files(), "all synced, seed {seed}");
    }
}

fn move_about(disk: &CrashDisk, rng: &mut Rng) {
    let folder = Path::new(*rng.choose(&HOMES));
    disk.make_folder(folder).unwrap();
    let path = folder.join(rng.within(0..5).to_string());
    match rng.within(0..4) {
        0 => disk.sync_folder(folder).unwrap(),
        1 => drop(disk.open(&path, Open::Create)),
        _ if disk.bytes(&path).is_none() => disk.rename(&rng.choose(&disk.files()).0, &path).unwrap(),
        _ => {}
    }
}

/// The bytes of all files, each of which is in a folder that is there.
fn all_bytes(disk: &CrashDisk) -> Vec<u8> {
    let mut all = Vec::new();
    for (path, _) in disk.files() {
        disk.list(path.parent().unwrap()).unwrap();
        all.extend(disk.bytes(path).unwrap());
    }
    all.sort_unstable();
    all
}
