//! Flipped, cut and missing bytes: the right ones come out, or none.

use super::*;

/// The length of a small blob that has a tree.
const LEN: usize = (1 << 20) + 200_000;

fn flip(disk: &dyn Disk, path: &Path, at: u64, bits: u8) {
    let file = disk.open(path, Open::Read).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at, Wait::Yes).unwrap();
    file.write_at(&[byte[0] ^ bits], at).unwrap();
}

fn is_corrupt<T>(read: &Result<T, Error>) -> bool {
    matches!(read, Err(Error::Corrupt { .. }))
}

#[test]
fn a_tree_that_is_missing_or_has_another_length_heals() {
    let (disk, files) = memory();
    let blob = blob(LEN);
    let name = put(&files, 1, &blob, LEN);
    let tree = bytes(&*disk, &name.tree());
    for len in [None, Some(0), Some(10), Some(24), Some(500), Some(100_000)] {
        match len {
            Some(len) => disk.open(&name.tree(), Open::Read).unwrap().set_len(len).unwrap(),
            None => disk.remove(&name.tree()).unwrap(),
        }
        assert_eq!(read(&files, name, LEN, 0..u64::MAX).unwrap(), blob);
        assert_eq!(bytes(&*disk, &name.tree()), tree, "after a tree of {len:?} bytes");
    }
    assert!(files.list().unwrap().orphans.is_empty());
}

#[test]
fn a_tree_that_breaks_while_it_is_read_heals() {
    let (disk, files) = memory();
    let len = (64 << 20) + 100_000;
    let blob = blob(len);
    let name = put(&files, 1, &blob, 1 << 20);
    let reading = BlobReader::open(&files, name, len as u64).unwrap();
    let places = Tree::of(len as u64);
    for span in [1, 0, 1] {
        flip(&*disk, &name.tree(), places.group_values(span).start, 1);
        let start = span << 26;
        assert_eq!(reading.read(start..start + 10).unwrap(), blob[start as usize..][..10]);
    }
    flip(&*disk, &name.tree(), places.span_values().start + 40, 1);
    assert_eq!(read(&files, name, len, 0..5).unwrap(), blob[..5]);
}

#[test]
fn a_blob_of_another_length_is_corrupt_and_a_missing_one_missing() {
    let (disk, files) = memory();
    for (number, len) in [(1, 1000), (2, LEN)] {
        let name = put(&files, number, &blob(len), len);
        for wrong in [len - 1, len + 1, 0] {
            disk.open(&name.data(), Open::Read).unwrap().set_len(wrong as u64).unwrap();
            assert!(is_corrupt(&read(&files, name, len, 0..1)));
        }
        disk.remove(&name.data()).unwrap();
        assert!(matches!(read(&files, name, len, 0..1), Err(Error::Missing)));
    }
}

#[test]
fn a_blob_cut_short_while_it_is_read_is_corrupt() {
    let (disk, files) = memory();
    let name = put(&files, 1, &blob(LEN), LEN);
    let reading = BlobReader::open(&files, name, LEN as u64).unwrap();
    disk.open(&name.data(), Open::Read).unwrap().set_len(1000).unwrap();
    assert!(is_corrupt(&reading.read(0..10)));
}

#[test]
fn a_disk_that_takes_no_tree_is_read_all_the_same() {
    let disk = Arc::new(WatchedDisk::default());
    let files = Files::open(Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
    let name = put(&files, 1, &blob(LEN), LEN);
    disk.remove(&name.tree()).unwrap();
    for refused in ["make", "write", "rename"] {
        disk.refuse(Some(refused));
        assert_eq!(read(&files, name, LEN, 0..u64::MAX).unwrap(), blob(LEN));
    }
    disk.refuse(None);
    flip(&*disk, &name.data(), 5, 1);
    disk.refuse(Some("make"));
    assert!(is_corrupt(&read(&files, name, LEN, 0..1)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_damaged_blob_gives_right_bytes_or_none(
        len in prop_oneof![1usize..10_000, Just(LEN)],
        at: prop::sample::Index,
        bits in 1u8..,
        with_tree: bool,
    ) {
        let (disk, files) = memory();
        let blob = blob(len);
        let name = put(&files, 1, &blob, len);
        let at = at.index(len) as u64;
        flip(&*disk, &name.data(), at, bits);
        if !with_tree {
            let _ = disk.remove(&name.tree());
        }
        prop_assert!(is_corrupt(&read(&files, name, len, at..at + 1)));
        for start in (0..len as u64).step_by(60_000) {
            let part = read(&files, name, len, start..start + 60_000);
            match &part {
                Ok(bytes) => prop_assert_eq!(&bytes[..], &blob[start as usize..][..bytes.len()]),
                Err(_) => prop_assert!(is_corrupt(&part)),
            }
        }
    }

    #[test]
    fn a_damaged_tree_heals(at: prop::sample::Index, bits in 1u8..) {
        let (disk, files) = memory();
        let blob = blob(LEN);
        let name = put(&files, 1, &blob, LEN);
        let tree = bytes(&*disk, &name.tree()).unwrap();
        flip(&*disk, &name.tree(), at.index(tree.len()) as u64, bits);
        prop_assert_eq!(read(&files, name, LEN, 0..u64::MAX).unwrap(), blob);
        prop_assert_eq!(bytes(&*disk, &name.tree()), Some(tree));
    }
}
