//! Blobs in files: round trips, damage, what is left behind, and streams.

mod copies;
mod damage;
mod folders;
mod streams;
mod watched;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::{BlobReader, BlobWriter, Durability, Error, Files, Name, PIECE_LEN, WHOLE_LEN};
use crate::tree::Tree;
use crate::{Address, Disk, File, Folder, Memory, Open, Wait};
use watched::WatchedDisk;

/// Bytes of which no two pieces are the same.
fn blob(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&len.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

fn memory() -> (Arc<Memory>, Arc<Files>) {
    let disk = Arc::new(Memory::new());
    let files = Files::open(Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
    (disk, files)
}

/// Writes a blob in pieces of some size.
fn put(files: &Arc<Files>, number: u64, blob: &[u8], size: usize) -> Name {
    let mut writing = BlobWriter::begin(files, number).unwrap();
    blob.chunks(size).for_each(|piece| writing.write(piece).unwrap());
    let written = writing.hash().unwrap();
    assert_eq!((written.name, written.len), (Name { address: Address::of(blob), number }, blob.len() as u64));
    let name = written.name;
    written.keep(Durability::Later).unwrap();
    name
}

fn read(files: &Arc<Files>, name: Name, len: usize, range: Range<u64>) -> Result<Vec<u8>, Error> {
    Ok(BlobReader::open(files, name, len as u64)?.read(range)?.to_vec())
}

/// The content of the file at this path.
fn bytes(disk: &dyn Disk, path: &Path) -> Option<Vec<u8>> {
    let file = disk.open(path, Open::Read).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0, Wait::Yes).unwrap();
    Some(bytes)
}

fn check_round_trip(disk: &dyn Disk, files: &Arc<Files>, number: u64, len: usize, size: usize) {
    let blob = blob(len);
    let name = put(files, number, &blob, size);
    assert_eq!(bytes(disk, &name.data()).as_deref(), Some(&*blob));
    let tree = bytes(disk, &name.tree()).map(|tree| tree.len() as u64);
    assert_eq!(tree, (len as u64 > WHOLE_LEN).then(|| Tree::of(len as u64).file_len()));
    assert_eq!(read(files, name, len, 0..u64::MAX).unwrap(), blob);
    assert_eq!(files.clear_incoming().unwrap(), [] as [&Path; 0]);
}

#[test]
fn blobs_of_all_sizes_come_back() {
    let (disk, files) = memory();
    let (piece, whole) = (PIECE_LEN, WHOLE_LEN as usize);
    let lens = [0, 1, 1024, 65_536, piece - 1, piece, piece + 1, whole, whole + 1, 3 * whole + 77];
    for (number, len) in (0..).zip(lens) {
        for (round, size) in (0..).zip([5000, piece, piece + 1, whole + 65_536]) {
            check_round_trip(&*disk, &files, number * 10 + round, len, size);
        }
    }
    assert_eq!(files.list().unwrap().blobs.len(), 4 * lens.len());
}

#[test]
fn a_blob_of_two_spans_comes_back() {
    let (disk, files) = memory();
    let len = (64 << 20) + 100_000;
    check_round_trip(&*disk, &files, 1, len, 1 << 20);
}

#[test]
fn buffers_are_used_again() {
    let (_, files) = memory();
    let blob = blob(3 << 20);
    let name = put(&files, 1, &blob, blob.len());
    let reading = BlobReader::open(&files, name, blob.len() as u64).unwrap();
    let first = reading.read(0..100).unwrap();
    let place = first.as_ptr();
    assert_eq!(place.align_offset(64), 0);
    assert_ne!(reading.read(0..100).unwrap().as_ptr(), place, "the first is still in use");
    drop(first);
    assert_eq!(reading.read(0..100).unwrap().as_ptr(), place);
}

#[test]
fn a_real_folder_works_alike() {
    let root = std::env::temp_dir().join(format!("anabranch-content-files-{}", std::process::id()));
    let disk: Arc<dyn Disk> = Arc::new(Folder::new(&root).unwrap());
    let files = Files::open(Arc::clone(&disk)).unwrap();
    check_round_trip(&*disk, &files, 1, 3_000_000, 100_000);
    let mut writing = BlobWriter::begin(&files, 2).unwrap();
    writing.write(&blob(2_000_000)).unwrap();
    let written = writing.hash().unwrap();
    let name = written.name;
    written.keep(Durability::Now).unwrap();
    assert_eq!(files.list().unwrap().blobs.len(), 2);
    std::fs::remove_file(root.join(name.tree())).unwrap();
    assert_eq!(read(&files, name, 2_000_000, 0..u64::MAX).unwrap(), blob(2_000_000));
    files.quarantine(&name).unwrap();
    assert!(matches!(read(&files, name, 2_000_000, 0..1), Err(Error::Missing)));
    std::fs::remove_dir_all(root).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_range_comes_back(len in prop_oneof![0usize..100_000, 1_040_000usize..1_500_000], at: (u64, u64)) {
        let (_, files) = memory();
        let blob = blob(len);
        let name = put(&files, 1, &blob, 100_000);
        let (start, end) = (at.0 % (len as u64 + 10), at.1 % (len as u64 + 10));
        let there = start.min(len as u64) as usize..end.min(len as u64) as usize;
        prop_assert_eq!(&read(&files, name, len, start..end).unwrap()[..], blob.get(there).unwrap_or_default());
    }
}
