//! Imports that are remembered: each is a root, which holds everything that its archive brought until it is dropped.
//!
//! The addresses of an import are listed in a blob, its manifest. A name of the store's own, whose text holds the id,
//! the counts and the label, leads to the manifest. An earlier address in its history leads to the list of the names
//! that the import set.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::commit::{DoomedItem, Order, When};
use super::imported_names::{drop_names, names_list};
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
        let _turn = core.names.blocking_turn();
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
                    doomed.push(vec![DoomedItem { removed: core.doom_memo(&row)?, when: When::Always }]);
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
    /// The entries that are not in the file.
    buffer: Vec<u8>,
    /// A manifest that is too long to be packed.
    file: Option<(BlobWriter, u64)>,
    blobs: u64,
    derivations: u64,
    memos: u64,
}

impl<'a> Manifest<'a> {
    pub(super) fn new(core: &'a Core) -> Manifest<'a> {
        Manifest { core, buffer: Vec::new(), file: None, blobs: 0, derivations: 0, memos: 0 }
    }

    pub(super) fn add(&mut self, kind: EntryKind, address: &Address) -> Result<(), Error> {
        match kind {
            EntryKind::Blob => self.blobs += 1,
            EntryKind::Derivation => self.derivations += 1,
            EntryKind::Memo => self.memos += 1,
            EntryKind::Output => {}
        }
        self.buffer.push(kind as u8);
        self.buffer.extend_from_slice(address.as_bytes());
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

    /// Writes the manifest and the name that leads to it. An import without any content is not remembered.
    pub(super) fn keep(mut self, label: &str, is_whole: bool) -> Result<Option<KeptImport>, Error> {
        if self.blobs + self.derivations + self.memos == 0 {
            return Ok(None);
        }
        let core = self.core;
        let mut writes = Pipeline::new(core);
        let (address, _wanted) = if self.file.is_some() {
            self.flush()?;
            let (file, number) = self.file.take().expect("checked above");
            let written = file.hash()?;
            let address = written.name.address;
            let wanted = core.guard.want(vec![address]);
            let claim = core.claim_blocking(written.len)?;
            keep_written(core, written, number, claim)?;
            (address, wanted)
        } else {
            let bytes = Bytes::from(std::mem::take(&mut self.buffer));
            let address = Address::of(&bytes);
            let wanted = core.guard.want(vec![address]);
            let fact = Fact::Blob { address, bytes };
            let claim = core.claim_blocking(fact.size_hint() as u64)?;
            writes.write(fact, Class::Acknowledged, claim)?;
            (address, wanted)
        };
        writes.wait()?;
        let id = address.to_string()[..ID_LEN].to_owned();
        let Manifest { blobs, derivations, memos, .. } = self;
        let state = if is_whole { "whole" } else { "part" };
        let name =
            format!("{RESERVED}import {id} {blobs} {derivations} {memos} {state} {}", clean_label(label));
        // The same import again: the names that it set the first time stay its own.
        let before = core.catalogue.name(&name, Wait::Yes)?;
        let names = before.as_ref().and_then(names_list);
        let change = |address| NameChange { address: Some(address), at: core.now() };
        let history: Vec<_> = names.into_iter().chain([address]).map(change).collect();
        let fact = Fact::Name { name: name.clone(), history: history.clone() };
        let claim = core.claim_blocking(fact.size_hint() as u64)?;
        writes.write(fact, Class::Acknowledged, claim)?;
        writes.settle()?;
        if core.guard.is_collecting() {
            let place = crate::log::Place { segment: 0, offset: 0, len: 0 };
            let mut addresses = Vec::new();
            each_entry(core, &NameRow { place, name: name.clone(), history }, |_, address| {
                addresses.push(address);
                Ok(())
            })?;
            touch_all(core, addresses)?;
        }
        Ok(Some(KeptImport { id, name }))
    }
}

/// An import that was recorded.
pub(super) struct KeptImport {
    pub id: String,
    /// The store's own name that leads to its manifest.
    pub name: String,
}

/// The start times of the running imports.
///
/// The manifest, which holds the records of an import, is written last. Until then, a collection must spare them.
#[derive(Debug, Default)]
pub(super) struct ImportsUnderWay(Mutex<Vec<Time>>);

impl ImportsUnderWay {
    /// Records the start of an import, which is running until the returned guard is dropped.
    pub(super) fn begin(&self, at: Time) -> ImportUnderWay<'_> {
        lock(&self.0).push(at);
        ImportUnderWay { all: self, at }
    }

    /// The grace period that spares all records of these imports too. A record that an import met in the store is at
    /// most `touch_after` older than the import.
    pub(super) fn spare(&self, grace: Duration, now: Time, touch_after: Duration) -> Duration {
        let first = lock(&self.0).iter().min().copied();
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
        let mut all = lock(&self.all.0);
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
