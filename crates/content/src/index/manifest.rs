//! The manifest: the file that names the runs of the index, and the log position up to which they cover the log.

use std::cmp::Reverse;

use super::LogCoverage;
use super::error::{DecodeFailure, Error};
use super::home::{Home, Name};
use crate::Wait;
use crate::fields::FieldReader;
use crate::log::Position;

const MAGIC: [u8; 8] = *b"manifest";
const VERSION: u32 = 1;

/// The longest note.
pub(crate) const NOTE_MOST: usize = 64 << 20;

/// The longest manifest: a longer file is not read.
const MANIFEST_MOST: u64 = 96 << 20;

/// The runs of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) covered: LogCoverage,
    /// Newest first.
    pub(super) runs: Vec<ListedRun>,
}

/// A run that a manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedRun {
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
        bytes.extend_from_slice(&self.covered.position.segment.to_le_bytes());
        bytes.extend_from_slice(&self.covered.position.offset.to_le_bytes());
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

    pub(super) fn decode(bytes: &[u8]) -> Result<Manifest, DecodeFailure> {
        let (rest, crc) = bytes.split_last_chunk().ok_or(DecodeFailure("it is too short"))?;
        if u32::from_le_bytes(*crc) != crc32fast::hash(rest) {
            return Err(DecodeFailure("it changed"));
        }
        let mut take = FieldReader(rest);
        if take.array() != Some(MAGIC) {
            return Err(DecodeFailure("it is not a manifest"));
        }
        if take.u32() != Some(VERSION) {
            return Err(DecodeFailure("its version is unknown"));
        }
        let (position, runs) = take_runs(&mut take).ok_or(DecodeFailure("it ends early"))?;
        if !runs.is_sorted_by(|run: &ListedRun, next| run.age() < next.age()) {
            return Err(DecodeFailure("its runs are out of order"));
        }
        Ok(Manifest { covered: LogCoverage { position, note: take.rest().to_owned() }, runs })
    }
}

/// The log position, and a count with that many runs.
fn take_runs(take: &mut FieldReader<'_>) -> Option<(Position, Vec<ListedRun>)> {
    let position = Position { segment: take.u32()?, offset: take.u64()? };
    let mut runs = Vec::new();
    // The count may be wrong: nothing is allocated ahead for it.
    for _ in 0..take.u32()? {
        runs.push(ListedRun::take(take)?);
    }
    Some((position, runs))
}

impl ListedRun {
    fn take(take: &mut FieldReader<'_>) -> Option<ListedRun> {
        Some(ListedRun {
            level: take.u8()?,
            number: take.u64()?,
            bytes: take.u64()?,
            entries: take.u64()?,
            footer_crc: take.u32()?,
        })
    }

    /// Orders runs from the newest to the oldest.
    pub(super) fn age(&self) -> (u8, Reverse<u64>) {
        (self.level, Reverse(self.number))
    }
}
