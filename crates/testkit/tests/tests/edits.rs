//! Edits by the test, snapshots, the log of calls, and threads.

use std::path::Path;
use std::thread;

use anabranch_content::{Disk, Open, Wait};
use anabranch_testkit::{CallCounts, Crash, CrashDisk};
use expect_test::expect;

use crate::files::{keep, keep_folder, rename, write};

#[test]
fn an_edit_changes_visible_and_durable_bytes() {
    let disk = CrashDisk::new(0);
    write(&disk, "a", b"abc");
    disk.flip("a", 1, 0x20);
    disk.put("x/y/b", *b"12345");
    disk.put("x/c", *b"1");
    disk.put("x/c", *b"2");
    disk.truncate("x/y/b", 2);
    disk.put("d", *b"");
    disk.remove_file("d");
    for disk in [disk.crash(0, Crash::Total), disk] {
        let bytes = |path: &str| disk.bytes(path).unwrap();
        assert_eq!((bytes("a"), bytes("x/c"), bytes("x/y/b")), (b"aBc".into(), b"2".into(), b"12".into()));
        assert_eq!(disk.files(), [("a".into(), 3), ("x/c".into(), 1), ("x/y/b".into(), 2)]);
        assert_eq!(disk.bytes("d"), None);
    }
}

#[test]
fn wanted_files_are_edited_visibly_and_durably() {
    let disk = CrashDisk::new(0);
    write(&disk, "a", b"1");
    disk.put("x/b", *b"22");
    disk.put("x/c", *b"33");
    disk.edit_all(|path| path.starts_with("x"), |bytes| bytes[0] += 1);
    disk.edit_all(|path| path == Path::new("y"), |_| unreachable!("there is no such file"));
    for disk in [disk.crash(0, Crash::Total), disk] {
        let bytes = |path: &str| disk.bytes(path).unwrap();
        assert_eq!((bytes("a"), bytes("x/b"), bytes("x/c")), (b"1".into(), b"32".into(), b"43".into()));
    }
}

#[test]
fn a_snapshot_is_independent() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", b"old");
    disk.fail_from(100);
    let copy = disk.snapshot();
    file.write_at(b"new", 0).unwrap();
    write(&copy, "b", b"");
    assert_eq!((copy.bytes("a").unwrap(), disk.bytes("a").unwrap()), (b"old".into(), b"new".into()));
    assert_eq!((disk.bytes("b"), copy.calls()), (None, 2));
    assert_eq!(copy.crash(0, Crash::Total).bytes("a").unwrap(), b"old");
}

#[test]
fn the_log_lists_all_calls() {
    let disk = CrashDisk::new(0);
    keep_folder(&disk, "x");
    keep(&disk, "x/new", b"bytes").set_len(4).unwrap();
    rename(&disk, "x/new", "x/a");
    disk.list(Path::new("x")).unwrap();
    disk.open(Path::new("x/b"), Open::Read).unwrap_err();
    disk.open(Path::new("x/a"), Open::Create).unwrap_err();
    disk.open(Path::new("x/a"), Open::Read).unwrap().read_at(&mut [0; 2], 1, Wait::Yes).unwrap();
    disk.remove(Path::new("x/a")).unwrap();
    expect![[r#"
        make_folder x
        sync_folder .
        create x/new
        write x/new at 0: 5
        sync x/new
        sync_folder x
        set_len x/new: 4
        rename x/new to x/a
        list x
        open x/b (failed)
        create x/a (failed)
        open x/a
        read x/a at 1: 2
        remove x/a"#]]
    .assert_eq(&disk.call_log().join("\n"));
    let counts = CallCounts {
        reads: 1,
        creates: 1,
        writes: 1,
        written: 5,
        set_lens: 1,
        syncs: 1,
        folder_syncs: 2,
        renames: 1,
        removals: 1,
    };
    assert_eq!((disk.counts(), disk.calls()), (counts, 10));
    disk.clear_call_log();
    assert_eq!((disk.counts(), disk.calls()), (CallCounts::default(), 10));
}

#[test]
fn threads_can_share_a_disk() {
    let disk = CrashDisk::new(0);
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let disk = &disk;
            scope.spawn(move || (0..50).for_each(|at| drop(keep(disk, &format!("{name}{at}"), b"bytes"))));
        }
    });
    assert_eq!((disk.crash(0, Crash::Total).files().len(), disk.calls()), (200, 800));
}
