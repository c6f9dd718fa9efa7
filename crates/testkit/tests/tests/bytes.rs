//! Which bytes survive power loss.

use std::collections::BTreeSet;

use anabranch_testkit::{Crash, CrashDisk, Rng};

use crate::files::{each_crash, keep, write};

#[test]
fn synced_bytes_survive_everything() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", &[1; 3000]);
    file.write_at(&[2; 100], 1000).unwrap();
    file.sync().unwrap();
    let synced = disk.bytes("a");
    each_crash(&disk, |_, found| assert_eq!(found.bytes("a"), synced));
}

#[test]
fn each_unsynced_sector_is_new_old_or_torn() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", &[1; 2048]);
    file.write_at(&[2; 1048], 500).unwrap();
    let mut sectors = BTreeSet::new();
    let mut torn = 0;
    each_crash(&disk, |crash, found| {
        let bytes = found.bytes("a").unwrap();
        let (before, after) = (&bytes[..500], &bytes[1548..]);
        assert!(
            [before, after].concat().iter().all(|byte| *byte == 1),
            "synced bytes beside the write do not change"
        );
        let parts = [&bytes[500..512], &bytes[512..1024], &bytes[1024..1536], &bytes[1536..1548]];
        let whole =
            parts.iter().all(|part| part.iter().all(|byte| *byte == part[0] && *byte > 0 && *byte < 3));
        if whole {
            sectors.insert(parts.map(|part| part[0]));
        }
        torn += usize::from(!whole);
        assert!(whole || crash == Crash::Chaos);
    });
    assert_eq!(sectors.len(), 16, "each sector survives or is lost on its own");
    assert!(torn > 100);
}

#[test]
fn an_unsynced_length_is_one_that_the_file_had() {
    let disk = CrashDisk::new(0);
    let file = keep(&disk, "a", &[1; 600]);
    file.write_at(&[2; 600], 600).unwrap();
    file.set_len(100).unwrap();
    file.write_at(&[3; 900], 100).unwrap();
    let mut lens = BTreeSet::new();
    each_crash(&disk, |_, found| {
        lens.insert(found.files()[0].1);
        assert!(found.bytes("a").unwrap()[..100].iter().all(|byte| *byte == 1));
    });
    assert_eq!(lens, BTreeSet::from([100, 600, 1000, 1200]));
}

#[test]
fn data_found_after_a_crash_is_durable() {
    let disk = CrashDisk::new(0);
    write(&disk, "a", &[1; 2000]);
    for seed in 0..100 {
        let found = disk.crash(seed, Crash::Chaos);
        assert_eq!(found.crash(0, Crash::Total).bytes("a"), found.bytes("a"));
    }
}

#[test]
fn a_killed_process_loses_nothing_and_makes_nothing_durable() {
    let disk = CrashDisk::new(0);
    write(&disk, "a", &[1; 2000]);
    let found = disk.crash(1, Crash::Kill);
    assert_eq!(found.bytes("a").unwrap(), [1; 2000]);
    assert_eq!(found.crash(1, Crash::Total).files(), []);
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let disk = CrashDisk::new(0);
    keep(&disk, "a", &[1; 4000]).write_at(&[2; 4000], 100).unwrap();
    let found = |seed| disk.crash(seed, Crash::Chaos).bytes("a");
    assert!((0..100).all(|seed| found(seed) == found(seed)));
    assert!((0..100).any(|seed| found(seed) != found(seed + 1)));
}

/// Random writes, truncations and syncs. After a crash, every byte has a value that it had since the last sync.
#[test]
fn without_torn_sectors_every_byte_has_an_earlier_value() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let disk = CrashDisk::new(seed);
        let file = keep(&disk, "a", &[255; 1000]);
        let mut history = vec![disk.bytes("a").unwrap()];
        for value in 0..rng.within(1..12) {
            match rng.within(0..6) {
                0 => file.set_len(rng.within(0..3000)).unwrap(),
                1 => {
                    file.sync().unwrap();
                    history.clear();
                }
                _ => {
                    let (len, offset) = (rng.within(0..1500), rng.within(0..2000));
                    file.write_at(&vec![value as u8 + 1; len as usize], offset).unwrap();
                }
            }
            history.push(disk.bytes("a").unwrap());
        }
        for crash in 0..20 {
            check_history(&history, &disk.crash(crash, Crash::Power).bytes("a").unwrap(), seed);
        }
        assert_eq!(disk.crash(0, Crash::Total).bytes("a").unwrap(), history[0], "seed {seed}");
    }
}

fn check_history(history: &[Vec<u8>], found: &[u8], seed: u64) {
    assert!(
        history.iter().any(|bytes| bytes.len() == found.len()),
        "seed {seed}: the file never had this length"
    );
    let shortest = history.iter().map(Vec::len).min().unwrap();
    for (at, byte) in found.iter().enumerate() {
        let was = history.iter().any(|bytes| bytes.get(at) == Some(byte));
        assert!(was || (*byte == 0 && at >= shortest), "seed {seed}: byte {at} was never {byte}");
    }
}
