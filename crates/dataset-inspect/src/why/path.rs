//! Rows in the notation of users: a number, or the number of a row with the parts that were made from it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anabranch_dataset::output::FileError;
use anabranch_dataset::stages::{StepFate, child_id, read_fates};

/// A row in the notation of users: `17`, or `17.3` for the part 3 that a step made from row 17. The long number of such
/// a row in the files is accepted, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPath {
    pub(super) first: u64,
    pub(super) parts: Vec<u32>,
}

/// The reason why a text is not a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotARow;

impl fmt::Display for NotARow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row is a number such as `17`, or `17.3` for a part of it")
    }
}

impl std::error::Error for NotARow {}

/// This bit is set in the ids of rows that were made from others.
const MADE: u64 = 1 << 63;

impl RowPath {
    pub(super) fn new(first: u64, parts: &[u32]) -> RowPath {
        RowPath { first, parts: parts.to_vec() }
    }

    /// The id that the files have for the row.
    pub fn id(&self) -> u64 {
        self.parts.iter().fold(self.first, |id, part| child_id(id, *part))
    }

    /// The path of a row that was given as the long number of a part. Blocks.
    pub(super) fn resolved(&self, stages: &[PathBuf]) -> Result<RowPath, FileError> {
        let mut path = self.clone();
        for folder in stages.iter().rev() {
            // One stage may take rows apart several times.
            while path.first & MADE != 0 {
                let mut found = None;
                read_fates(folder, |fate| {
                    if let StepFate::Item { parent, item } = fate.fate
                        && fate.row == path.first
                    {
                        found = Some((parent, item));
                    }
                })?;
                let Some((parent, item)) = found else { break };
                path.first = parent;
                path.parts.insert(0, item);
            }
        }
        Ok(path)
    }
}

impl FromStr for RowPath {
    type Err = NotARow;

    fn from_str(text: &str) -> Result<RowPath, NotARow> {
        let mut parts = text.split('.');
        let first = parts.next().and_then(|first| first.parse().ok()).ok_or(NotARow)?;
        let parts = parts.map(|part| part.parse().map_err(|_| NotARow)).collect::<Result<_, _>>()?;
        Ok(RowPath { first, parts })
    }
}

impl fmt::Display for RowPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.parts.iter().try_for_each(|part| write!(f, ".{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_are_written() {
        for text in ["0", "17", "17.3", "17.3.0", "18446744073709551615"] {
            assert_eq!(text.parse::<RowPath>().unwrap().to_string(), text);
        }
        for text in ["", "a", "1.", ".1", "-1", "1.-1", "1 2"] {
            assert!(text.parse::<RowPath>().is_err(), "{text}");
        }
        assert_eq!("17.3".parse::<RowPath>().unwrap().id(), child_id(17, 3));
    }
}
