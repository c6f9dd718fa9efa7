//! The files on disk: their locations, the order in which they appear, and the files left behind.

use std::path::PathBuf;

use expect_test::{Expect, expect};

use super::*;
use crate::files::name;

fn watched() -> (Arc<WatchedDisk>, Arc<Files>) {
    let disk = Arc::new(WatchedDisk::default());
    let files = Files::open(Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
    disk.notes();
    (disk, files)
}

fn check_keep(disk: &WatchedDisk, files: &Arc<Files>, number: u64, durability: Durability, expect: &Expect) {
    let mut writing = BlobWriter::begin(files, number).unwrap();
    writing.write(&blob(1_100_000)).unwrap();
    writing.hash().unwrap().keep(durability).unwrap();
    expect.assert_eq(&disk.notes());
}

#[test]
fn durable_means_synced_before_and_after_the_rename() {
    let (disk, files) = watched();
    check_keep(
        &disk,
        &files,
        7,
        Durability::Later,
        &expect![[r#"
        make incoming/7
        write 524288 at 0 of incoming/7
        write 524288 at 524288 of incoming/7
        write 51424 at 1048576 of incoming/7
        make incoming/7.tree
        write 576 at 24 of incoming/7.tree
        write 24 at 0 of incoming/7.tree
        folder files/67
        rename to files/67/673a22.7.tree
        rename to files/67/673a22.7
    "#]],
    );
    check_keep(
        &disk,
        &files,
        8,
        Durability::Now,
        &expect![[r#"
        make incoming/8
        write 524288 at 0 of incoming/8
        write 524288 at 524288 of incoming/8
        write 51424 at 1048576 of incoming/8
        make incoming/8.tree
        write 576 at 24 of incoming/8.tree
        write 24 at 0 of incoming/8.tree
        sync incoming/8
        folder files/67
        rename to files/67/673a22.8.tree
        rename to files/67/673a22.8
        sync folder files/67
        sync folder files
    "#]],
    );
    check_keep(
        &disk,
        &files,
        9,
        Durability::Now,
        &expect![[r#"
        make incoming/9
        write 524288 at 0 of incoming/9
        write 524288 at 524288 of incoming/9
        write 51424 at 1048576 of incoming/9
        make incoming/9.tree
        write 576 at 24 of incoming/9.tree
        write 24 at 0 of incoming/9.tree
        sync incoming/9
        folder files/67
        rename to files/67/673a22.9.tree
        rename to files/67/673a22.9
        sync folder files/67
    "#]],
    );
}

#[test]
fn a_write_that_is_dropped_leaves_nothing() {
    let (disk, files) = watched();
    let mut writing = BlobWriter::begin(&files, 1).unwrap();
    writing.write(&blob(2_000_000)).unwrap();
    drop(writing);
    let mut writing = BlobWriter::begin(&files, 2).unwrap();
    writing.write(&blob(70_000_000)).unwrap();
    drop(writing.hash().unwrap());
    assert!(disk.list(Path::new("incoming")).unwrap().is_empty());
    assert!(files.list().unwrap().blobs.is_empty());
}

#[test]
fn a_write_that_fails_leaves_nothing() {
    for refused in [
        "write",
        "make incoming/1.tree",
        "sync incoming/1",
        "folder",
        "rename",
        "rename to files/67/673a22.1",
        "sync folder",
    ] {
        let (disk, files) = watched();
        let mut writing = BlobWriter::begin(&files, 1).unwrap();
        disk.refuse(Some(refused));
        let kept = writing.write(&blob(1_100_000)).and_then(|()| writing.hash()?.keep(Durability::Now));
        assert!(matches!(kept, Err(Error::Disk(_))), "{refused}: {kept:?}");
        assert!(disk.list(Path::new("incoming")).unwrap().is_empty());
        let listed = files.list().unwrap();
        assert!(listed.blobs.is_empty() && listed.orphans.is_empty(), "{refused}: {listed:?}");
    }
}

#[test]
fn the_same_number_is_refused_while_it_is_in_use() {
    let (_, files) = memory();
    let _writing = BlobWriter::begin(&files, 1).unwrap();
    assert!(matches!(BlobWriter::begin(&files, 1), Err(Error::Disk(_))));
}

#[test]
fn one_write_of_a_blob_can_go_and_another_stay() {
    let (disk, files) = memory();
    let blob = blob(1_100_000);
    let (old, new) = (put(&files, 1, &blob, 1 << 20), put(&files, 2, &blob, 1 << 20));
    for _ in 0..2 {
        files.remove(&old).unwrap();
        assert!(matches!(read(&files, old, blob.len(), 0..1), Err(Error::Missing)));
        assert_eq!(read(&files, new, blob.len(), 0..9).unwrap(), blob[..9]);
    }
    for _ in 0..2 {
        files.quarantine(&new).unwrap();
        assert!(matches!(read(&files, new, blob.len(), 0..1), Err(Error::Missing)));
        assert_eq!(bytes(&*disk, &new.quarantined()).as_ref(), Some(&blob));
    }
    assert!(files.list().unwrap().orphans.is_empty());
}

#[test]
fn only_what_would_be_written_is_ours() {
    let zeros = "0".repeat(64);
    let ours = |fan_out: &str, file: String| Name::parse(fan_out, &file).is_some();
    for number in ["0", "7", "18446744073709551615"] {
        assert!(ours("00", format!("{zeros}.{number}")) && ours("00", format!("{zeros}.{number}.tree")));
        assert!(name::is_incoming(number) && name::is_incoming(&format!("{number}.tree")));
        assert!(name::is_incoming(&format!("{number}.0.tree")));
    }
    for number in
        ["", "07", "+7", "-7", " 7", "7 ", "7.8", "7.", ".7", "18446744073709551616", "7.tree.tree", "x", "٣"]
    {
        assert!(
            !ours("00", format!("{zeros}.{number}")) && !ours("00", format!("{zeros}.{number}.tree.tree"))
        );
        assert!(!name::is_incoming(number), "{number}");
    }
    for file in
        ["", "7", "0.7", ".tree", ".7.tree", &zeros, &format!("{zeros}0.7"), &format!("{}A.7", &zeros[1..])]
    {
        assert!(!ours("00", file.to_owned()), "{file}");
    }
    assert!(!ours("01", format!("{zeros}.7")));
    assert!(["00", "9f", "ff"].iter().all(|folder| name::is_fan_out(folder)));
    assert!(!["", "0", "000", "0A", "0g", "é", "..", "0/"].iter().any(|folder| name::is_fan_out(folder)));
}

#[test]
fn what_is_not_ours_is_reported_and_stays() {
    let (disk, files) = memory();
    let name = put(&files, 1, &blob(10), 10);
    let alone = Name { number: 2, ..name };
    let make = |path: &Path| drop(disk.open(path, Open::Create).unwrap());
    make(&alone.tree());
    disk.make_folder(Path::new("files/xx")).unwrap();
    let strays = ["files/notes.txt", "incoming/07", "incoming/notes.txt"].map(PathBuf::from);
    strays.iter().for_each(|path| make(path));
    let within = name.folder().join("notes.txt");
    make(&within);
    ["1", "2.tree", "2.0.tree"].iter().for_each(|left| make(&Path::new("incoming").join(left)));

    let mut listed = files.list().unwrap();
    listed.strays.sort();
    let mut expected = vec![strays[0].clone(), "files/xx".into(), within];
    expected.sort();
    assert_eq!((listed.blobs, listed.orphans, listed.strays), (vec![(name, 10)], vec![alone], expected));
    files.remove(&alone).unwrap();
    assert!(files.list().unwrap().orphans.is_empty());
    let mut left = files.clear_incoming().unwrap();
    left.sort();
    assert_eq!(left, strays[1..]);
    assert_eq!(disk.list(Path::new("incoming")).unwrap().len(), 2);
}
