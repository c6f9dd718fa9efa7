//! Decides which records of a batch are written: against the index as it will be ([`super::overlay`]), not as it is.

use super::commit::{Answer, DoomedItem, Followup, RemovalCondition, RemovalGroup, Writer};
use super::derivations::EncodedDerivation;
use super::derived::DerivedValue;
use super::overlay::removed_key;
use super::tables::{
    AliasRow, Blob, DerivationRow, GoneRow, Home, MemoRow, NameRow, PinRow, Row, Table, name_key,
};
use crate::facts::{Class, Memo, RemovalReason, Time};
use crate::index::Key;
use crate::log::{Fact, ItemKind, ItemRemoval, Record, RecordPlace};
use crate::{Address, Error};

/// A record of removals is full at this many bytes: far below the limit of a record, even with one more item.
const REMOVED_MOST: usize = 4 << 20;

/// The most bytes of an item in such a record, without its edges.
const ITEM_MOST: usize = 80;

/// The decision about a record that a caller wants to write.
enum Admission {
    /// Write it.
    Write,
    /// Write nothing: its fact is already in the store.
    Present,
    /// The blob is in the log already: write only its new class and time.
    Touch(Address),
}

impl Writer {
    /// Adds a record to the batch, unless its fact is already in the store.
    pub(super) fn admit(&mut self, record: &mut Record, crc: Option<u32>) -> Result<Answer, Error> {
        self.overlay.prepare(&self.core.catalogue, &record.fact)?;
        match self.judge(record)? {
            Admission::Present => Ok(Answer::default()),
            Admission::Touch(address) => {
                self.enter(Record { fact: Fact::Touch { address }, ..*record }, None);
                Ok(Answer::default())
            }
            Admission::Write => {
                self.enter(record.take(), crc);
                Ok(Answer { written: true, ..Answer::default() })
            }
        }
    }

    /// Adds a memo to the batch, unless its derivation has one.
    pub(super) fn admit_if_free(&mut self, memo: &mut Record) -> Result<Answer, Error> {
        self.overlay.prepare(&self.core.catalogue, &memo.fact)?;
        match &memo.fact {
            Fact::Memo { derivation, .. } if self.overlay.is_there(&Table::Memo.key(derivation)) => {
                Ok(Answer::default())
            }
            _ => self.admit(memo, None),
        }
    }

    fn judge(&mut self, record: &mut Record) -> Result<Admission, Error> {
        let present = |is_present| if is_present { Admission::Present } else { Admission::Write };
        Ok(match &record.fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                let key = Table::Blob.key(address);
                match self.overlay.row::<Blob>(&key) {
                    Some(blob) if blob.class >= record.class && self.is_recent(&key, blob.at, record.at) => {
                        Admission::Present
                    }
                    // A file that was not synced may be torn, so its class is never raised: the caller has a good
                    // copy, which is written instead.
                    Some(blob) if blob.class >= record.class || blob.home == Home::Packed => {
                        Admission::Touch(*address)
                    }
                    _ => Admission::Write,
                }
            }
            Fact::Derivation { address, alias, .. } => {
                present(self.is_described(address, *alias, record.at)?)
            }
            Fact::Memo { .. } => self.judge_memo(record),
            Fact::Pin { address } => present(self.overlay.is_there(&Table::Pin.key(address))),
            Fact::Unpin { address } => present(!self.overlay.is_there(&Table::Pin.key(address))),
            Fact::Touch { address } => present(!self.overlay.is_there(&Table::Blob.key(address))),
            Fact::Name { .. } | Fact::Remove { .. } => Admission::Write,
        })
    }

    /// Whether a derivation is in the store with its alias, and too recent to be written again.
    fn is_described(&mut self, address: &Address, alias: Option<Address>, now: Time) -> Result<bool, Error> {
        let key = Table::Derivation.key(address);
        let row = self.overlay.row::<DerivationRow>(&key);
        if let Some(alias) = alias {
            self.check_alias(address, alias, row.and_then(|row| row.alias))?;
        }
        let has_alias = |row: DerivationRow| alias.is_none() || row.alias.is_some();
        Ok(row.is_some_and(|row| has_alias(row) && self.is_recent(&key, row.at, now)))
    }

    /// A derivation has one alias at most, and an alias leads to one derivation.
    fn check_alias(&mut self, address: &Address, alias: Address, has: Option<Address>) -> Result<(), Error> {
        let leads_to = self.overlay.load_bytes(&self.core.catalogue, &Table::Alias.key(&alias))?;
        let leads_to = leads_to.and_then(AliasRow::decode).map(|row| row.derivation);
        let other_alias = has.filter(|has| *has != alias);
        match leads_to.filter(|leads_to| leads_to != address).or(other_alias) {
            Some(taken) => Err(Error::Alias { alias, derivation: *address, taken }),
            None => Ok(()),
        }
    }

    fn judge_memo(&mut self, record: &mut Record) -> Admission {
        let Fact::Memo { derivation, output, .. } = &record.fact else { return Admission::Write };
        let key = Table::Memo.key(derivation);
        let Some(MemoRow { class, memo, .. }) = self.overlay.row(&key) else { return Admission::Write };
        if memo.output != *output {
            let (derivation, before, now) = (*derivation, memo.output, *output);
            self.followups.push(Followup::Diverged { derivation, before, now });
        } else if class >= record.class {
            if self.is_recent(&key, memo.at, record.at) {
                return Admission::Present;
            }
            // The memo becomes young again, and keeps its class.
            record.class = class;
        }
        if self.overlay.is_changed(&key) {
            // An earlier record of this batch may have promised a higher class.
            record.class = record.class.max(class);
        }
        Admission::Write
    }

    /// Adds records to the batch that have one answer.
    pub(super) fn admit_all(&mut self, records: &mut [Record]) -> Result<Answer, Error> {
        let mut each_written = Vec::with_capacity(records.len());
        for record in records {
            each_written.push(self.admit(record, None)?.written);
        }
        Ok(Answer { each_written, ..Answer::default() })
    }

    /// Adds the descriptions that are not in the store to the batch, as their callers have encoded them.
    pub(super) fn admit_derivations(&mut self, described: &[EncodedDerivation]) -> Result<Answer, Error> {
        let mut each_written = Vec::with_capacity(described.len());
        for EncodedDerivation { address, alias, at, inputs, encoded, absent } in described {
            self.overlay.prepare_derivation(&self.core.catalogue, address, *alias, *absent)?;
            let is_new = !self.is_described(address, *alias, *at)?;
            if is_new {
                let offset = self.buffer.len();
                self.buffer.extend_from_slice(encoded);
                self.overlay.put_derivation(address, *alias, inputs, (self.place_from(offset), *at));
            }
            each_written.push(is_new);
        }
        Ok(Answer { each_written, ..Answer::default() })
    }

    /// Adds a value to the batch before the memos that lead to it, so that a log cut off between them never holds a memo
    /// without its value.
    pub(super) fn admit_derived(&mut self, derived: &mut DerivedValue) -> Result<Answer, Error> {
        self.admit(&mut derived.blob, derived.crc)?;
        for memo in derived.memos.iter_mut().flatten() {
            self.admit(&mut memo.record, None)?;
        }
        Ok(Answer::default())
    }

    /// Whether the existing row is too recent to write the same fact again, which would make it young again.
    fn is_recent(&self, key: &Key, at: Time, now: Time) -> bool {
        self.overlay.is_changed(key) || now.since(at) < self.core.config.touch_after
    }

    /// Moves a record to the log's end, if the index still points to its old place.
    pub(super) fn admit_move(&mut self, from: RecordPlace, record: &Record) -> Result<Answer, Error> {
        self.overlay.prepare(&self.core.catalogue, &record.fact)?;
        if !self.holds(from, &record.fact) {
            return Ok(Answer::default());
        }
        let mut record = record.clone();
        match &mut record.fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                // Later touches may have raised its class and time.
                if let Some(blob) = self.overlay.row::<Blob>(&Table::Blob.key(address)) {
                    record.class = record.class.max(blob.class);
                    record.at = record.at.max(blob.at);
                }
            }
            Fact::Derivation { address, alias, .. } => {
                *alias = self
                    .overlay
                    .row::<DerivationRow>(&Table::Derivation.key(address))
                    .and_then(|row| row.alias);
            }
            _ => {}
        }
        self.enter(record, None);
        Ok(Answer { written: true, ..Answer::default() })
    }

    /// Whether the index still points to the record at this place for its fact.
    fn holds(&self, place: RecordPlace, fact: &Fact) -> bool {
        fn at<R: Row>(writer: &Writer, key: &Key) -> Option<RecordPlace> {
            writer.overlay.row::<R>(key).map(|row| row.place())
        }
        let found = match fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                at::<Blob>(self, &Table::Blob.key(address))
            }
            Fact::Derivation { address, .. } => at::<DerivationRow>(self, &Table::Derivation.key(address)),
            Fact::Memo { derivation, .. } => at::<MemoRow>(self, &Table::Memo.key(derivation)),
            Fact::Pin { address } => at::<PinRow>(self, &Table::Pin.key(address)),
            Fact::Name { name, .. } => at::<NameRow>(self, &name_key(name)),
            // A tombstone is moved on its own. It is dropped if its item came back in this batch.
            Fact::Remove { items, .. } => {
                items.first().and_then(|item| at::<GoneRow>(self, &Table::Gone.key(&item.address)))
            }
            Fact::Touch { .. } | Fact::Unpin { .. } => None,
        };
        found.is_some_and(|found| found.is_at(place))
    }

    /// Removes tombstones whose record is at this place.
    pub(super) fn admit_forgetting(
        &mut self,
        place: RecordPlace,
        addresses: &[Address],
    ) -> Result<Answer, Error> {
        for address in addresses {
            self.overlay.load::<GoneRow>(&self.core.catalogue, &Table::Gone.key(address))?;
        }
        addresses.iter().for_each(|address| self.overlay.forget(address, place));
        Ok(Answer::default())
    }

    /// Removes items group by group: all of a group, or none of it.
    pub(super) fn admit_removal(
        &mut self,
        why: RemovalReason,
        groups: Vec<RemovalGroup>,
    ) -> Result<Answer, Error> {
        // Every fallible step comes first: an item that is announced to the guard as leaving must leave.
        for doomed in groups.iter().flatten() {
            let ItemRemoval { address, what, .. } = doomed.removed;
            self.overlay.prepare_removal(&self.core.catalogue, what, &address)?;
        }
        let at: Time = (self.core.config.clock)();
        let record = |items| Record { at, class: Class::Acknowledged, fact: Fact::Remove { why, items } };
        let (mut items, mut size) = (Vec::new(), 0);
        let mut removed = Vec::new();
        // One order may name an item twice, and the overlay shows a removal only once its record is entered.
        let mut named = std::collections::HashSet::new();
        for group in groups {
            let keys =
                || group.iter().map(|doomed| removed_key(doomed.removed.what, &doomed.removed.address));
            let stays =
                group.iter().any(|doomed| !self.is_still(doomed)) || keys().any(|key| named.contains(&key));
            if stays || !self.leave(&group) {
                continue;
            }
            named.extend(keys());
            for DoomedItem { removed: item, .. } in group {
                removed.push((item.address, item.what));
                size += ITEM_MOST + item.edges.len() * 32;
                items.push(item);
                if size > REMOVED_MOST {
                    self.enter(record(std::mem::take(&mut items)), None);
                    size = 0;
                }
            }
        }
        if !items.is_empty() {
            self.enter(record(items), None);
        }
        Ok(Answer { written: true, removed, ..Answer::default() })
    }

    /// Whether an item is still as it was when it was chosen for removal.
    fn is_still(&mut self, doomed: &DoomedItem) -> bool {
        let ItemRemoval { address, what, .. } = doomed.removed;
        let key = removed_key(what, &address);
        let is_changed = self.overlay.is_changed(&key);
        // The caller has loaded the row, so this does not read the disk.
        let Ok(Some(there)) = self.overlay.load_bytes(&self.core.catalogue, &key) else { return false };
        match &doomed.when {
            RemovalCondition::Unwanted(seen) => !is_changed && *there == **seen,
            RemovalCondition::Damaged(seen) => {
                (!is_changed || what == ItemKind::Blob) && is_same(what, seen, there)
            }
            RemovalCondition::Always => true,
        }
    }

    /// Announces to the guard that a group is being removed; false if one of its items is in use, so that all stay.
    fn leave(&self, group: &RemovalGroup) -> bool {
        let guard = &self.core.guard;
        for (place, doomed) in group.iter().enumerate() {
            let address = &doomed.removed.address;
            match doomed.when {
                RemovalCondition::Unwanted(_) if !guard.leave(address) => {
                    group[..place].iter().for_each(|doomed| guard.left(&doomed.removed.address));
                    return false;
                }
                RemovalCondition::Unwanted(_) => {}
                RemovalCondition::Damaged(_) | RemovalCondition::Always => guard.leave_now(address),
            }
        }
        true
    }

    /// The place of the record that begins at this offset of the batch and ends it.
    fn place_from(&self, offset: usize) -> RecordPlace {
        let len = (self.buffer.len() - offset) as u32;
        RecordPlace { segment: self.base.segment, offset: self.base.offset as u32 + offset as u32, len }
    }

    /// Writes a record to the batch and applies it to the overlay.
    fn enter(&mut self, record: Record, crc: Option<u32>) {
        let offset = self.buffer.len();
        record.encode_with(self.core.segments.salt(), crc, &mut self.buffer);
        self.overlay.apply(&record, self.place_from(offset));
        match record.fact {
            Fact::Memo { derivation, output, size, cost, .. } => {
                let memo = Memo { derivation, output, size, cost, at: record.at };
                self.followups.push(Followup::Memo(memo));
            }
            Fact::Remove { items, .. } => self.followups.push(Followup::Removed(items)),
            _ => {}
        }
    }
}

/// Whether two rows describe the same item at the same place.
fn is_same(what: ItemKind, one: &[u8], other: &[u8]) -> bool {
    match what {
        ItemKind::Blob => {
            Blob::decode(one).zip(Blob::decode(other)).is_some_and(|(one, other)| one.is_same_as(&other))
        }
        ItemKind::Derivation => {
            let rows = DerivationRow::decode(one).zip(DerivationRow::decode(other));
            rows.is_some_and(|(one, other)| one.place == other.place)
        }
        ItemKind::Memo(output) => MemoRow::decode(other).is_some_and(|row| row.memo.output == output),
    }
}
