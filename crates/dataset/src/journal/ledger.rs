//! The ledger of a journal: calls, tokens and time by origin, for all replies that were ever recorded in it.
//!
//! Entries in the files of the tail are counted when the journal is opened. Those that moved to the store are counted in
//! `ledger.json`, which names the last file that it counts. It is written before such a file is removed, so a process that
//! is killed between any two steps neither loses a count nor counts an entry twice.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::AddAssign;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::origin::{Origin, OriginNames};

/// Calls of a model, and the tokens and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Calls that were made and answered.
    pub calls: u64,
    /// The cells that calls were made for: first replies of conversations, and embedded texts.
    pub cells: u64,
    /// Tokens of the requests.
    pub input_tokens: u64,
    /// Tokens of the replies.
    pub output_tokens: u64,
    /// Input tokens that the server had in its cache.
    pub cached_tokens: u64,
    /// The time of all calls together.
    pub took_ms: u64,
    /// The bytes of all requests' messages, for the ratio of input tokens per byte.
    pub prompt_bytes: u64,
}

/// The figures of all origins.
pub(crate) type LedgerTotals = BTreeMap<OriginNames, Figures>;

/// The figures by the bytes of their origins, the oldest origin first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ledger {
    lines: IndexMap<Box<[u8]>, Figures>,
}

/// The ledger as a file.
#[derive(Serialize, Deserialize)]
struct LedgerFile {
    /// The number of the last file of the tail that is counted.
    counted_tail: u64,
    lines: Vec<LedgerLine>,
}

#[derive(Serialize, Deserialize)]
struct LedgerLine {
    dataset: String,
    build: String,
    column: String,
    alias: String,
    model: String,
    #[serde(flatten)]
    figures: Figures,
}

const NAME: &str = "ledger.json";

/// Builds with figures of their own. The figures of older ones are put together by dataset, so that the file stays small.
const BUILDS_MOST: usize = 200;

impl Ledger {
    /// The ledger in a folder, and the last file of the tail that it counts. A file that a power cut damaged counts as
    /// none: the metadata of builds has their counts too.
    pub(super) fn read(folder: &Path) -> io::Result<(Ledger, Option<u64>)> {
        let text = match fs::read(folder.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Ledger::default(), None)),
            text => text?,
        };
        let Ok(LedgerFile { counted_tail, lines }) = serde_json::from_slice(&text) else {
            return Ok((Ledger::default(), None));
        };
        let mut builds: Vec<String> = Vec::new();
        for line in &lines {
            if !builds.contains(&line.build) {
                builds.push(line.build.clone());
            }
        }
        builds.truncate(builds.len().saturating_sub(BUILDS_MOST));
        let mut ledger = Ledger::default();
        for LedgerLine { dataset, build, column, alias, model, figures } in lines {
            let build = if builds.contains(&build) { String::new() } else { build };
            let origin = Origin::new(&OriginNames { dataset, build, column, alias, model });
            ledger.add(origin.bytes(), figures);
        }
        Ok((ledger, Some(counted_tail)))
    }

    /// Writes the ledger, which includes the files of the tail up to this one. Blocks. After a kill, either the old or
    /// the new file exists. The file is not synced, because only the replies must survive a power failure.
    pub(super) fn write(&self, folder: &Path, counted_tail: u64) -> io::Result<()> {
        let lines = self.lines.iter().filter_map(|(origin, figures)| {
            let OriginNames { dataset, build, column, alias, model } = OriginNames::decode(origin)?;
            Some(LedgerLine { dataset, build, column, alias, model, figures: *figures })
        });
        let file = LedgerFile { counted_tail, lines: lines.collect() };
        let aside = folder.join("ledger.json.tmp");
        fs::write(&aside, serde_json::to_vec(&file)?)?;
        fs::rename(aside, folder.join(NAME))
    }

    /// Adds figures to those of an origin.
    pub(super) fn add(&mut self, origin: &[u8], figures: Figures) {
        match self.lines.get_mut(origin) {
            Some(line) => *line += figures,
            None => _ = self.lines.insert(origin.into(), figures),
        }
    }

    pub(super) fn totals(&self) -> LedgerTotals {
        let lines = self.lines.iter();
        lines.filter_map(|(origin, figures)| Some((OriginNames::decode(origin)?, *figures))).collect()
    }
}

impl Figures {
    pub(super) fn numbers(&self) -> [u64; 7] {
        let Figures { calls, cells, input_tokens, output_tokens, cached_tokens, took_ms, prompt_bytes } =
            *self;
        [calls, cells, input_tokens, output_tokens, cached_tokens, took_ms, prompt_bytes]
    }

    pub(super) fn of_numbers(
        [calls, cells, input_tokens, output_tokens, cached_tokens, took_ms, prompt_bytes]: [u64; 7],
    ) -> Figures {
        Figures { calls, cells, input_tokens, output_tokens, cached_tokens, took_ms, prompt_bytes }
    }

    /// The maximum of each figure.
    pub(crate) fn max(self, other: Figures) -> Figures {
        let (mut numbers, others) = (self.numbers(), other.numbers());
        numbers.iter_mut().zip(others).for_each(|(number, other)| *number = (*number).max(other));
        Figures::of_numbers(numbers)
    }
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        let (mut numbers, others) = (self.numbers(), other.numbers());
        numbers.iter_mut().zip(others).for_each(|(number, other)| *number = number.saturating_add(other));
        *self = Figures::of_numbers(numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(build: usize, column: &str) -> OriginNames {
        let build = build.to_string();
        OriginNames { dataset: "d".into(), build, column: column.into(), ..OriginNames::default() }
    }

    #[test]
    fn the_oldest_builds_are_put_together() {
        let folder = std::env::temp_dir().join(format!("anabranch-ledger-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut ledger = Ledger::default();
        for build in 0..BUILDS_MOST + 3 {
            for column in ["a", "b"] {
                let figures = Figures { calls: build as u64 + 1, ..Figures::default() };
                ledger.add(Origin::new(&names(build, column)).bytes(), figures);
            }
        }
        ledger.write(&folder, 7).unwrap();
        let (read, counted) = Ledger::read(&folder).unwrap();
        let totals = read.totals();
        assert_eq!((counted, totals.len()), (Some(7), 2 * BUILDS_MOST + 2));
        let older = OriginNames { build: String::new(), ..names(0, "b") };
        assert_eq!(totals[&older].calls, 1 + 2 + 3);
        assert_eq!(totals[&names(3, "b")].calls, 4);
        let (again, _) = Ledger::read(&folder).unwrap();
        assert_eq!(again, read);
        fs::write(folder.join(NAME), "").unwrap();
        assert_eq!(Ledger::read(&folder).unwrap(), (Ledger::default(), None));
        fs::remove_dir_all(&folder).unwrap();
    }
}
