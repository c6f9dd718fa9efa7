//! One trial, in a process of its own: opens a damaged index, asks for all keys, prints the worst that happened.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::{CACHE_BYTES, ENTRIES};
use crate::indexes::{self, Contender, Kind};

/// What a trial came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Right,
    Refused,
    Reported,
    Missing,
    Wrong,
    Panic,
    Killed,
    Hung,
}

impl Verdict {
    pub(super) const ALL: [Verdict; 8] = [
        Verdict::Right,
        Verdict::Refused,
        Verdict::Reported,
        Verdict::Missing,
        Verdict::Wrong,
        Verdict::Panic,
        Verdict::Killed,
        Verdict::Hung,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Refused => "refused",
            Verdict::Reported => "reported",
            Verdict::Missing => "missing",
            Verdict::Wrong => "wrong",
            Verdict::Panic => "panic",
            Verdict::Killed => "killed",
            Verdict::Hung => "hung",
        }
    }
}

/// Looks at an index and prints a verdict, and whether a full check found damage that lookups did not report.
pub(super) fn run(kind: &str, folder: &Path) -> io::Result<()> {
    let kind = Kind::ALL.into_iter().find(|other| other.name() == kind);
    let kind = kind.ok_or_else(|| io::Error::other("no such index"))?;
    let (verdict, check) =
        catch_unwind(AssertUnwindSafe(|| look(kind, folder))).unwrap_or((Verdict::Panic, None));
    let check = match check {
        None => "unchecked",
        Some(true) => "found",
        Some(false) => "overlooked",
    };
    println!("{} {check}", verdict.name());
    Ok(())
}

/// What [`run`] printed.
pub(super) fn read(line: &str) -> Option<(Verdict, Option<bool>)> {
    let (verdict, check) = line.trim().split_once(' ')?;
    let verdict = Verdict::ALL.into_iter().find(|other| other.name() == verdict)?;
    let check = match check {
        "found" => Some(true),
        "overlooked" => Some(false),
        _ => None,
    };
    Some((verdict, check))
}

fn look(kind: Kind, folder: &Path) -> (Verdict, Option<bool>) {
    let Ok(mut index) = kind.open(folder, CACHE_BYTES) else { return (Verdict::Refused, None) };
    let known = (0..ENTRIES).map(|number| (number, true));
    let unknown = (0..ENTRIES).map(|number| (number | 1 << 61, false));
    let verdicts = known.chain(unknown).map(|(number, inserted)| ask(&*index, number, inserted));
    let verdict = verdicts.max().unwrap_or(Verdict::Right);
    let is_silent = matches!(verdict, Verdict::Missing | Verdict::Wrong);
    // A check that panics has found something.
    let check = || index.check().map(|checked| checked.is_err());
    let check = if is_silent { catch_unwind(AssertUnwindSafe(check)).unwrap_or(Some(true)) } else { None };
    (verdict, check)
}

fn ask(index: &dyn Contender, number: u64, inserted: bool) -> Verdict {
    let mut is_right = false;
    let expected = indexes::value(number);
    match index.look(&indexes::key(number), &mut |value| is_right = value == expected) {
        Err(_) => Verdict::Reported,
        Ok(false) if inserted => Verdict::Missing,
        Ok(true) if !inserted || !is_right => Verdict::Wrong,
        Ok(_) => Verdict::Right,
    }
}
