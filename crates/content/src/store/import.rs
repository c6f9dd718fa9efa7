//! Import: reads an archive, checks it, and adds its content to the store.
//!
//! Blobs and derivations are verified by their own addresses, and a derivation's inputs are in its bytes. An alias is
//! checked by the caller's function ([`Import::alias_of`]). A memo is a claim that nothing can verify but computing it
//! again: its output must be there and have its size, and it is taken only if the caller trusts the archive
//! ([`Import::trust_memos`]).

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::archive::{FRONT, OLD_FRONT, SALT, failed};
use super::catalogue::FoundData;
use super::counters::Kind;
use super::imported_names::{free_names, set_names};
use super::imports::{EntryKind, Manifest, keep_written};
use super::pipeline::Pipeline;
use super::quota::Claim;
use super::roots::check_name;
use super::{Core, Store};
use crate::facts::{Class, NameChange};
use crate::files::BlobWriter;
use crate::log::{Fact, HEADER, Header, Record};
use crate::{Address, Context, Derivation, Error, Value, Wait};

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// Computes the alias of a derivation, to check the aliases in an archive. Default none: an archive with aliases is
    /// refused.
    pub alias_of: Option<fn(&Derivation) -> Option<Address>>,
    /// Whether to take the archive's memos: claims about outputs, which cannot be verified. A memo that is in the store
    /// is never replaced. Default no: memos are checked and left out.
    pub trust_memos: bool,
    /// Decides whether a free name of the archive is skipped. Default none: all free names are set.
    pub skip_name: Option<fn(&str) -> bool>,
    /// A label for the list of imports, such as a file name; its first 255 bytes are kept. Default empty.
    pub label: String,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Blobs, derivations and memos in the archive.
    pub items: u64,
    /// Of those, the ones that were not in the store before.
    pub new: u64,
    /// Memos that were left out: the caller does not trust them, or the store has a memo of the same derivation.
    pub memos_left_out: u64,
    /// The archive's names.
    pub names: Vec<ImportedName>,
    /// The id in the list of imports ([`Store::imports`]); `None` if the archive was empty.
    pub id: Option<String>,
    /// Bytes read.
    pub bytes: u64,
}

/// A name in an archive that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedName {
    /// The name.
    pub name: String,
    /// The address it has in the archive.
    pub address: Address,
    /// The other address that the name has in this store, which it keeps.
    pub taken_by: Option<Address>,
    /// Whether the name was not set, because of [`Import::skip_name`].
    pub is_skipped: bool,
}

/// The most names in an archive.
const NAMES_MOST: usize = 100_000;

impl Store {
    /// Adds the content of an archive to the store, durably. Names that are free are set; others stay as they are. The
    /// import is a root, listed by [`Store::imports`], that holds its content until it is dropped. After an error, the
    /// records before it stay, and are listed as an import too. The import goes on if its future is dropped.
    pub async fn import(
        &self,
        from: impl Read + Send + 'static,
        terms: Import,
    ) -> Result<ImportReport, Error> {
        let result = self.in_turn(
            |turns| &turns.archiving,
            move |core| {
                let _under_way = core.imports.begin(core.now());
                let from = CountingReader { from: io::BufReader::with_capacity(256 << 10, from), at: 0 };
                let imported = ImportReport::default();
                let (in_flight, manifest) = (HashMap::new(), Manifest::new(core));
                ImportPass { core, terms, from, imported, in_flight, manifest }.run()
            },
        );
        self.inner.core.count(Kind::Import, result.await, |imported| Some(imported.bytes))
    }
}

struct ImportPass<'a, R: Read> {
    core: &'a Core,
    terms: Import,
    from: CountingReader<R>,
    imported: ImportReport,
    /// Blobs that are in flight to the log, with their lengths.
    in_flight: HashMap<Address, u64>,
    manifest: Manifest<'a>,
}

/// The most blobs that are remembered as in flight.
const IN_FLIGHT_MOST: usize = 4096;

/// A reader that counts its bytes.
struct CountingReader<R> {
    from: R,
    at: u64,
}

impl<R: Read> CountingReader<R> {
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

/// Contexts that begin so belonged to tables of stores of format 1, and no archive brings one in.
const RESERVED_CONTEXT: char = '#';

const WRONG_KIND: &str = "a record of a kind that archives do not have";

fn damaged(at: u64, what: &str) -> Error {
    Error::Archive { at, what: what.to_owned() }
}

impl<R: Read> ImportPass<'_, R> {
    fn run(mut self) -> Result<ImportReport, Error> {
        let mut writes = Pipeline::new(self.core);
        let read = self.read(&mut writes);
        // After an error too: until they are written, the quota does not count the records in flight, and the manifest
        // below must not take their room.
        let written = writes.settle();
        let read = read.and(written).and_then(|new| {
            self.imported.new += new;
            self.check_names()
        });
        self.imported.bytes = self.from.at;
        let ImportPass { core, terms, mut imported, manifest, .. } = self;
        let _recording = core.imports.recording();
        let free = read.and_then(|()| free_names(core, &mut imported.names, terms.skip_name));
        let kept = manifest.keep(&terms.label, free.as_ref().ok());
        let (free, kept) = (free?, kept?);
        imported.id = kept;
        set_names(core, &mut imported.names, &free)?;
        Ok(imported)
    }

    fn read(&mut self, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        let front = self.from.bytes(FRONT.len())?;
        if front != FRONT && front != OLD_FRONT {
            return Err(damaged(0, "this is not an archive, or not one of this version"));
        }
        loop {
            let at = self.from.at;
            match self.from.record()?.fact {
                Fact::Name { name, history } if history.is_empty() => {
                    if name == format!("{} things", self.imported.items) {
                        return Ok(());
                    }
                    return Err(damaged(at, "an end that does not count the records before it"));
                }
                Fact::Name { name, history } if front == FRONT => self.name(at, name, &history)?,
                Fact::File { address, len, .. } => self.large(at, address, len, writes)?,
                fact => self.small(at, fact, writes)?,
            }
        }
    }

    /// Checks that the archive's names lead to something, and that each is there once.
    fn check_names(&self) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for it in &self.imported.names {
            if !seen.insert(&it.name) {
                return Err(damaged(self.from.at, "a name that is there twice"));
            }
            if matches!(self.core.catalogue.find(&it.address, Wait::Yes)?, FoundData::Nothing) {
                return Err(damaged(self.from.at, "a name whose address is missing"));
            }
        }
        Ok(())
    }

    /// A name, which is set once the whole archive is imported.
    fn name(&mut self, at: u64, name: String, history: &[NameChange]) -> Result<(), Error> {
        let [NameChange { address: Some(address), .. }] = *history else {
            return Err(damaged(at, "a name that does not have one address"));
        };
        if check_name(&name).is_err() || name.parse::<Address>().is_ok() {
            return Err(damaged(at, "a text that is not allowed as a name"));
        }
        if self.imported.names.len() == NAMES_MOST {
            return Err(damaged(at, "more than 100,000 names"));
        }
        self.imported.names.push(ImportedName { name, address, taken_by: None, is_skipped: false });
        Ok(())
    }

    /// A blob in a file.
    fn large(&mut self, at: u64, address: Address, len: u64, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        let _wanted = self.core.guard.want(vec![address]);
        // A blob that can never fit is refused at once. Its bytes claim room as they arrive, because the length is only
        // the archive's word.
        drop(self.core.claim_blocking(len)?);
        let new = self.file(at, address, len)?;
        if !new {
            self.refresh(&address, writes)?;
        }
        self.imported.new += u64::from(new);
        self.imported.items += 1;
        self.manifest.add(EntryKind::Blob, &address)
    }

    /// A blob, derivation or memo in a record.
    fn small(&mut self, at: u64, fact: Fact, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        self.check(at, &fact)?;
        self.touch(&fact);
        let claim = self.core.claim_blocking(fact.size_hint() as u64)?;
        match &fact {
            Fact::Blob { address, bytes } => {
                self.refresh(address, writes)?;
                self.note_in_flight(*address, bytes.len() as u64, writes)?;
                self.manifest.add(EntryKind::Blob, address)?;
                writes.write(fact, Class::Acknowledged, claim)?;
            }
            Fact::Memo { derivation, output, size, .. } => {
                self.check_output(at, output, *size)?;
                let is_free = self.core.catalogue.memo(derivation, Wait::Yes)?.is_none();
                if self.terms.trust_memos && is_free {
                    self.manifest.add(EntryKind::Memo, derivation)?;
                    self.manifest.add(EntryKind::Output, output)?;
                    writes.write_if_free(fact, Class::Acknowledged, claim)?;
                } else {
                    self.imported.memos_left_out += 1;
                }
            }
            Fact::Derivation { address, .. } => {
                self.manifest.add(EntryKind::Derivation, address)?;
                writes.write(fact, Class::Acknowledged, claim)?;
            }
            _ => return Err(damaged(at, WRONG_KIND)),
        }
        self.imported.items += 1;
        Ok(())
    }

    fn note_in_flight(&mut self, address: Address, len: u64, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        if self.in_flight.len() >= IN_FLIGHT_MOST {
            writes.wait()?;
            self.in_flight.clear();
        }
        self.in_flight.insert(address, len);
        Ok(())
    }

    /// Checks that a memo's output is in the store or came before it in the archive, and has the memo's size.
    fn check_output(&self, at: u64, output: &Address, size: u64) -> Result<(), Error> {
        let len = match self.in_flight.get(output) {
            Some(len) => Some(*len),
            None => self.core.catalogue.stored_blob(output, Wait::Yes)?.map(|blob| blob.size()),
        };
        match len {
            None => Err(damaged(at, "a memo whose output is missing")),
            Some(len) if len != size => Err(damaged(at, "a memo whose size is not that of its output")),
            Some(_) => Ok(()),
        }
    }

    /// Makes a blob that is already in the store young again, as a put does.
    fn refresh(&self, address: &Address, writes: &mut Pipeline<'_>) -> Result<(), Error> {
        let blob = self.core.catalogue.stored_blob(address, Wait::Yes)?;
        match blob.filter(|blob| self.core.now().since(blob.at) >= self.core.config.touch_after) {
            Some(blob) => writes.write(Fact::Touch { address: *address }, blob.class, Claim::default()),
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
                if context.starts_with(RESERVED_CONTEXT) {
                    return Err(damaged(at, "a derivation of a reserved context"));
                }
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
            | Fact::Remove { .. } => return Err(damaged(at, WRONG_KIND)),
        };
        if holds { Ok(()) } else { Err(damaged(at, "bytes that do not have the address they claim")) }
    }

    /// Imports a large blob; returns whether it is new.
    fn file(&mut self, at: u64, address: Address, len: u64) -> Result<bool, Error> {
        let core = self.core;
        let number = core.next_file.fetch_add(1, Ordering::Relaxed);
        let mut writing = BlobWriter::begin(&core.files, number)?;
        let (mut left, mut claim) = (len, Claim::default());
        while left > 0 {
            let piece = self.from.bytes(left.min(512 << 10) as usize)?;
            claim.add(core.claim_blocking(piece.len() as u64)?);
            left -= piece.len() as u64;
            writing.write(&piece)?;
        }
        let written = writing.hash()?;
        if written.name.address != address {
            return Err(damaged(at, "bytes that do not have the address they claim"));
        }
        keep_written(core, written, number, claim)
    }
}
