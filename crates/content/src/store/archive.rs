//! Export and import: addresses with everything that they lead to, as one stream of bytes.
//!
//! An archive is a line that names the format, records as in the log (each large blob's bytes after its record), and a
//! last record with their number. In format 2, names stand between these and the last record. This module writes
//! archives; `import` reads them.

use std::collections::HashSet;
use std::io::{self, Write};

use super::counters::Kind;
use super::roots::is_reserved;
use super::tables::Home;
use super::{Core, Store};
use crate::facts::{Class, NameChange};
use crate::files::{BlobReader, Name};
use crate::log::{Fact, Record, Salt};
use crate::{Address, Derivation, Error, Wait};

/// The first line of an archive, and that of archives without names.
pub(super) const FRONT: &[u8] = b"anabranch archive 2\n";
pub(super) const OLD_FRONT: &[u8] = b"anabranch archive 1\n";

/// An archive has no salt: readers never search it for the next record.
pub(super) const SALT: Salt = Salt(0);

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// Blobs.
    pub blobs: u64,
    /// Derivations.
    pub derivations: u64,
    /// Memos.
    pub memos: u64,
    /// Names, each of an address in the archive.
    pub names: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Addresses that the export needed and that are not in the store.
    pub missing: Vec<Address>,
}

impl Store {
    /// Writes addresses to an archive, with their inputs and outputs, the inputs and outputs of those, and the names that
    /// point to any of these.
    pub async fn export(
        &self,
        addresses: &[Address],
        to: impl Write + Send + 'static,
    ) -> Result<ExportReport, Error> {
        let addresses = addresses.to_vec();
        let result = self.in_turn(
            |turns| &turns.archiving,
            move |core| {
                core.wait_for_pending()?;
                let to = io::BufWriter::with_capacity(256 << 10, to);
                Export {
                    core,
                    to,
                    seen: HashSet::new(),
                    written: HashSet::new(),
                    exported: ExportReport::default(),
                }
                .run(addresses)
            },
        );
        let result = result.await;
        self.inner.core.count(Kind::Export, result, |exported| Some(exported.bytes))
    }
}

struct Export<'a, W: Write> {
    core: &'a Core,
    to: io::BufWriter<W>,
    seen: HashSet<Address>,
    /// Blobs that are in the archive.
    written: HashSet<Address>,
    exported: ExportReport,
}

impl<W: Write> Export<'_, W> {
    fn run(mut self, addresses: Vec<Address>) -> Result<ExportReport, Error> {
        self.give(FRONT)?;
        let mut stack = addresses;
        stack.reverse();
        while let Some(address) = stack.pop() {
            if self.seen.insert(address) {
                self.address(&address, &mut stack)?;
            }
        }
        self.names()?;
        let ExportReport { blobs, derivations, memos, .. } = self.exported;
        let history = Vec::new();
        // The format's word for items.
        let end = Fact::Name { name: format!("{} things", blobs + derivations + memos), history };
        self.record(end)?;
        self.to.flush().map_err(|cause| failed("write", cause))?;
        Ok(self.exported)
    }

    /// Writes the names that point to exported addresses, each with its present address.
    fn names(&mut self) -> Result<(), Error> {
        let missing: HashSet<Address> = self.exported.missing.iter().copied().collect();
        for row in self.core.catalogue.names()? {
            let row = row?;
            let Some(NameChange { address: Some(address), at }) = row.history.last().copied() else {
                continue;
            };
            let target = self.core.catalogue.alias(&address, Wait::Yes)?.unwrap_or(address);
            if !is_reserved(&row.name) && self.seen.contains(&target) && !missing.contains(&target) {
                let history = vec![NameChange { address: Some(address), at }];
                self.record(Fact::Name { name: row.name, history })?;
                self.exported.names += 1;
            }
        }
        Ok(())
    }

    fn address(&mut self, address: &Address, stack: &mut Vec<Address>) -> Result<(), Error> {
        let mut known = self.blob(address)?;
        if let Some(derivation) = self.core.catalogue.alias(address, Wait::Yes)? {
            known = true;
            stack.push(derivation);
        }
        if let Some(derivation) = self.core.derivation(address, Wait::Yes)? {
            known = true;
            stack.extend(derivation.inputs.iter().rev());
            let Derivation { alias, context, bytes, .. } = derivation;
            self.record(Fact::Derivation { address: *address, alias, context, bytes })?;
            self.exported.derivations += 1;
        }
        if let Some((row, _)) = self.core.catalogue.stored_memo(address)? {
            known = true;
            let memo = &row.memo;
            // An import refuses a memo whose output is missing, so the output goes first.
            if self.written.contains(&memo.output) || self.blob(&memo.output)? {
                self.seen.insert(memo.output);
                let inputs = self.core.memo_inputs(&row)?;
                stack.extend(inputs.iter().rev());
                let (output, size, cost) = (memo.output, memo.size, memo.cost);
                self.record(Fact::Memo { derivation: *address, output, size, cost, inputs })?;
                self.exported.memos += 1;
            }
        }
        if !known {
            self.exported.missing.push(*address);
        }
        Ok(())
    }

    /// Writes a blob, if it is there.
    fn blob(&mut self, address: &Address) -> Result<bool, Error> {
        let Some(blob) = self.core.catalogue.stored_blob(address, Wait::Yes)? else {
            return Ok(false);
        };
        match blob.home {
            Home::Packed => {
                let Some(bytes) = self.core.load(address, Wait::Yes)? else { return Ok(false) };
                self.record(Fact::Blob { address: *address, bytes })?;
            }
            Home::File { number, len } => {
                let name = Name { address: *address, number };
                let reading = BlobReader::open(&self.core.files, name, len);
                match reading.map(|reading| self.file(&reading, *address, len)) {
                    Ok(done) => done?,
                    Err(error) => {
                        self.core.file_failed(address, &blob, error)?;
                        return Ok(false);
                    }
                }
            }
        }
        self.exported.blobs += 1;
        self.written.insert(*address);
        Ok(true)
    }

    fn file(&mut self, reading: &BlobReader, address: Address, len: u64) -> Result<(), Error> {
        self.record(Fact::File { address, number: 0, len })?;
        let mut offset = 0;
        while offset < len {
            let piece = reading.read(offset..len.min(offset + (512 << 10)))?;
            offset += piece.len() as u64;
            self.give(&piece)?;
        }
        Ok(())
    }

    fn record(&mut self, fact: Fact) -> Result<(), Error> {
        let mut bytes = Vec::new();
        Record { at: self.core.now(), class: Class::Acknowledged, fact }.encode(SALT, &mut bytes);
        self.give(&bytes)
    }

    fn give(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.exported.bytes += bytes.len() as u64;
        self.to.write_all(bytes).map_err(|cause| failed("write", cause))
    }
}

pub(super) fn failed(doing: &'static str, cause: io::Error) -> Error {
    Error::disk(doing, std::path::Path::new("the archive"), cause)
}
