//! The names of files. They are parsed strictly: only a name that the store would write is the store's.

use std::path::{Path, PathBuf};

use super::{FILES, INCOMING, QUARANTINE};
use crate::Address;

/// Names one file of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) address: Address,
    /// The number of this write of the blob; never used twice.
    pub(crate) number: u64,
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blob,
    Tree,
}

impl Name {
    pub(super) fn data(&self) -> PathBuf {
        self.folder().join(self.text())
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.folder().join(self.text() + ".tree")
    }

    pub(super) fn quarantined(&self) -> PathBuf {
        Path::new(QUARANTINE).join(self.text())
    }

    pub(super) fn folder(&self) -> PathBuf {
        Path::new(FILES).join(format!("{:.2}", self.address))
    }

    /// The number of the folder.
    pub(super) fn fan_out(&self) -> usize {
        usize::from(self.address.as_bytes()[0])
    }

    /// Reads the name of a file in the folder called `fan_out`.
    pub(super) fn parse(fan_out: &str, file: &str) -> Option<(Name, Kind)> {
        let (text, kind) = match file.strip_suffix(".tree") {
            Some(text) => (text, Kind::Tree),
            None => (file, Kind::Blob),
        };
        let (address, number) = text.split_once('.')?;
        let name = Name { address: address.parse().ok()?, number: number.parse().ok()? };
        // Capitals, leading zeros and signs parse, but the store never writes them.
        (name.text() == text && text.starts_with(fan_out)).then_some((name, kind))
    }

    fn text(&self) -> String {
        format!("{}.{}", self.address, self.number)
    }
}

/// Whether this is the name of a folder below `files`.
pub(super) fn is_fan_out(folder: &str) -> bool {
    folder.len() == 2 && folder.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The path at which the write of this number begins.
pub(super) fn incoming(number: u64) -> PathBuf {
    Path::new(INCOMING).join(number.to_string())
}

/// The path at which its tree begins.
pub(super) fn incoming_tree(number: u64) -> PathBuf {
    Path::new(INCOMING).join(format!("{number}.tree"))
}

/// The path at which a rebuilt tree begins.
pub(super) fn incoming_rebuild(number: u64, rebuild: u64) -> PathBuf {
    Path::new(INCOMING).join(format!("{number}.{rebuild}.tree"))
}

/// Whether this is the name of a file in `incoming`.
pub(super) fn is_incoming(file: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    match file.strip_suffix(".tree") {
        Some(text) => text.splitn(2, '.').all(is_number),
        None => is_number(file),
    }
}
