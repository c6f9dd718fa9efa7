//! The index against a model, and against everything that can happen to its files.

mod damage;
mod decoders;
mod faults;
mod large;
mod model;
mod shaky;
mod threads;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Error, Index, Key, LogCoverage, Settings};
use crate::log::Position;
use crate::{Address, Disk, Wait};

type Model = BTreeMap<Key, Box<[u8]>>;

const FOLDER: &str = "index";

/// So small that a few entries make many runs and merges.
const SMALL: Settings = Settings { recent_bytes: 1 << 10, fan_in: 2, frozen_most: 4 };

fn open(disk: &Arc<impl Disk>, settings: Settings) -> Result<(Index, Option<LogCoverage>), Error> {
    Index::open(Arc::clone(disk) as Arc<dyn Disk>, Path::new(FOLDER), settings)
}

/// One of endlessly many keys of all kinds: points, pairs of which many have the same first address, short ones.
fn key(number: usize) -> Key {
    let address = |number: usize| Address::of(&number.to_le_bytes());
    match number % 4 {
        0 | 1 => Key::of(number as u8 % 2, &address(number)),
        2 => Key::pair(2, &address(number % 3), &address(number)),
        _ => Key::new(&number.to_be_bytes()[6 - number % 3..]).unwrap(),
    }
}

/// A position in a log that has one segment.
fn at(offset: u64) -> Position {
    Position { segment: 0, offset }
}

fn value(seed: usize, len: usize) -> Box<[u8]> {
    (0..len).map(|place| (seed * 31 + place) as u8).collect()
}

/// Does the index say what the model says, however it is asked?
fn check(index: &Index, model: &Model, keys: &[Key]) {
    for key in keys {
        assert_eq!(index.get(key, Wait::Yes).unwrap().as_ref(), model.get(key), "{key:?}");
    }
    let many = index.get_many(keys, Wait::Yes).unwrap();
    assert_eq!(many, keys.iter().map(|key| model.get(key).cloned()).collect::<Vec<_>>());
    check_scan(index, model, &[], None);
    for key in keys {
        let bytes = key.as_bytes();
        for prefix in [&bytes[..1], &bytes[..bytes.len().min(33)], bytes] {
            check_scan(index, model, prefix, None);
            check_scan(index, model, prefix, Some(key));
            check_scan(index, model, prefix, keys.first());
        }
    }
}

fn check_scan(index: &Index, model: &Model, prefix: &[u8], after: Option<&Key>) {
    let found: Vec<_> = index.scan(prefix, after).unwrap().collect::<Result<_, _>>().unwrap();
    let wanted = model.iter().filter(|(key, _)| key.as_bytes().starts_with(prefix));
    let wanted = wanted.filter(|(key, _)| after.is_none_or(|after| *key > after));
    assert!(wanted.eq(found.iter().map(|(key, value)| (key, value))), "{prefix:?} after {after:?}");
}

impl Index {
    /// Makes all that was applied durable.
    fn flush(&self, note: impl FnOnce() -> Vec<u8>) -> Result<(), Error> {
        self.freeze_all(note);
        self.write_frozen(usize::MAX)
    }
}
