//! What of a batch is written: decided against the index as it will be, not as it is.
//!
//! The index learns of a batch when that is durable. Until then, whatever the batch brings or takes away counts for the
//! orders behind it, or a record that was moved could undo what was said since.

use super::apply::{Known, name_key};
use super::commit::{Answer, Doomed, Group, When, Writer};
use super::derived::Derived;
use super::tables::{Blob, GoneRow, Home, MemoRow, NameRow, Noted, Row, Table};
use crate::facts::{Class, Time, Why};
use crate::index::Key;
use crate::log::{Fact, Place, Record, Removed, What};
use crate::{Address, Error, Wait};

/// A record of removals is full with so many bytes of edges: far from what a record may have, even with one more.
const REMOVED_MOST: usize = 4 << 20;

/// No item of such a record is longer, but for its edges.
const ITEM_MOST: usize = 80;

/// How the batch changes what the index has under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// Something else will be there, elsewhere.
    There(Class),
    /// The same will be there, with this promise.
    Touched(Class),
    /// Nothing will be there.
    Gone,
}

/// A request that is written, and where in the buffer.
pub(super) struct Entry {
    pub(super) record: Record,
    pub(super) offset: u32,
    pub(super) len: u32,
    pub(super) known: Known,
}

impl Writer {
    /// Takes a record into the batch, unless what it says is so already.
    pub(super) fn admit(
        &mut self,
        record: &mut Record,
        crc: Option<u32>,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        let mut known = Known::Unknown;
        let mut nothing = |is_nothing| {
            if is_nothing {
                known = Known::Nothing;
            }
        };
        let present = match &record.fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                let key = Table::Blob.key(address);
                match self.present_blob(&key)? {
                    Some((class, None)) if class >= record.class => true,
                    Some((class, Some(it))) if class >= record.class && self.is_recent(it.at, record) => true,
                    Some((class, Some(blob))) if class >= record.class || blob.home == Home::Packed => {
                        // The bytes are in the log already; what they lack is the promise, or to be young again.
                        let touch = Record { fact: Fact::Touch { address: *address }, ..*record };
                        self.note_fresh(&touch);
                        self.enter(touch, entries);
                        return Ok(Answer::default());
                    }
                    there => {
                        nothing(there.is_none() && !self.fresh.contains_key(&key));
                        false
                    }
                }
            }
            Fact::Derivation { address, .. } => {
                let row = self.row::<Noted>(Table::Derivation.key(address))?;
                nothing(row.is_none() && !self.fresh.contains_key(&Table::Derivation.key(address)));
                row.is_some_and(|row| self.is_recent(row.at, record))
            }
            Fact::Memo { derivation, output, .. } => {
                let key = Table::Memo.key(derivation);
                let row = self.row::<MemoRow>(key)?;
                nothing(row.is_none() && !self.fresh.contains_key(&key));
                let fresh = self.fresh.get(&key).copied();
                if let Some(Fresh::There(class)) = fresh {
                    // What was promised earlier in this batch is promised.
                    record.class = record.class.max(class);
                }
                // After another one in this batch, what the index has is not so any more.
                let row = row.filter(|_| fresh.is_none());
                match row.filter(|row| row.memo.output == *output && row.class >= record.class) {
                    Some(row) if self.is_recent(row.memo.at, record) => true,
                    Some(row) => {
                        // It counts as young again, and keeps the promise.
                        record.class = row.class;
                        false
                    }
                    None => false,
                }
            }
            Fact::Pin { address } => self.is_pinned(address)?,
            Fact::Unpin { address } => !self.is_pinned(address)?,
            Fact::Touch { address } => self.present_blob(&Table::Blob.key(address))?.is_none(),
            Fact::Name { .. } | Fact::Remove { .. } => false,
        };
        if !present {
            self.note_fresh(record);
            self.enter_known(record.take(), crc, known, entries);
        }
        Ok(Answer { written: !present, ..Answer::default() })
    }

    /// Takes records into the batch that are answered together.
    pub(super) fn admit_all(
        &mut self,
        records: &mut [Record],
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        let mut each_written = Vec::with_capacity(records.len());
        for record in records {
            each_written.push(self.admit(record, None, entries)?.written);
        }
        Ok(Answer { each_written, ..Answer::default() })
    }

    /// Takes a value into the batch before the memo that leads to it, so that the log never ends between the two the
    /// wrong way round.
    pub(super) fn admit_derived(
        &mut self,
        derived: &mut Derived,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        self.admit(&mut derived.blob, derived.crc, entries)?;
        self.admit(&mut derived.memo, None, entries)
    }

    fn is_pinned(&self, address: &Address) -> Result<bool, Error> {
        let key = Table::Pin.key(address);
        match self.fresh.get(&key) {
            Some(fresh) => Ok(*fresh != Fresh::Gone),
            None => Ok(self.row::<Noted>(key)?.is_some()),
        }
    }

    /// What this record says is newer than what the index has, until the batch is in.
    fn note_fresh(&mut self, record: &Record) {
        if let Some(key) = subject(&record.fact) {
            let fresh = match record.fact {
                Fact::Touch { .. } => match self.fresh.get(&key) {
                    Some(Fresh::There(class)) => Fresh::There(record.class.max(*class)),
                    Some(Fresh::Touched(class)) => Fresh::Touched(record.class.max(*class)),
                    _ => Fresh::Touched(record.class),
                },
                Fact::Unpin { .. } => Fresh::Gone,
                _ => Fresh::There(record.class),
            };
            self.fresh.insert(key, fresh);
        }
    }

    /// Is it too soon to say the same again? Later, what is said again counts as young again.
    fn is_recent(&self, at: Time, record: &Record) -> bool {
        record.at.since(at) < self.core.config.touch_after
    }

    /// The class of a blob that is there, or will be when this batch is, and its row in the former case.
    fn present_blob(&self, key: &Key) -> Result<Option<(Class, Option<Blob>)>, Error> {
        let there = |class| Ok(self.row::<Blob>(*key)?.map(|blob| (blob.class.max(class), Some(blob))));
        match self.fresh.get(key) {
            Some(Fresh::There(class)) => Ok(Some((*class, None))),
            Some(Fresh::Touched(class)) => there(*class),
            Some(Fresh::Gone) => Ok(None),
            None => there(Class::Derivable),
        }
    }

    pub(super) fn admit_move(
        &mut self,
        from: Place,
        record: &Record,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        if !self.holds(from, &record.fact)? {
            return Ok(Answer::default());
        }
        let mut record = record.clone();
        if let Fact::Blob { address, .. } | Fact::File { address, .. } = &record.fact {
            // What was learnt of it since it was written goes with it.
            let key = Table::Blob.key(address);
            let blob: Option<Blob> = self.row(key)?;
            let touched = self.present_blob(&key)?.map(|(class, _)| class);
            record.class = record.class.max(touched.unwrap_or(record.class));
            record.at = record.at.max(blob.map_or(record.at, |blob| blob.at));
        }
        if !matches!(record.fact, Fact::Remove { .. }) {
            self.note_fresh(&record);
        }
        self.enter(record, entries);
        Ok(Answer { written: true, ..Answer::default() })
    }

    /// Does the index still mean this record when it says what the record says?
    fn holds(&self, place: Place, fact: &Fact) -> Result<bool, Error> {
        // A tombstone is moved by itself, and does not hold if what it is of comes back in this batch.
        let fresh = match fact {
            Fact::Remove { items, .. } => items.first().map(|item| table(item.what).key(&item.address)),
            fact => subject(fact),
        };
        let fresh = fresh.and_then(|key| self.fresh.get(&key));
        if matches!(fresh, Some(Fresh::There(_) | Fresh::Gone)) {
            return Ok(false);
        }
        let found = match fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                self.row::<Blob>(Table::Blob.key(address))?.map(|row| row.place())
            }
            Fact::Derivation { address, .. } => {
                self.row::<Noted>(Table::Derivation.key(address))?.map(|row| row.place())
            }
            Fact::Memo { derivation, .. } => {
                self.row::<MemoRow>(Table::Memo.key(derivation))?.map(|row| row.place())
            }
            Fact::Pin { address } => self.row::<Noted>(Table::Pin.key(address))?.map(|row| row.place()),
            Fact::Name { name, .. } => self.row::<NameRow>(name_key(name))?.map(|row| row.place()),
            Fact::Remove { items, .. } => match items.first() {
                Some(item) => self.row::<GoneRow>(Table::Gone.key(&item.address))?.map(|row| row.place()),
                None => None,
            },
            Fact::Touch { .. } | Fact::Unpin { .. } => None,
        };
        Ok(found.is_some_and(|found| found.is_at(place)))
    }

    pub(super) fn admit_removal(
        &mut self,
        why: Why,
        groups: Vec<Group>,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        // All that may fail comes first: what is said to leave, leaves.
        let still = groups.iter().map(|group| group.iter().map(|doomed| self.is_still(doomed)).collect());
        let still: Vec<Vec<bool>> = still.collect::<Result<_, Error>>()?;
        let at: Time = (self.core.config.clock)();
        let (mut items, mut size) = (Vec::new(), 0);
        let mut removed = Vec::new();
        for (group, still) in groups.into_iter().zip(still) {
            // One order may name a thing twice.
            let is_gone = |doomed: &Doomed| {
                let key = table(doomed.removed.what).key(&doomed.removed.address);
                self.fresh.get(&key) == Some(&Fresh::Gone)
            };
            if !still.into_iter().all(|still| still) || group.iter().any(is_gone) || !self.leave(&group) {
                continue;
            }
            for Doomed { removed: item, .. } in group {
                self.fresh.insert(table(item.what).key(&item.address), Fresh::Gone);
                removed.push((item.address, item.what));
                size += ITEM_MOST + item.edges.len() * 32;
                items.push(item);
                if size > REMOVED_MOST {
                    let fact = Fact::Remove { why, items: std::mem::take(&mut items) };
                    self.enter(Record { at, class: Class::Acknowledged, fact }, entries);
                    size = 0;
                }
            }
        }
        if !items.is_empty() {
            self.enter(Record { at, class: Class::Acknowledged, fact: Fact::Remove { why, items } }, entries);
        }
        Ok(Answer { written: true, removed, ..Answer::default() })
    }

    /// Is it as it was when it was doomed?
    fn is_still(&self, doomed: &Doomed) -> Result<bool, Error> {
        let Removed { address, what, .. } = doomed.removed;
        let key = table(what).key(&address);
        let fresh = self.fresh.get(&key);
        let there = self.core.index.get(&key, Wait::Yes).map_err(|error| self.core.index_error(error))?;
        let Some(there) = there.as_deref() else { return Ok(false) };
        Ok(match &doomed.when {
            When::Unwanted(seen) => *there == **seen && fresh.is_none(),
            When::Damaged(seen) => {
                let is_old = !matches!(fresh, Some(Fresh::There(_) | Fresh::Gone));
                is_old && is_same(what, seen, there)
            }
            When::Always => fresh != Some(&Fresh::Gone),
        })
    }

    /// Has a group leave, unless somebody wants one of it.
    fn leave(&self, group: &Group) -> bool {
        let guard = &self.core.guard;
        for (place, doomed) in group.iter().enumerate() {
            let address = &doomed.removed.address;
            match doomed.when {
                When::Unwanted(_) if !guard.leave(address) => {
                    group[..place].iter().for_each(|doomed| guard.left(&doomed.removed.address));
                    return false;
                }
                When::Unwanted(_) => {}
                When::Damaged(_) | When::Always => guard.leave_now(address),
            }
        }
        true
    }

    fn enter(&mut self, record: Record, entries: &mut Vec<Entry>) {
        self.enter_known(record, None, Known::Unknown, entries);
    }

    fn enter_known(&mut self, record: Record, crc: Option<u32>, known: Known, entries: &mut Vec<Entry>) {
        let offset = self.buffer.len();
        record.encode_with(self.core.segments.salt(), crc, &mut self.buffer);
        let len = (self.buffer.len() - offset) as u32;
        entries.push(Entry { record, offset: offset as u32, len, known });
    }

    fn row<R: Row>(&self, key: Key) -> Result<Option<R>, Error> {
        match self.fresh.get(&key) {
            Some(Fresh::Gone) => Ok(None),
            _ => self.core.row(&key, Wait::Yes),
        }
    }
}

/// Do two rows say that the same is at the same place?
fn is_same(what: What, one: &[u8], other: &[u8]) -> bool {
    match what {
        What::Blob => {
            Blob::decode(one).zip(Blob::decode(other)).is_some_and(|(one, other)| one.is_same_as(&other))
        }
        What::Derivation => {
            Noted::decode(one).zip(Noted::decode(other)).is_some_and(|(one, other)| one.place == other.place)
        }
        What::Memo(output) => MemoRow::decode(other).is_some_and(|row| row.memo.output == output),
    }
}

/// What a fact is about: where the index has it.
fn subject(fact: &Fact) -> Option<Key> {
    match fact {
        Fact::Blob { address, .. } | Fact::File { address, .. } | Fact::Touch { address } => {
            Some(Table::Blob.key(address))
        }
        Fact::Derivation { address, .. } => Some(Table::Derivation.key(address)),
        Fact::Memo { derivation, .. } => Some(Table::Memo.key(derivation)),
        Fact::Pin { address } | Fact::Unpin { address } => Some(Table::Pin.key(address)),
        Fact::Name { name, .. } => Some(name_key(name)),
        Fact::Remove { .. } => None,
    }
}

fn table(what: What) -> Table {
    match what {
        What::Blob => Table::Blob,
        What::Derivation => Table::Derivation,
        What::Memo(_) => Table::Memo,
    }
}
