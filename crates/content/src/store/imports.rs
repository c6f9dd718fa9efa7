//! Imports that are remembered: each is a root, which holds everything that its archive brought until it is dropped.
//!
//! The addresses of an import are listed in a blob, its manifest. A name of the store's own, whose text holds the id,
//! the counts and the label, leads to the manifest. An earlier address in its history leads to the list of the names
//! that the import sets.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use super::commit::{DoomedItem, Order, RemovalCondition};
use super::guard::WantedAddresses;
use super::imported_names::{ListedNames, drop_names, encode_names, listed_names};
use super::mark::touch_all;
use super::pipeline::Pipeline;
use super::put::UnsettledFile;
use super::quota::Claim;
use super::roots::RESERVED;
use super::tables::NameRow;
use super::{Core, Event, Store, lock};
use crate::facts::{Class, NameChange, RemovalReason, Time};
use crate::files::{BlobWriter, Durability, Name, WrittenBlob};
use crate::log::Fact;
use crate::{Address, Error, Wait};

/// An import in the list of imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportRecord {
    /// Its id: the beginning of its manifest's address. The same content has the same id.
    pub id: String,
    /// When it ended.
    pub at: Time,
    /// The caller's label, such as a file name.
    pub label: String,
    /// Blobs in the archive.
    pub blobs: u64,
    /// Derivations in the archive.
    pub derivations: u64,
    /// Memos that were taken from the archive.
    pub memos: u64,
    /// Whether the archive was read to its end.
    pub is_whole: bool,
}

/// The result of dropping an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedImport {
    /// The import.
    pub record: ImportRecord,
    /// Memos that were forgotten.
    pub memos: u64,
    /// Names that the import had set, and that were dropped.
    pub names: u64,
}

/// The longest label in bytes.
const LABEL_MOST: usize = 255;

/// The length of an id in hex digits.
const ID_LEN: usize = 12;

/// The kind of an entry of a manifest, its first byte; an address follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryKind {
    Blob = b'b',
    Derivation = b'd',
    /// The derivation of a memo that was taken; the entry after it is the output.
    Memo = b'm',
    Output = b'o',
}

impl EntryKind {
    fn of_byte(byte: u8) -> Option<EntryKind> {
        let all = [EntryKind::Blob, EntryKind::Derivation, EntryKind::Memo, EntryKind::Output];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

const ENTRY: usize = 33;

/// The number of entries read at once.
const STRIDE: u64 = 16384;

impl Store {
    /// All imports that were not dropped, oldest first.
    pub async fn imports(&self) -> Result<Vec<ImportRecord>, Error> {
        self.reading(|core| {
            let mut imports = Vec::new();
            for row in core.catalogue.names()? {
                imports.extend(record(&row?));
            }
            imports.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
            Ok(imports)
        })
        .await
    }

    /// The derivations of the memos that an import brought and that still have the output that it brought.
    pub async fn imported_memos(&self, id: &str) -> Result<Vec<Address>, Error> {
        let id = id.to_owned();
        self.reading(move |core| imported_memos(core, &id)).await
    }

    /// Drops an import by its id; `None` if there is none. The memos that it brought are forgotten, the names that it
    /// set are dropped if they still have its addresses, and its blobs and derivations are no longer held: a collection
    /// removes those that nothing else holds.
    pub async fn drop_import(&self, id: &str) -> Result<Option<DroppedImport>, Error> {
        let id = id.to_owned();
        self.in_turn(|turns| &turns.keeping, move |core| core.with_reserve(|| drop_import(core, &id))).await
    }
}

fn drop_import(core: &Core, id: &str) -> Result<Option<DroppedImport>, Error> {
    // An import with this id may be setting its names.
    let _recording = core.imports.recording();
    let mut dropped: Option<DroppedImport> = None;
    let mut rows = Vec::new();
    for row in core.catalogue.names()? {
        let row = row?;
        if let Some(record) = record(&row).filter(|record| record.id == id) {
            rows.push((row, record));
        }
    }
    for (row, record) in rows {
        let names = drop_names(core, &row)?;
        let memos = forget_memos(core, &row)?;
        let mut writes = Pipeline::new(core);
        writes.write(
            Fact::Name { name: row.name, history: Vec::new() },
            Class::Acknowledged,
            Claim::default(),
        )?;
        writes.settle()?;
        let before = dropped.map_or((0, 0), |dropped| (dropped.memos, dropped.names));
        dropped = Some(DroppedImport { record, memos: before.0 + memos, names: before.1 + names });
    }
    Ok(dropped)
}

fn imported_memos(core: &Core, id: &str) -> Result<Vec<Address>, Error> {
    let mut memos = Vec::new();
    for row in core.catalogue.names()? {
        let row = row?;
        if record(&row).is_none_or(|record| record.id != id) {
            continue;
        }
        let mut derivation = None;
        each_entry(core, &row, |kind, address| {
            match kind {
                EntryKind::Memo => derivation = Some(address),
                EntryKind::Output => {
                    let memo = derivation.take().map(|it| core.catalogue.memo(&it, Wait::Yes)).transpose()?;
                    memos.extend(memo.flatten().filter(|it| it.output == address).map(|it| it.derivation));
                }
                EntryKind::Blob | EntryKind::Derivation => {}
            }
            Ok(())
        })?;
    }
    Ok(memos)
}

/// Removes the memos that an import brought and that still have the output that it brought; returns how many.
fn forget_memos(core: &Core, row: &NameRow) -> Result<u64, Error> {
    core.wait_for_pending()?;
    let (mut doomed, mut forgotten, mut derivation) = (Vec::new(), 0, None);
    let remove = |doomed: Vec<_>| -> Result<u64, Error> {
        let removed = core.submit_blocking(Order::Remove(RemovalReason::Invalidated, doomed))?.removed;
        Ok(removed.len() as u64)
    };
    each_entry(core, row, |kind, address| {
        match kind {
            EntryKind::Memo => derivation = Some(address),
            EntryKind::Output => {
                let found =
                    derivation.take().map(|it| core.catalogue.stored_memo(&it)).transpose()?.flatten();
                if let Some((row, _)) = found.filter(|(row, _)| row.memo.output == address) {
                    doomed.push(vec![DoomedItem {
                        removed: core.doom_memo(&row)?,
                        when: RemovalCondition::Always,
                    }]);
                }
            }
            EntryKind::Blob | EntryKind::Derivation => {}
        }
        if doomed.len() == 256 {
            forgotten += remove(std::mem::take(&mut doomed))?;
        }
        Ok(())
    })?;
    forgotten += remove(doomed)?;
    if forgotten > 0 {
        core.tell(&Event::Removed { count: forgotten as usize, why: RemovalReason::Invalidated });
    }
    Ok(forgotten)
}

/// Parses the import that one of the store's own names describes.
pub(super) fn record(row: &NameRow) -> Option<ImportRecord> {
    let mut words = row.name.strip_prefix(RESERVED)?.strip_prefix("import ")?.splitn(6, ' ');
    let id = words.next()?.to_owned();
    let mut number = || words.next()?.parse().ok();
    let (blobs, derivations, memos) = (number()?, number()?, number()?);
    let is_whole = words.next()? == "whole";
    let label = words.next()?.to_owned();
    Some(ImportRecord { id, at: row.history.last()?.at, label, blobs, derivations, memos, is_whole })
}

/// Calls a function with each entry of an import's manifest. A name that is not an import's has none.
pub(super) fn each_entry(
    core: &Core,
    row: &NameRow,
    mut each: impl FnMut(EntryKind, Address) -> Result<(), Error>,
) -> Result<(), Error> {
    let manifest = record(row).and(row.history.last()).and_then(|last| last.address);
    let Some(manifest) = manifest else { return Ok(()) };
    let (mut offset, stride) = (0, STRIDE * ENTRY as u64);
    loop {
        let Some(bytes) = core.load_range(&manifest, &(offset..offset + stride), Wait::Yes)? else {
            return Ok(());
        };
        for entry in bytes.as_chunks::<ENTRY>().0 {
            let [kind, address @ ..] = entry;
            if let Some(kind) = EntryKind::of_byte(*kind) {
                each(kind, Address::from_bytes(*address))?;
            }
        }
        offset += bytes.len() as u64;
        if (bytes.len() as u64) < stride {
            return Ok(());
        }
    }
}

/// Whether an import holds one of these addresses.
pub(super) fn holds(core: &Core, row: &NameRow, addresses: &[Address]) -> Result<bool, Error> {
    let mut is_held = row.history.iter().any(|it| it.address.is_some_and(|it| addresses.contains(&it)));
    each_entry(core, row, |_, address| {
        is_held |= addresses.contains(&address);
        Ok(())
    })?;
    Ok(is_held)
}

/// The manifest of an import that is being read.
pub(super) struct Manifest<'a> {
    core: &'a Core,
    list: List<'a>,
    blobs: u64,
    derivations: u64,
    memos: u64,
}

impl<'a> Manifest<'a> {
    pub(super) fn new(core: &'a Core) -> Manifest<'a> {
        Manifest { core, list: List::new(core), blobs: 0, derivations: 0, memos: 0 }
    }

    pub(super) fn add(&mut self, kind: EntryKind, address: &Address) -> Result<(), Error> {
        match kind {
            EntryKind::Blob => self.blobs += 1,
            EntryKind::Derivation => self.derivations += 1,
            EntryKind::Memo => self.memos += 1,
            EntryKind::Output => {}
        }
        self.list.add(&[kind as u8])?;
        self.list.add(address.as_bytes())
    }

    /// Writes the manifest, the list of the names that the import is about to set, and the name that leads to both;
    /// returns the import's id. `names` is `None` for an archive that was not read to its end. An import without any
    /// content is not remembered. Called while the caller holds [`ImportsUnderWay::recording`].
    pub(super) fn keep(self, label: &str, names: Option<&ListedNames>) -> Result<Option<String>, Error> {
        let Manifest { core, list, blobs, derivations, memos } = self;
        if blobs + derivations + memos == 0 && names.is_none_or(ListedNames::is_empty) {
            return Ok(None);
        }
        let (address, _wanted) = list.keep()?;
        let id = address.to_string()[..ID_LEN].to_owned();
        let state = if names.is_some() { "whole" } else { "part" };
        let name =
            format!("{RESERVED}import {id} {blobs} {derivations} {memos} {state} {}", clean_label(label));
        // The same import again: the names that it set the first time stay its own.
        let before = core.catalogue.name(&name, Wait::Yes)?;
        let mut listed = before.map(|row| listed_names(core, &row)).transpose()?.unwrap_or_default();
        listed.extend(names.into_iter().flatten().map(|(name, change)| (name.clone(), *change)));
        let listed = match listed.is_empty() {
            true => None,
            false => {
                let mut list = List::new(core);
                list.add(&encode_names(listed))?;
                Some(list.keep()?)
            }
        };
        let names = listed.as_ref().map(|(names, _wanted)| *names);
        let change = |address| NameChange { address: Some(address), at: core.now() };
        let history: Vec<_> = names.into_iter().chain([address]).map(change).collect();
        let fact = Fact::Name { name: name.clone(), history: history.clone() };
        let claim = core.claim_blocking(fact.size_hint() as u64)?;
        let mut writes = Pipeline::new(core);
        writes.write(fact, Class::Acknowledged, claim)?;
        writes.settle()?;
        if core.guard.is_collecting() {
            let place = crate::log::RecordPlace { segment: 0, offset: 0, len: 0 };
            let mut addresses = Vec::new();
            each_entry(core, &NameRow { place, name, history }, |_, address| {
                addresses.push(address);
                Ok(())
            })?;
            touch_all(core, addresses)?;
        }
        Ok(Some(id))
    }
}

/// A blob that is written piece by piece on a thread that may block: a file once it is too long to be packed.
struct List<'a> {
    core: &'a Core,
    /// The bytes that are not in the file.
    buffer: Vec<u8>,
    file: Option<(BlobWriter, u64)>,
}

impl<'a> List<'a> {
    fn new(core: &'a Core) -> List<'a> {
        List { core, buffer: Vec::new(), file: None }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > self.core.config.packed_most {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.file.is_none() {
            let number = self.core.next_file.fetch_add(1, Ordering::Relaxed);
            self.file = Some((BlobWriter::begin(&self.core.files, number)?, number));
        }
        if let Some((file, _)) = &mut self.file {
            file.write(&self.buffer)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Stores the blob, durably. No collection removes it until the name that leads to it is written.
    fn keep(mut self) -> Result<(Address, WantedAddresses<'a>), Error> {
        let core = self.core;
        if self.file.is_some() {
            self.flush()?;
        }
        let Some((file, number)) = self.file.take() else {
            let bytes = Bytes::from(std::mem::take(&mut self.buffer));
            let address = Address::of(&bytes);
            let wanted = core.guard.want(vec![address]);
            let fact = Fact::Blob { address, bytes };
            let claim = core.claim_blocking(fact.size_hint() as u64)?;
            let mut writes = Pipeline::new(core);
            writes.write(fact, Class::Acknowledged, claim)?;
            writes.settle()?;
            return Ok((address, wanted));
        };
        let written = file.hash()?;
        let address = written.name.address;
        let wanted = core.guard.want(vec![address]);
        let claim = core.claim_blocking(written.len)?;
        keep_written(core, written, number, claim)?;
        Ok((address, wanted))
    }
}

/// The running imports.
#[derive(Debug, Default)]
pub(super) struct ImportsUnderWay {
    /// Their start times. The manifest, which holds the records of an import, is written last: until then, a collection
    /// must spare them.
    began: Mutex<Vec<Time>>,
    /// Held while the record of an import is read and written again, and while its names are set or dropped.
    recording: Mutex<()>,
}

impl ImportsUnderWay {
    /// Records the start of an import, which is running until the returned guard is dropped.
    pub(super) fn begin(&self, at: Time) -> ImportUnderWay<'_> {
        lock(&self.began).push(at);
        ImportUnderWay { all: self, at }
    }

    /// Waits for a turn to change the records of imports and the names that belong to them, on a thread that may block.
    pub(super) fn recording(&self) -> MutexGuard<'_, ()> {
        lock(&self.recording)
    }

    /// The grace period that spares all records of these imports too. A record that an import met in the store is at
    /// most `touch_after` older than the import.
    pub(super) fn spare(&self, grace: Duration, now: Time, touch_after: Duration) -> Duration {
        let first = lock(&self.began).iter().min().copied();
        let spared = first.map(|first| now.since(first) + touch_after + Duration::from_millis(1));
        spared.map_or(grace, |spared| spared.max(grace))
    }
}

pub(super) struct ImportUnderWay<'a> {
    all: &'a ImportsUnderWay,
    at: Time,
}

impl Drop for ImportUnderWay<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.all.began);
        if let Some(place) = all.iter().position(|at| *at == self.at) {
            all.swap_remove(place);
        }
    }
}

/// Puts a file in place and writes its record, in the room of this claim; returns whether it is new.
pub(super) fn keep_written(
    core: &Core,
    written: WrittenBlob,
    number: u64,
    claim: Claim,
) -> Result<bool, Error> {
    let (address, len) = (written.name.address, written.len);
    let unsettled = UnsettledFile(core);
    written.keep(Durability::Now)?;
    let mut write = Pipeline::new(core);
    write.write(Fact::File { address, number, len }, Class::Acknowledged, claim)?;
    let new = write.settle()? > 0;
    std::mem::forget(unsettled);
    if !new {
        core.background.orphans(vec![Name { address, number }]);
    }
    Ok(new)
}

/// A label as a name may have it: one line of limited length.
fn clean_label(label: &str) -> String {
    let mut clean = String::new();
    for character in label.chars().map(|it| if it.is_control() { ' ' } else { it }) {
        if clean.len() + character.len_utf8() > LABEL_MOST {
            break;
        }
        clean.push(character);
    }
    clean
}
