//! The file that says which runs are the index, and how much of the log they cover.

use std::cmp::Reverse;

use super::Covered;
use super::error::{Error, Malformed};
use super::home::{Home, Name};
use super::span::{take, take_u32, take_u64};
use crate::Wait;

const MAGIC: [u8; 8] = *b"manifest";
const VERSION: u32 = 1;

/// The longest note.
pub(crate) const NOTE_MOST: usize = 64 << 20;

/// The longest manifest: no more is read of a file that claims to be one.
const MANIFEST_MOST: u64 = 96 << 20;

/// What an index is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) covered: Covered,
    /// Newest first.
    pub(super) runs: Vec<Listed>,
}

/// A run that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) number: u64,
    /// Runs of a lower level are newer; in one level, those with a higher number.
    pub(super) level: u8,
    /// The file's length.
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) footer_crc: u32,
}

impl Manifest {
    /// Reads the manifest with this number.
    pub(super) fn read(home: &Home, number: u64) -> Result<Manifest, Error> {
        let file = home.open(Name::Manifest(number))?;
        if file.len > MANIFEST_MOST {
            return Err(file.damaged("it is too long"));
        }
        let mut bytes = Vec::new();
        file.read_raw(0, file.len as usize, Wait::Yes, &mut bytes)?;
        Manifest::decode(&bytes).map_err(file.malformed())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.covered.position.0.to_le_bytes());
        bytes.extend_from_slice(&self.covered.position.1.to_le_bytes());
        bytes.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
        for run in &self.runs {
            bytes.push(run.level);
            for number in [run.number, run.bytes, run.entries] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&run.footer_crc.to_le_bytes());
        }
        bytes.extend_from_slice(&self.covered.note);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Manifest, Malformed> {
        let (mut rest, crc) = bytes.split_last_chunk().ok_or(Malformed("it is too short"))?;
        if u32::from_le_bytes(*crc) != crc32fast::hash(rest) {
            return Err(Malformed("it changed"));
        }
        if take(&mut rest)? != MAGIC {
            return Err(Malformed("it is no manifest"));
        }
        if take_u32(&mut rest)? != VERSION {
            return Err(Malformed("its version is unknown"));
        }
        let position = (take_u32(&mut rest)?, take_u64(&mut rest)?);
        let mut runs = Vec::new();
        for _ in 0..take_u32(&mut rest)? {
            runs.push(take_listed(&mut rest)?);
        }
        if !runs.is_sorted_by(|run: &Listed, next| run.age() < next.age()) {
            return Err(Malformed("its runs are out of order"));
        }
        Ok(Manifest { covered: Covered { position, note: rest.to_owned() }, runs })
    }
}

fn take_listed(bytes: &mut &[u8]) -> Result<Listed, Malformed> {
    let [level] = take(bytes)?;
    Ok(Listed {
        level,
        number: take_u64(bytes)?,
        bytes: take_u64(bytes)?,
        entries: take_u64(bytes)?,
        footer_crc: take_u32(bytes)?,
    })
}

impl Listed {
    /// Orders runs from the newest to the oldest.
    pub(super) fn age(&self) -> (u8, Reverse<u64>) {
        (self.level, Reverse(self.number))
    }
}
