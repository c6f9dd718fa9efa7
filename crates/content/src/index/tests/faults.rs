//! Crashes and failing calls at every moment of a history of writes, merges and removals.

use std::sync::Arc;

use super::shaky::{Crash, Faults, ShakyDisk};
use super::{FOLDER, Model, SMALL, at, check, key, open, value};
use crate::Disk;
use crate::index::{Error, Index, Key};

const KEYS: usize = 24;
const ROUNDS: usize = 60;

fn keys() -> Vec<Key> {
    (0..KEYS).map(key).collect()
}

/// The change of a round. Keys come again, and some changes are deletions.
fn change(round: usize) -> (Key, Option<Box<[u8]>>) {
    let number = round * 7 % KEYS;
    (key(number), (!round.is_multiple_of(5)).then(|| value(round, 3 * round % 200)))
}

/// The expected content of the index after this many rounds.
fn model(rounds: usize) -> Model {
    let mut model = Model::new();
    for (key, value) in (0..rounds).map(change) {
        match value {
            Some(value) => model.insert(key, value),
            None => model.remove(&key),
        };
    }
    model
}

/// Applies all rounds with the work they bring, until an error.
fn fill(index: &Index) -> Result<(), Error> {
    for round in 0..ROUNDS {
        index.apply([change(round)], at(round as u64 + 1), || vec![round as u8 + 1]);
        while index.work()? {}
    }
    index.flush(|| vec![ROUNDS as u8])
}

/// The number of calls that a history without faults makes.
fn calls() -> usize {
    let disk = Arc::new(ShakyDisk::new(Faults { from: 0, count: 0 }));
    fill(&open(&disk, SMALL).unwrap().0).unwrap();
    let calls = disk.calls();
    let (_, covered) = open(&disk.after(Crash::Synced), SMALL).unwrap();
    assert_eq!(covered.map(|covered| covered.position), Some(at(ROUNDS as u64)));
    calls
}

#[test]
fn a_crash_leaves_an_index_that_covers_less() {
    let mut positions = std::collections::BTreeSet::new();
    for from in 0..calls() {
        let disk = Arc::new(ShakyDisk::new(Faults { from, count: usize::MAX }));
        let result = open(&disk, SMALL).and_then(|(index, _)| fill(&index));
        assert!(matches!(result, Err(Error::Disk(_))), "call {from} failed");
        for crash in [Crash::All, Crash::Names, Crash::Synced] {
            let (index, covered) = open(&disk.after(crash), SMALL).unwrap();
            let rounds = covered.as_ref().map_or(0, |covered| covered.position.offset as usize);
            assert!(covered.is_none_or(|covered| covered.note == [rounds as u8]));
            check(&index, &model(rounds), &keys()[..4]);
            index.verify(&mut |_| {}).unwrap();
            positions.insert(rounds);
        }
    }
    assert!(positions.len() > 5, "{positions:?}");
}

#[test]
fn a_refused_call_changes_nothing_and_is_made_good() {
    for from in 4..calls() {
        let disk = Arc::new(ShakyDisk::new(Faults { from, count: 1 + from % 3 }));
        let (index, _) = open(&disk, SMALL).unwrap();
        for round in 0..ROUNDS {
            index.apply([change(round)], at(round as u64 + 1), || vec![round as u8 + 1]);
            let refused = index.work().is_err();
            if refused && round % 4 == 0 {
                // More calls may be refused now; those that are not must say the right thing.
                for key in keys() {
                    let answer = index.get(&key, crate::Wait::Yes);
                    assert!(answer.is_err() || answer.unwrap().as_ref() == model(round + 1).get(&key));
                }
            }
        }
        for _ in 0..5 {
            let _ = index.flush(|| vec![ROUNDS as u8]);
            while index.work().unwrap_or(true) {}
        }
        check(&index, &model(ROUNDS), &keys()[..4]);
        let (index, covered) = open(&disk, SMALL).unwrap();
        let files = disk.list(FOLDER.as_ref()).unwrap();
        assert_eq!(files.len(), index.stats().runs + 1, "call {from} left {files:?}");
        assert_eq!(covered.map(|covered| covered.note), Some(vec![ROUNDS as u8]));
        check(&index, &model(ROUNDS), &keys()[..4]);
    }
}
