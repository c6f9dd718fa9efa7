//! Calls that fail, and full disks.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use anabranch_content::{Disk, Open, Wait};
use anabranch_testkit::{Crash, CrashDisk};

use crate::files::{keep, keep_folder, write};

/// Replaces a file atomically: writes a new file, syncs it and renames it. Eight calls.
fn replace(disk: &CrashDisk, bytes: &[u8]) -> io::Result<()> {
    let folder = Path::new("x");
    disk.make_folder(folder)?;
    disk.sync_folder(Path::new(""))?;
    let file = disk.open(Path::new("x/new"), Open::Create)?;
    file.write_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    file.sync()?;
    disk.rename(Path::new("x/new"), Path::new("x/a"))?;
    disk.sync_folder(folder)
}

#[test]
fn a_process_can_die_in_every_call() {
    let disk = CrashDisk::new(0);
    keep_folder(&disk, "x");
    keep(&disk, "x/a", b"old");
    let count = {
        let trial = disk.snapshot();
        replace(&trial, b"new").unwrap();
        trial.calls()
    };
    assert_eq!(count, 8);
    for call in 1..=count {
        let trial = disk.snapshot();
        trial.fail_from(call);
        replace(&trial, b"new").unwrap_err();
        assert_eq!(trial.calls(), call);
        let found = trial.crash(call, Crash::Chaos).bytes("x/a").unwrap();
        assert!(found == b"old" || (found == b"new" && call == count), "call {call}");
    }
}

#[test]
fn a_write_in_which_the_process_dies_writes_a_prefix() {
    let mut lens = BTreeSet::new();
    for seed in 0..100 {
        let disk = CrashDisk::new(seed);
        let file = disk.open(Path::new("a"), Open::Create).unwrap();
        disk.fail_from(2);
        file.write_at(&[1; 4], 0).unwrap_err();
        let bytes = disk.bytes("a").unwrap();
        assert_eq!(bytes, &[1; 4][..bytes.len()]);
        lens.insert(bytes.len());
    }
    assert_eq!(lens, BTreeSet::from([0, 1, 2, 3, 4]));
}

#[test]
fn all_calls_of_a_dead_process_fail() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", b"bytes");
    disk.fail_from(disk.calls());
    let (files, calls) = (disk.files(), disk.call_log());
    file.write_at(b"more", 5).unwrap_err();
    file.read_at(&mut [0], 0, Wait::Yes).unwrap_err();
    file.sync().unwrap_err();
    file.set_len(0).unwrap_err();
    file.len().unwrap_err();
    disk.open(Path::new("a"), Open::Read).unwrap_err();
    disk.list(Path::new("")).unwrap_err();
    disk.remove(Path::new("a")).unwrap_err();
    assert_eq!((disk.files(), disk.call_log()), (files, calls));
}

#[test]
fn bytes_may_survive_a_process_that_dies_in_their_sync() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", b"");
    file.write_at(b"bytes", 0).unwrap();
    disk.fail_from(disk.calls() + 1);
    file.sync().unwrap_err();
    assert!((0..100).any(|seed| disk.crash(seed, Crash::Power).bytes("a").unwrap() == b"bytes"));
}

#[test]
fn one_call_fails_and_the_next_succeeds() {
    let disk = CrashDisk::new(0);
    let create = || disk.open(Path::new("a"), Open::Create);
    disk.fail_once(1, io::ErrorKind::PermissionDenied);
    assert_eq!(create().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(disk.files(), []);
    let file = create().unwrap();
    disk.fail_once(3, io::ErrorKind::Other);
    file.write_at(b"bytes", 0).unwrap_err();
    file.write_at(b"bytes", 0).unwrap();
    assert_eq!(disk.bytes("a").unwrap(), b"bytes");
}

#[test]
fn a_failed_sync_loses_the_bytes_it_should_have_made_durable() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", b"1");
    disk.fail_sync(2);
    file.write_at(b"2", 1).unwrap();
    file.sync().unwrap_err();
    file.write_at(b"3", 2).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.bytes("a").unwrap(), b"123", "the bytes can still be read");
    for seed in 0..100 {
        assert_eq!(disk.crash(seed, Crash::Power).bytes("a").unwrap(), b"1\x003");
    }
}

#[test]
fn a_full_disk_writes_the_part_that_fits() {
    let disk = CrashDisk::new(0);
    disk.set_capacity(10);
    let file = write(&disk, "a", &[1; 6]);
    let other = write(&disk, "b", &[2; 2]);
    let full = |done: io::Result<()>| assert_eq!(done.unwrap_err().kind(), io::ErrorKind::StorageFull);
    full(other.write_at(&[3; 4], 2));
    assert_eq!(disk.bytes("b").unwrap(), [2, 2, 3, 3]);
    full(other.set_len(5));
    file.write_at(&[4; 6], 0).unwrap();
    file.set_len(5).unwrap();
    other.write_at(&[5], 4).unwrap();
    full(other.write_at(&[5], 5));
    disk.remove(Path::new("a")).unwrap();
    other.write_at(&[6; 5], 5).unwrap();
}

#[test]
fn the_percentage_of_cached_reads_can_be_set() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", b"bytes");
    let answered = |percent| {
        disk.set_cached_percent(percent);
        let tries = (0..100).map(|_| file.read_at(&mut [0; 5], 0, Wait::No));
        tries
            .filter(|read| match read {
                Ok(count) => *count == 5,
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    false
                }
            })
            .count()
    };
    assert_eq!((answered(100), answered(0)), (100, 0));
    assert!((20..80).contains(&answered(50)));
    disk.set_cached_percent(0);
    assert_eq!(file.read_at(&mut [0; 5], 0, Wait::Yes).unwrap(), 5);
}
