//! Export and import: addresses with everything that they lead to, as one stream of bytes.
//!
//! An archive is a line that names the format, records as in the log (each large blob's bytes after its record), and a
//! last record with their number. Blobs and derivations are verified by their own addresses, and a derivation's inputs
//! are in its bytes. An alias is checked by the caller's function ([`Import::alias_of`]). Memos are not verified.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::counters::Kind;
use super::pipeline::Pipeline;
use super::put::Unsettled;
use super::tables::Home;
use super::{Core, Store};
use crate::facts::Class;
use crate::files::{Durability, Name, Reading, Writing};
use crate::log::{Fact, HEADER, Header, Record, Salt};
use crate::{Address, Context, Derivation, Error, Value, Wait};

const FRONT: &[u8] = b"anabranch archive 1\n";

/// An archive has no salt: readers never search it for the next record.
const SALT: Salt = Salt(0);

/// Options of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct Import {
    /// Computes the alias of a derivation, to check the aliases in an archive. Default none: an archive with aliases is
    /// refused.
    pub alias_of: Option<fn(&Derivation) -> Option<Address>>,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Blobs.
    pub blobs: u64,
    /// Derivations.
    pub derivations: u64,
    /// Memos.
    pub memos: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Addresses that the export needed and that are not in the store.
    pub missing: Vec<Address>,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Blobs, derivations and memos in the archive.
    pub things: u64,
    /// Of those, the ones that were not in the store before.
    pub new: u64,
    /// Bytes read.
    pub bytes: u64,
}

impl Store {
    /// Writes addresses to an archive, with their inputs and outputs, and the inputs and outputs of those.
    pub async fn export(
        &self,
        addresses: &[Address],
        to: impl Write + Send + 'static,
    ) -> Result<Exported, Error> {
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
                    exported: Exported::default(),
                }
                .run(addresses)
            },
        );
        let result = result.await;
        self.inner.core.count(Kind::Export, result, |exported| Some(exported.bytes))
    }

    /// Adds the content of an archive to the store, durably. After an error, the records before it stay.
    pub async fn import(&self, from: impl Read + Send + 'static, terms: Import) -> Result<Imported, Error> {
        let result = self.in_turn(
            |turns| &turns.archiving,
            move |core| {
                let from = Counted { from: io::BufReader::with_capacity(256 << 10, from), at: 0 };
                Importing { core, terms, from, imported: Imported::default(), in_flight: HashSet::new() }
                    .run()
            },
        );
        let result = result.await;
        self.inner.core.count(Kind::Import, result, |imported| Some(imported.bytes))
    }
}

struct Export<'a, W: Write> {
    core: &'a Core,
    to: io::BufWriter<W>,
    seen: HashSet<Address>,
    /// Blobs that are in the archive.
    written: HashSet<Address>,
    exported: Exported,
}

impl<W: Write> Export<'_, W> {
    fn run(mut self, addresses: Vec<Address>) -> Result<Exported, Error> {
        self.give(FRONT)?;
        let mut stack = addresses;
        stack.reverse();
        while let Some(address) = stack.pop() {
            if self.seen.insert(address) {
                self.address(&address, &mut stack)?;
            }
        }
        let Exported { blobs, derivations, memos, .. } = self.exported;
        let history = Vec::new();
        let end = Fact::Name { name: format!("{} things", blobs + derivations + memos), history };
        self.record(end)?;
        self.to.flush().map_err(|cause| failed("write", cause))?;
        Ok(self.exported)
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
                let reading = Reading::open(&self.core.files, name, len);
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

    fn file(&mut self, reading: &Reading, address: Address, len: u64) -> Result<(), Error> {
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

fn failed(doing: &'static str, cause: io::Error) -> Error {
    Error::disk(doing, std::path::Path::new("the archive"), cause)
}

struct Importing<'a, R: Read> {
    core: &'a Core,
    terms: Import,
    from: Counted<R>,
    imported: Imported,
    /// Blobs that are in flight to the log.
    in_flight: HashSet<Address>,
}

/// The most blobs that are remembered as in flight.
const IN_FLIGHT_MOST: usize = 4096;

/// A reader that counts its bytes.
struct Counted<R> {
    from: R,
    at: u64,
}

impl<R: Read> Counted<R> {
    fn bytes(&mut self, count: usize) -> Result<Bytes, Error> {
        let mut bytes = vec![0; count];
        self.from.read_exact(&mut bytes).map_err(|cause| match cause.kind() {
            io::ErrorKind::UnexpectedEof => damaged(self.at, "it ends here"),
            _ => failed("read", cause),
        })?;
        self.at += count as u64;
        Ok(bytes.into())
    }

    /// Reads the next record; its length is checked before any memory is allocated for it.
    fn record(&mut self) -> Result<Record, Error> {
        let at = self.at;
        let header =
            Header::decode(SALT, &self.bytes(HEADER)?).ok_or_else(|| damaged(at, "no record begins here"))?;
        let body = self.bytes(header.len)?;
        Record::decode(&header, &body).ok_or_else(|| damaged(at, "the record that begins here is damaged"))
    }
}

fn damaged(at: u64, what: &str) -> Error {
    Error::Archive { at, what: what.to_owned() }
}

impl<R: Read> Importing<'_, R> {
    fn run(mut self) -> Result<Imported, Error> {
        if self.from.bytes(FRONT.len())? != FRONT {
            return Err(damaged(0, "this is not an archive, or not one of this version"));
        }
        let mut writes = Pipeline::new(self.core);
        loop {
            let at = self.from.at;
            match self.from.record()?.fact {
                Fact::Name { name, .. } if name == format!("{} things", self.imported.things) => break,
                Fact::File { address, len, .. } => {
                    let _wanted = self.core.guard.want(vec![address]);
                    self.core.room_for_blocking(writes.in_flight() + len)?;
                    let new = self.file(at, address, len)?;
                    if !new {
                        self.refresh(&address, &mut writes)?;
                    }
                    self.imported.new += u64::from(new);
                }
                fact => {
                    self.check(at, &fact)?;
                    self.touch(&fact);
                    self.core.room_for_blocking(writes.in_flight() + fact.size_hint() as u64)?;
                    match &fact {
                        Fact::Blob { address, .. } => {
                            self.refresh(address, &mut writes)?;
                            self.note_in_flight(*address, &mut writes)?;
                        }
                        Fact::Memo { output, .. } => self.check_output(at, output)?,
                        _ => {}
                    }
                    writes.write(fact, Class::Acknowledged)?;
                }
            }
            self.imported.things += 1;
        }
        self.imported.new += writes.settle()?;
        self.imported.bytes = self.from.at;
        Ok(self.imported)
    }

    fn note_in_flight(&mut self, address: Address, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        if self.in_flight.len() >= IN_FLIGHT_MOST {
            writes.wait()?;
            self.in_flight.clear();
        }
        self.in_flight.insert(address);
        Ok(())
    }

    /// Checks that a memo's output is in the store or came before it in the archive.
    fn check_output(&self, at: u64, output: &Address) -> Result<(), Error> {
        let is_there =
            self.in_flight.contains(output) || self.core.catalogue.stored_blob(output, Wait::Yes)?.is_some();
        if is_there { Ok(()) } else { Err(damaged(at, "a memo whose output is missing")) }
    }

    /// Makes a blob that is already in the store young again, as a put does.
    fn refresh(&self, address: &Address, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        let blob = self.core.catalogue.stored_blob(address, Wait::Yes)?;
        match blob.filter(|blob| self.core.now().since(blob.at) >= self.core.config.touch_after) {
            Some(blob) => writes.write(Fact::Touch { address: *address }, blob.class),
            None => Ok(()),
        }
    }

    /// Protects the addresses of a fact from the current collection, even if they are already in the store.
    fn touch(&self, fact: &Fact) {
        match fact {
            Fact::Blob { address, .. } | Fact::Derivation { address, .. } => {
                self.core.guard.touch(address);
            }
            Fact::Memo { derivation, output, .. } => {
                self.core.guard.touch(derivation);
                self.core.guard.touch(output);
            }
            _ => {}
        }
    }

    /// Checks a fact against its address.
    fn check(&self, at: u64, fact: &Fact) -> Result<(), Error> {
        let holds = match fact {
            Fact::Blob { address, bytes } => Address::of(bytes) == *address,
            Fact::Derivation { address, alias, context, bytes } => {
                let inputs = Value::addresses_in(bytes)
                    .map_err(|_| damaged(at, "a description that is not a canonical encoding"))?;
                let alias_of = self.terms.alias_of.unwrap_or(|_| None);
                let (context, bytes) = (context.clone(), bytes.clone());
                let derivation = Derivation { address: *address, alias: *alias, context, bytes, inputs };
                if alias.is_some_and(|alias| alias_of(&derivation) != Some(alias)) {
                    return Err(damaged(at, "an alias that is not the derivation's"));
                }
                Address::derive(Context(&derivation.context), &derivation.bytes) == *address
            }
            Fact::Memo { .. } => true,
            Fact::File { .. }
            | Fact::Touch { .. }
            | Fact::Pin { .. }
            | Fact::Unpin { .. }
            | Fact::Name { .. }
            | Fact::Remove { .. } => return Err(damaged(at, "a record of a kind that archives do not have")),
        };
        if holds { Ok(()) } else { Err(damaged(at, "bytes that do not have the address they claim")) }
    }

    /// Imports a large blob; returns whether it is new.
    fn file(&mut self, at: u64, address: Address, len: u64) -> Result<bool, Error> {
        let core = self.core;
        let number = core.next_file.fetch_add(1, Ordering::Relaxed);
        let mut writing = Writing::begin(&core.files, number)?;
        let mut left = len;
        while left > 0 {
            let piece = self.from.bytes(left.min(512 << 10) as usize)?;
            left -= piece.len() as u64;
            writing.write(&piece)?;
        }
        let written = writing.hash()?;
        if written.name.address != address {
            return Err(damaged(at, "bytes that do not have the address they claim"));
        }
        let unsettled = Unsettled(core);
        written.keep(Durability::Now)?;
        let mut write = Pipeline::new(core);
        write.write(Fact::File { address, number, len }, Class::Acknowledged)?;
        let new = write.settle()? > 0;
        std::mem::forget(unsettled);
        if !new {
            core.background.orphans(vec![Name { address, number }]);
        }
        Ok(new)
    }
}
