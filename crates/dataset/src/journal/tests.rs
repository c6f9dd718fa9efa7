//! The counts of a journal whose process is killed between any two steps.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A journal in a folder that is copied, as a kill would leave it.
struct Case {
    folder: PathBuf,
    copies: u32,
}

fn origin(column: &str) -> OriginNames {
    let (dataset, build) = ("d".to_owned(), "b".to_owned());
    OriginNames { dataset, build, column: column.to_owned(), alias: "m".to_owned(), model: "p/m".to_owned() }
}

impl Case {
    fn new(test: &str) -> Case {
        let folder = std::env::temp_dir().join(format!("anabranch-counts-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Case { folder, copies: 0 }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("journal")
    }

    /// The counted calls of a process that opens the journal as it is on disk now.
    fn counted(&mut self) -> u64 {
        self.copies += 1;
        let copy = self.folder.join(format!("copy-{}", self.copies));
        copy_folder(&self.path(), &copy);
        let tail = Tail::open(&copy).unwrap();
        tail.ledger().totals().values().map(|figures| figures.calls).sum()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for found in fs::read_dir(from).unwrap() {
        let found = found.unwrap();
        if found.path().is_file() {
            fs::copy(found.path(), to.join(found.file_name())).unwrap();
        }
    }
}

fn append(tail: &Tail, column: &str, reply: &str) {
    let (origin, figures) = (Origin::new(&origin(column)), Figures { calls: 1, ..Figures::default() });
    let entry = Entry::Refusal(reply.to_owned()).encode(&origin, &figures);
    tail.append(Address::of(reply.as_bytes()), entry.into(), (&origin, figures)).unwrap();
}

#[test]
fn a_kill_between_any_two_steps_neither_loses_a_count_nor_doubles_it() {
    let mut case = Case::new("steps");
    fs::create_dir_all(case.path()).unwrap();
    let mut expected = 0;
    // Three processes. Each but the first begins with the state that a kill left at one of the steps.
    for killed_after in ["rotate", "ledger", "nothing"] {
        let tail = Tail::open(&case.path()).unwrap();
        for number in 0..5 {
            append(&tail, "a", &format!("{killed_after} {number}"));
            expected += 1;
            assert_eq!(case.counted(), expected, "after an append");
        }
        // The same request again, which was paid for twice.
        append(&tail, "b", &format!("{killed_after} 4"));
        expected += 1;
        let moving = tail.rotate().unwrap();
        assert_eq!(case.counted(), expected, "after the entries were taken");
        append(&tail, "b", &format!("{killed_after} later"));
        expected += 1;
        if killed_after == "rotate" {
            continue;
        }
        moving.ledger.write(&case.path(), moving.last).unwrap();
        assert_eq!(case.counted(), expected, "with the ledger, and the files that it counts");
        if killed_after == "ledger" {
            continue;
        }
        tail.moved().unwrap();
        assert_eq!(case.counted(), expected, "without those files");
    }
    let tail = Tail::open(&case.path()).unwrap();
    let totals = tail.ledger().totals();
    assert_eq!((totals[&origin("a")].calls, totals[&origin("b")].calls), (15, 6));
}

#[test]
fn a_file_is_numbered_behind_those_that_are_counted() {
    let mut case = Case::new("numbers");
    fs::create_dir_all(case.path()).unwrap();
    for round in 1..=3 {
        let tail = Tail::open(&case.path()).unwrap();
        append(&tail, "a", &round.to_string());
        let moving = tail.rotate().unwrap();
        moving.ledger.write(&case.path(), moving.last).unwrap();
        tail.moved().unwrap();
        assert_eq!(case.counted(), round, "no file is left, and all are counted");
    }
}

#[test]
fn a_torn_record_is_not_counted() {
    let mut case = Case::new("torn");
    fs::create_dir_all(case.path()).unwrap();
    let tail = Tail::open(&case.path()).unwrap();
    append(&tail, "a", "whole");
    append(&tail, "a", "torn");
    let file = case.path().join("tail-00000000.log");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(case.counted(), 1);
}
