//! What a record changes in the index: one function, for the record just written and for the one read again.

use std::collections::HashMap;

use super::tables::{Blob, GoneRow, Home, MemoRow, NameRow, Noted, Row, Table};
use super::tally::Tally;
use crate::facts::{Gone, Memo};
use crate::files::Name;
use crate::index::{self, BuildBits, Change, Index, Key};
use crate::log::{Fact, Place, Record, Removed, What};
use crate::{Address, Context, Wait};

/// What the caller knows of what the index has under the key that a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has nothing.
    Nothing,
    /// It may have something.
    Unknown,
}

/// Changes in the making: a batch of records, on top of the index as it is.
pub(crate) struct Batch<'a> {
    index: &'a Index,
    tally: &'a mut Tally,
    known: Known,
    rows: HashMap<Key, Change, BuildBits>,
    /// Edges, in order: no batch asks for one back.
    edges: Vec<(Key, Change)>,
    /// Files that nothing names any more.
    orphans: Vec<Name>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(index: &'a Index, tally: &'a mut Tally) -> Batch<'a> {
        Batch {
            index,
            tally,
            known: Known::Unknown,
            rows: HashMap::default(),
            edges: Vec::new(),
            orphans: Vec::new(),
        }
    }

    /// All changes, and the files that nothing names any more.
    pub(crate) fn done(self) -> (Vec<(Key, Change)>, Vec<Name>) {
        let mut changes = self.edges;
        changes.extend(self.rows);
        (changes, self.orphans)
    }

    /// What the index will say of a key once the batch is in.
    pub(crate) fn row<R: Row>(&self, key: &Key) -> Result<Option<R>, index::Error> {
        let decoded = |bytes: &[u8]| {
            R::decode(bytes).ok_or_else(|| index::Error::Damaged {
                path: "index".into(),
                what: "an entry that no store writes".to_owned(),
            })
        };
        match self.rows.get(key) {
            Some(changed) => changed.as_deref().map(decoded).transpose(),
            None => self.index.get(key, Wait::Yes)?.as_deref().map(decoded).transpose(),
        }
    }

    /// The same for what the record at hand is about.
    fn subject_row<R: Row>(&self, key: &Key) -> Result<Option<R>, index::Error> {
        match self.known {
            Known::Nothing if !self.rows.contains_key(key) => Ok(None),
            _ => self.row(key),
        }
    }

    /// Adds what a record at a place says. `known` spares a look at what the index has of the same.
    pub(crate) fn apply(&mut self, record: &Record, place: Place, known: Known) -> Result<(), index::Error> {
        self.known = known;
        let (at, class) = (record.at, record.class);
        match &record.fact {
            Fact::Blob { address, .. } => self.blob(address, Blob { class, at, place, home: Home::Packed }),
            Fact::File { address, number, len } => {
                self.tally.next_file = self.tally.next_file.max(number + 1);
                let home = Home::File { number: *number, len: *len };
                self.blob(address, Blob { class, at, place, home })
            }
            Fact::Touch { address } => match self.row::<Blob>(&Table::Blob.key(address))? {
                Some(old) => self.blob(address, Blob { class, at, ..old }),
                None => Ok(()),
            },
            Fact::Derivation { address, context, inputs, .. } => {
                let apart = Context(context).is_table();
                // An entry of a table is made from nothing.
                if !apart {
                    self.edges(inputs, address);
                }
                self.revive(address)?;
                self.put(derivations(apart), Table::Derivation.key(address), Some(Noted { place, at, apart }))
            }
            Fact::Memo { derivation, output, size, cost, inputs } => {
                self.edges(inputs, derivation);
                self.revive(derivation)?;
                let key = Table::Memo.key(derivation);
                let memo = Memo { derivation: *derivation, output: *output, size: *size, cost: *cost, at };
                let row = MemoRow { place, class, memo };
                self.put(|tally| &mut tally.memos, key, Some(row))
            }
            Fact::Pin { address } => self.put(
                |tally| &mut tally.pins,
                Table::Pin.key(address),
                Some(Noted { place, at, apart: false }),
            ),
            Fact::Unpin { address } => {
                self.put(|tally| &mut tally.pins, Table::Pin.key(address), None::<Noted>)
            }
            Fact::Name { name, history } => {
                let row = NameRow { place, name: name.clone(), history: history.clone() };
                self.put(|tally| &mut tally.names, name_key(name), Some(row))
            }
            Fact::Remove { why, items } => {
                let share = Place { len: place.len / items.len().max(1) as u32, ..place };
                let gone = GoneRow { place: share, gone: Gone { at, why: *why } };
                items.iter().try_for_each(|item| self.remove(item, gone))
            }
        }
    }

    fn blob(&mut self, address: &Address, mut new: Blob) -> Result<(), index::Error> {
        let key = Table::Blob.key(address);
        let old: Option<Blob> = self.subject_row(&key)?;
        if let Some(old) = old {
            // A record that was only moved may not know what was promised meanwhile.
            new.class = new.class.max(old.class);
            new.at = new.at.max(old.at);
        }
        self.replace_blob(address, old, Some(new));
        self.rows.insert(key, Some(new.encode()));
        self.revive(address)
    }

    fn replace_blob(&mut self, address: &Address, old: Option<Blob>, new: Option<Blob>) {
        self.tally.replace_blob(old.as_ref(), new.as_ref());
        let number = |blob: Option<Blob>| match blob?.home {
            Home::File { number, .. } => Some(number),
            Home::Packed => None,
        };
        if let Some(old) = number(old).filter(|old| number(new) != Some(*old)) {
            self.orphans.push(Name { address: *address, number: old });
        }
    }

    /// What is there is not gone.
    fn revive(&mut self, address: &Address) -> Result<(), index::Error> {
        if self.tally.gone == 0 {
            return Ok(());
        }
        let known = std::mem::replace(&mut self.known, Known::Unknown);
        self.put(|tally| &mut tally.gone, Table::Gone.key(address), None::<GoneRow>)?;
        self.known = known;
        Ok(())
    }

    fn edges(&mut self, inputs: &[Address], derivation: &Address) {
        for input in inputs {
            self.edges.push((Table::Edge.pair(input, derivation), Some(Box::default())));
        }
    }

    fn remove(&mut self, item: &Removed, gone: GoneRow) -> Result<(), index::Error> {
        let address = &item.address;
        match item.what {
            What::Blob => {
                let key = Table::Blob.key(address);
                if let Some(old) = self.row(&key)? {
                    self.replace_blob(address, Some(old), None);
                    self.rows.insert(key, None);
                }
            }
            What::Derivation => {
                let key = Table::Derivation.key(address);
                let apart = self.row(&key)?.is_some_and(|old: Noted| old.apart);
                self.put(derivations(apart), key, None::<Noted>)?;
            }
            What::Memo(_) => {
                self.put(|tally| &mut tally.memos, Table::Memo.key(address), None::<MemoRow>)?;
            }
        }
        for input in &item.edges {
            self.edges.push((Table::Edge.pair(input, address), None));
        }
        self.put(|tally| &mut tally.gone, Table::Gone.key(address), Some(gone))
    }

    /// Puts or deletes a row that is counted.
    fn put<R: Row>(
        &mut self,
        count: fn(&mut Tally) -> &mut u64,
        key: Key,
        new: Option<R>,
    ) -> Result<(), index::Error> {
        let old: Option<R> = self.subject_row(&key)?;
        self.tally.replace(count, old.as_ref(), new.as_ref());
        if old.is_some() || new.is_some() {
            self.rows.insert(key, new.map(|row| row.encode()));
        }
        Ok(())
    }

    /// A tombstone that is old enough to forget. The log no longer has it.
    pub(crate) fn forget(&mut self, address: &Address, place: Place) -> Result<(), index::Error> {
        self.known = Known::Unknown;
        let key = Table::Gone.key(address);
        match self.row::<GoneRow>(&key)? {
            Some(row) if row.place.is_at(place) => self.put(|tally| &mut tally.gone, key, None::<GoneRow>),
            _ => Ok(()),
        }
    }
}

/// Where a name's history is.
pub(crate) fn name_key(name: &str) -> Key {
    Table::Name.key(&Address::of(name.as_bytes()))
}

/// Which count a derivation is in.
fn derivations(apart: bool) -> fn(&mut Tally) -> &mut u64 {
    match apart {
        true => |tally| &mut tally.entries,
        false => |tally| &mut tally.derivations,
    }
}
