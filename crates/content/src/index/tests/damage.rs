//! Any damage to the bytes of a file leads to the right answer or an error, never to a wrong or missing answer.

use std::sync::Arc;

use super::{FOLDER, Model, SMALL, key, open, value};
use crate::index::{Error, Index, Key};
use crate::log::Position;
use crate::{Disk, File, Memory, Open, Wait};

/// An index of several runs in a few thousand bytes.
fn small_index() -> (Arc<Memory>, Model) {
    let (disk, mut model) = (Arc::new(Memory::new()), Model::new());
    let (index, _) = open(&disk, SMALL).unwrap();
    for number in 0..26 {
        let value = value(number, if number == 13 { 2000 } else { number * 5 % 60 });
        index.apply(
            [(key(number), Some(value.clone()))],
            Position { segment: 1, offset: number as u64 },
            || b"note".to_vec(),
        );
        model.insert(key(number), value);
        index.work().unwrap();
    }
    index.apply([(key(3), None)], Position { segment: 1, offset: 26 }, Vec::new);
    model.remove(&key(3));
    index.flush(|| b"note".to_vec()).unwrap();
    assert!(index.stats().runs >= 2, "{:?}", index.stats());
    (disk, model)
}

fn paths(disk: &Memory) -> Vec<std::path::PathBuf> {
    let folder = std::path::Path::new(FOLDER);
    disk.list(folder).unwrap().iter().map(|entry| folder.join(&entry.name)).collect()
}

fn read_all(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0, Wait::Yes).unwrap();
    bytes
}

/// Changes every file in every way, one at a time, and checks that it is noticed.
fn check_changes(ways: impl Fn(&[u8]) -> usize, change: impl Fn(&dyn File, &[u8], usize)) {
    let (disk, model) = small_index();
    for path in paths(&disk) {
        let file = disk.open(&path, Open::Read).unwrap();
        let bytes = read_all(&*file);
        for way in 0..ways(&bytes) {
            change(&*file, &bytes, way);
            let is_same = read_all(&*file) == bytes;
            assert!(is_same || is_noticed(&disk, &model), "{} changed in way {way}", path.display());
            file.set_len(bytes.len() as u64).unwrap();
            file.write_at(&bytes, 0).unwrap();
        }
    }
    assert!(!is_noticed(&disk, &model));
}

/// Is the index found to be damaged? Panics when it gives a wrong answer.
fn is_noticed(disk: &Arc<Memory>, model: &Model) -> bool {
    let index = match open(disk, SMALL) {
        Ok((index, covered)) => {
            assert_eq!(
                covered.map(|covered| (covered.position, covered.note)),
                Some((Position { segment: 1, offset: 26 }, b"note".to_vec()))
            );
            index
        }
        Err(error) => return expect_damage(&error),
    };
    let seen = (0..30).map(|number| answer_is_right(&index, model, &key(number))).fold(false, |a, b| a | b);
    let seen = seen | scan_ends_early(&index, model);
    let verified = index.verify(&mut |_| {}).map_err(|error| expect_damage(&error));
    assert!(!seen || verified.is_err(), "reading saw what verifying did not");
    verified.is_err()
}

/// True: not right, but it says so.
fn answer_is_right(index: &Index, model: &Model, key: &Key) -> bool {
    match index.get(key, Wait::Yes) {
        Ok(value) => {
            assert_eq!(value.as_ref(), model.get(key));
            false
        }
        Err(error) => expect_damage(&error),
    }
}

fn scan_ends_early(index: &Index, model: &Model) -> bool {
    let scan = match index.scan(&[], None) {
        Ok(scan) => scan,
        Err(error) => return expect_damage(&error),
    };
    let mut wanted = model.iter();
    for found in scan {
        match found {
            Ok((key, value)) => assert_eq!(wanted.next(), Some((&key, &value))),
            Err(error) => return expect_damage(&error),
        }
    }
    assert_eq!(wanted.next(), None);
    false
}

fn expect_damage(error: &Error) -> bool {
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    true
}

#[test]
fn a_flipped_bit_is_noticed() {
    check_changes(<[u8]>::len, |file, bytes, place| {
        file.write_at(&[bytes[place] ^ 1 << (place % 8)], place as u64).unwrap();
    });
}

#[test]
fn a_cut_off_file_is_noticed() {
    check_changes(<[u8]>::len, |file, _, len| file.set_len(len as u64).unwrap());
}

#[test]
fn a_longer_file_is_noticed() {
    check_changes(|_| 2, |file, bytes, more| file.write_at(&[0; 9][..=more], bytes.len() as u64).unwrap());
}

#[test]
fn exchanged_parts_are_noticed() {
    check_changes(
        |bytes| bytes.len() / 64 - 1,
        |file, bytes, part| {
            let other = bytes.len() - 64 * (part + 1);
            file.write_at(&bytes[64 * part..][..64], other as u64).unwrap();
            file.write_at(&bytes[other..][..64], 64 * part as u64).unwrap();
        },
    );
}

#[test]
fn a_missing_file_is_noticed() {
    for number in 0..paths(&small_index().0).len() {
        let (disk, model) = small_index();
        let path = &paths(&disk)[number];
        disk.remove(path).unwrap();
        match path.to_str().unwrap().contains("manifest") {
            true => assert_eq!(open(&disk, SMALL).unwrap().1, None, "then it covers nothing"),
            false => assert!(is_noticed(&disk, &model)),
        }
    }
}

#[test]
fn a_damaged_index_can_be_reset_and_filled_again() {
    let (disk, _) = small_index();
    let path = paths(&disk).into_iter().find(|path| path.to_str().unwrap().contains("run")).unwrap();
    disk.open(&path, Open::Read).unwrap().set_len(1).unwrap();
    assert!(matches!(open(&disk, SMALL), Err(Error::Damaged { .. })));
    let index = Index::reset(Arc::clone(&disk) as Arc<dyn Disk>, FOLDER.as_ref(), SMALL).unwrap();
    assert_eq!(paths(&disk), Vec::<std::path::PathBuf>::new());
    index.apply([(key(1), Some(value(1, 1)))], Position { segment: 2, offset: 0 }, Vec::new);
    index.flush(Vec::new).unwrap();
    let (index, covered) = open(&disk, SMALL).unwrap();
    assert_eq!(covered.map(|covered| covered.position), Some(Position { segment: 2, offset: 0 }));
    assert_eq!(index.get(&key(1), Wait::No).unwrap(), Some(value(1, 1)));
}
