//! Enough entries for many leaves, and what becomes of them.

use std::sync::Arc;

use super::{FOLDER, Model, SMALL, at, check_scan, key, open, value};
use crate::index::filter::Filter;
use crate::index::{Index, Key, LogCoverage, Settings};
use crate::{Address, Disk, Memory, Wait};

const MIDDLE: Settings = Settings { recent_bytes: 256 << 10, fan_in: 3, frozen_most: 4 };

fn fill(index: &Index, keys: impl Iterator<Item = Key>) -> Model {
    let mut model = Model::new();
    for (number, key) in keys.enumerate() {
        let value = value(number, number % 50);
        model.insert(key, value.clone());
        index.apply([(key, Some(value))], at(number as u64), Vec::new);
        while index.should_work() {
            index.work().unwrap();
        }
    }
    model
}

fn check_all(index: &Index, model: &Model) {
    for (key, value) in model {
        assert_eq!(index.get(key, Wait::No).unwrap().as_ref(), Some(value));
    }
    let keys: Vec<_> = model.keys().rev().copied().collect();
    let values: Vec<_> = model.values().rev().cloned().map(Some).collect();
    assert!(index.get_many(&keys, Wait::No).unwrap() == values, "many at once");
    check_scan(index, model, &[], None);
}

#[test]
fn many_entries_are_found_before_and_after_reopening() {
    let disk = Arc::new(Memory::new());
    let (index, _) = open(&disk, MIDDLE).unwrap();
    let model = fill(&index, (0..20_000).map(|number| key(4 * number)));
    check_all(&index, &model);
    index.flush(Vec::new).unwrap();
    let before = index.stats();
    let (index, _) = open(&disk, MIDDLE).unwrap();
    assert_eq!(index.stats(), before);
    assert!(before.runs > 1 && before.entries == 20_000, "{before:?}");
    check_all(&index, &model);
    let mut read = 0;
    index.verify(&mut |bytes| read += bytes).unwrap();
    assert!(read > before.disk_bytes * 9 / 10 && read <= before.disk_bytes, "{read} of {before:?}");
}

#[test]
fn many_pairs_may_share_an_address() {
    let (popular, disk) = (Address::of(b"popular"), Arc::new(Memory::new()));
    let (index, _) = open(&disk, MIDDLE).unwrap();
    let second = |number: usize| Address::of(&number.to_le_bytes());
    let model = fill(&index, (0..8_000).map(|number| Key::pair(7, &popular, &second(number))));
    check_all(&index, &model);
    let prefix = Key::of(7, &popular);
    for after in model.keys().step_by(1000) {
        check_scan(&index, &model, prefix.as_bytes(), Some(after));
    }
    assert_eq!(index.get(&Key::pair(7, &popular, &second(8_000)), Wait::No).unwrap(), None);
}

#[test]
fn deletions_that_have_done_their_work_are_forgotten() {
    let disk = Arc::new(Memory::new());
    let (index, _) = open(&disk, SMALL).unwrap();
    for change in [Some(value(1, 9)), None] {
        index.apply((0..20).map(|number| (key(number), change.clone())), at(1), Vec::new);
        index.flush(Vec::new).unwrap();
    }
    while index.work().unwrap() {}
    let stats = index.stats();
    assert_eq!((stats.runs, stats.entries, stats.disk_bytes), (0, 0, 0));
    assert_eq!(disk.list(FOLDER.as_ref()).unwrap().len(), 1, "only the manifest is left");
}

#[test]
fn a_flush_is_of_all_that_was_applied() {
    let disk = Arc::new(Memory::new());
    let (index, _) = open(&disk, MIDDLE).unwrap();
    index.flush(|| panic!("there is nothing to note")).unwrap();
    for (number, position) in [(0, 1), (1, 1), (2, 2)] {
        index.apply([(key(number), Some(value(number, 1)))], at(position), Vec::new);
        index.flush(|| vec![number as u8]).unwrap();
        index.flush(|| panic!("there is nothing to note")).unwrap();
        let (index, covered) = open(&disk, MIDDLE).unwrap();
        assert_eq!(covered, Some(LogCoverage { position: at(position), note: vec![number as u8] }));
        assert_eq!(index.get(&key(number), Wait::Yes).unwrap(), Some(value(number, 1)));
    }
    index.apply([], at(8), Vec::new);
    index.flush(Vec::new).unwrap();
    assert_eq!(open(&disk, MIDDLE).unwrap().1.unwrap().position, at(8));
    assert_eq!(index.stats().runs, 3, "an empty table makes no run");
}

#[test]
fn a_long_merge_lets_frozen_tables_pass() {
    let disk = Arc::new(Memory::new());
    let (index, _) = open(&disk, Settings { recent_bytes: 8 << 20, ..MIDDLE }).unwrap();
    let apply = |round: usize| {
        let changes =
            (0..4_500).map(|number| (key(4 * (round * 4_500 + number)), Some(value(number, 2_000))));
        index.apply(changes, at(round as u64), Vec::new);
    };
    for round in 0..3 {
        apply(round);
        index.work().unwrap();
    }
    index.work().unwrap();
    assert_eq!(index.stats().runs, 3, "the merge is not done yet");
    apply(3);
    index.work().unwrap();
    assert_eq!(index.stats().runs, 4, "and meanwhile a table was written");
    while index.work().unwrap() {}
    assert_eq!((index.stats().runs, index.stats().entries), (2, 18_000));
    index.verify(&mut |_| {}).unwrap();
}

#[test]
fn the_writer_is_told_to_pause_until_work_is_done() {
    let (index, _) = open(&Arc::new(Memory::new()), SMALL).unwrap();
    let mut applied = 0;
    while !index.is_behind() {
        index.apply([(key(applied), Some(value(0, 100)))], at(applied as u64), Vec::new);
        applied += 1;
    }
    assert!(index.stats().memory_bytes < 5 * SMALL.recent_bytes + 2_000);
    while index.work().unwrap() {}
    assert!(!index.is_behind());
}

#[test]
fn a_filter_is_seldom_wrong() {
    let point = |number: usize| *Address::of(&number.to_le_bytes()).as_bytes();
    let mut filter = Filter::with_room(10_000);
    (0..10_000).for_each(|number| filter.add(&point(number)));
    assert!((0..10_000).all(|number| filter.may_have(&point(number))));
    let wrong = (10_000..50_000).filter(|number| filter.may_have(&point(*number))).count();
    assert!(wrong < 600, "{wrong} of 40000");
}
