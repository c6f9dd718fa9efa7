//! The index as it will be once a batch of records is written: one view to decide on the writes and to apply them.
//!
//! The index learns of a batch once the batch is written. Until then, later orders of the same batch must see its
//! earlier changes; otherwise a moved record could undo a newer one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::catalogue::Catalogue;
use super::tables::{
    AliasRow, Blob, DerivationRow, GoneRow, Home, MemoRow, NameRow, PinRow, Row, RowBytes, Table, name_key,
};
use super::tally::{Count, TallyChange};
use crate::facts::{Memo, RemovalRecord, Time};
use crate::files::Name;
use crate::index::{BuildBits, Change, Generation, Key, View};
use crate::log::{Fact, ItemKind, ItemRemoval, Record, RecordPlace};
use crate::{Address, Error, Value};

/// The changes of the current batch, on top of the index.
///
/// Every key is loaded before it is read or changed. Loading may fail, so it all comes first ([`Overlay::prepare`]);
/// the steps after it cannot fail half-way.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    rows: HashMap<Key, Slot, BuildBits>,
    /// The index that the batch changes; `None` between batches. While a batch is decided, nothing else is applied, and
    /// one view spares the locks that readers of the index take, too.
    index: Option<View>,
    /// The changed keys in the order of their first change, which is the order in which readers see them.
    changed: Vec<Key>,
    /// The changed edges in order: a batch never reads them back.
    edges: Vec<(Key, Change)>,
    tally: TallyChange,
    /// Files that no record names any more.
    orphans: Vec<Name>,
    /// The number of tombstones in the index.
    gone: u64,
}

#[derive(Debug)]
struct Slot {
    row: Option<RowBytes>,
    is_changed: bool,
}

/// The changes of a batch, in the order in which readers may see them.
pub(crate) struct Changes<'a> {
    overlay: &'a mut Overlay,
}

impl Changes<'_> {
    pub(crate) fn tally(&self) -> &TallyChange {
        &self.overlay.tally
    }

    /// Rows and edges. A row comes after the rows that it leads to.
    pub(crate) fn rows(&mut self) -> impl Iterator<Item = (Key, Change)> {
        let Overlay { rows, changed, edges, .. } = &mut *self.overlay;
        let row = |key: Key| (key, rows.remove(&key).and_then(|slot| slot.row));
        edges.drain(..).chain(changed.drain(..).map(row))
    }

    /// Files that nothing names any more.
    pub(crate) fn orphans(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.overlay.orphans)
    }
}

impl Overlay {
    /// Begins a new batch on an index with this many tombstones.
    pub(crate) fn begin(&mut self, catalogue: &Catalogue, gone: u64) {
        self.index = Some(catalogue.index().view());
        self.rows.clear();
        self.changed.clear();
        self.edges.clear();
        self.tally.clear();
        self.orphans.clear();
        self.gone = gone;
    }

    /// Ends the batch, which is applied or failed.
    pub(crate) fn end(&mut self) {
        self.index = None;
    }

    /// All changes of the batch.
    pub(crate) fn changes(&mut self) -> Changes<'_> {
        Changes { overlay: self }
    }

    /// The row under a key, from the batch or from the index.
    pub(crate) fn load<R: Row>(&mut self, catalogue: &Catalogue, key: &Key) -> Result<Option<R>, Error> {
        self.load_bytes(catalogue, key)?.map(|row| catalogue.decoded(row)).transpose()
    }

    /// The row under a key, as bytes.
    pub(crate) fn load_bytes(&mut self, catalogue: &Catalogue, key: &Key) -> Result<Option<&[u8]>, Error> {
        let slot = match self.rows.entry(*key) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(slot) => {
                let index = self.index.as_ref().expect("a batch has begun");
                slot.insert(Slot { row: catalogue.row_bytes_in(index, key)?, is_changed: false })
            }
        };
        Ok(slot.row.as_deref())
    }

    /// The row under a key that was loaded before.
    pub(crate) fn row<R: Row>(&self, key: &Key) -> Option<R> {
        R::decode(self.rows.get(key)?.row.as_deref()?)
    }

    /// Whether the batch changes the row under a key.
    pub(crate) fn is_changed(&self, key: &Key) -> bool {
        self.rows.get(key).is_some_and(|slot| slot.is_changed)
    }

    /// Whether there is a row under a key that was loaded before, with the batch's changes.
    pub(crate) fn is_there(&self, key: &Key) -> bool {
        self.rows.get(key).is_some_and(|slot| slot.row.is_some())
    }

    /// Loads every row that [`Overlay::apply`] will need for this fact.
    pub(crate) fn prepare(&mut self, catalogue: &Catalogue, fact: &Fact) -> Result<(), Error> {
        match fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } | Fact::Touch { address } => {
                self.load::<Blob>(catalogue, &Table::Blob.key(address))?;
                self.prepare_revival(catalogue, address)
            }
            Fact::Derivation { address, alias, .. } => {
                self.prepare_derivation(catalogue, address, *alias, None)
            }
            Fact::Memo { derivation, .. } => {
                self.load::<MemoRow>(catalogue, &Table::Memo.key(derivation))?;
                self.prepare_revival(catalogue, derivation)
            }
            Fact::Pin { address } | Fact::Unpin { address } => {
                self.load::<PinRow>(catalogue, &Table::Pin.key(address)).map(|_| ())
            }
            Fact::Name { name, .. } => self.load::<NameRow>(catalogue, &name_key(name)).map(|_| ()),
            Fact::Remove { items, .. } => {
                items.iter().try_for_each(|item| self.prepare_removal(catalogue, item.what, &item.address))
            }
        }
    }

    /// Loads every row that [`Overlay::put_derivation`] will need. `absent` is of a lookup that found no derivation.
    pub(crate) fn prepare_derivation(
        &mut self,
        catalogue: &Catalogue,
        address: &Address,
        alias: Option<Address>,
        absent: Option<Generation>,
    ) -> Result<(), Error> {
        let key = Table::Derivation.key(address);
        if let Some(absent) = absent
            && let Entry::Vacant(slot) = self.rows.entry(key)
        {
            let index = self.index.as_ref().expect("a batch has begun");
            slot.insert(Slot { row: catalogue.row_bytes_since(index, &key, absent)?, is_changed: false });
        }
        self.load::<DerivationRow>(catalogue, &key)?;
        if let Some(alias) = alias {
            self.load_bytes(catalogue, &Table::Alias.key(&alias))?;
        }
        self.prepare_revival(catalogue, address)
    }

    /// Loads every row that the removal of an item needs.
    pub(crate) fn prepare_removal(
        &mut self,
        catalogue: &Catalogue,
        what: ItemKind,
        address: &Address,
    ) -> Result<(), Error> {
        let key = removed_key(what, address);
        match what {
            ItemKind::Blob => _ = self.load::<Blob>(catalogue, &key)?,
            ItemKind::Derivation => _ = self.load::<DerivationRow>(catalogue, &key)?,
            ItemKind::Memo(_) => _ = self.load::<MemoRow>(catalogue, &key)?,
        }
        self.load::<GoneRow>(catalogue, &Table::Gone.key(address)).map(|_| ())
    }

    /// Loads the tombstone of an item that comes back, if there can be one.
    fn prepare_revival(&mut self, catalogue: &Catalogue, address: &Address) -> Result<(), Error> {
        match self.gone.saturating_add_signed(self.tally.count(Count::Gone)) {
            0 => Ok(()),
            _ => self.load::<GoneRow>(catalogue, &Table::Gone.key(address)).map(|_| ()),
        }
    }

    /// Applies a record at a place, after [`Overlay::prepare`].
    pub(crate) fn apply(&mut self, record: &Record, place: RecordPlace) {
        let (at, class) = (record.at, record.class);
        match &record.fact {
            Fact::Blob { address, .. } => {
                self.put_blob(address, Blob { class, at, place, home: Home::Packed });
            }
            Fact::File { address, number, len } => {
                self.tally.file(*number);
                let home = Home::File { number: *number, len: *len };
                self.put_blob(address, Blob { class, at, place, home });
            }
            Fact::Touch { address } => {
                if let Some(old) = self.row::<Blob>(&Table::Blob.key(address)) {
                    self.put_blob(address, Blob { class, at, ..old });
                }
            }
            Fact::Derivation { address, alias, bytes, .. } => {
                // Only stores of format 1 have bytes that are not canonical, and those have no inputs of interest.
                let inputs = Value::addresses_in(bytes).unwrap_or_default();
                self.put_derivation(address, *alias, &inputs, (place, at));
            }
            Fact::Memo { derivation, output, size, cost, inputs } => {
                self.put_edges(inputs, derivation);
                self.revive(derivation);
                let memo = Memo { derivation: *derivation, output: *output, size: *size, cost: *cost, at };
                self.put(Count::Memos, Table::Memo.key(derivation), Some(MemoRow { place, class, memo }));
            }
            Fact::Pin { address } => {
                self.put(Count::Pins, Table::Pin.key(address), Some(PinRow { place, at }));
            }
            Fact::Unpin { address } => self.put(Count::Pins, Table::Pin.key(address), None::<PinRow>),
            Fact::Name { name, history } => {
                // A name without a history is forgotten.
                let row = || NameRow { place, name: name.clone(), history: history.clone() };
                self.put(Count::Names, name_key(name), (!history.is_empty()).then(row));
            }
            Fact::Remove { why, items } => {
                let share = RecordPlace { len: place.len / items.len().max(1) as u32, ..place };
                let gone = GoneRow { place: share, gone: RemovalRecord { at, why: *why } };
                items.iter().for_each(|item| self.remove(item, gone));
            }
        }
    }

    fn put_blob(&mut self, address: &Address, mut new: Blob) {
        let key = Table::Blob.key(address);
        let old: Option<Blob> = self.row(&key);
        if let Some(old) = old {
            // A moved record may have a lower class than a touch has promised meanwhile.
            new.class = new.class.max(old.class);
            new.at = new.at.max(old.at);
        }
        self.replace_blob(address, old, Some(new));
        self.revive(address);
        self.set(key, Some(new.encode()));
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

    /// Applies the description of a derivation at a place, after [`Overlay::prepare_derivation`].
    pub(crate) fn put_derivation(
        &mut self,
        address: &Address,
        alias: Option<Address>,
        inputs: &[Address],
        (place, at): (RecordPlace, Time),
    ) {
        self.put_edges(inputs, address);
        let key = Table::Derivation.key(address);
        let old = self.row::<DerivationRow>(&key);
        // A description that was there was not what the tombstone is for: its memo was.
        if old.is_none() {
            self.revive(address);
        }
        let alias = alias.or(old.and_then(|old| old.alias));
        self.put(Count::Derivations, key, Some(DerivationRow { place, at, alias }));
        if let Some(alias) = alias {
            self.set(Table::Alias.key(&alias), Some(AliasRow { derivation: *address }.encode()));
        }
    }

    fn put_edges(&mut self, inputs: &[Address], derivation: &Address) {
        let edge = |input| (Table::Edge.pair(input, derivation), Some(Box::default()));
        self.edges.extend(inputs.iter().map(edge));
    }

    /// Removes the tombstone of an item that came back.
    fn revive(&mut self, address: &Address) {
        let key = Table::Gone.key(address);
        if self.is_there(&key) {
            self.put(Count::Gone, key, None::<GoneRow>);
        }
    }

    fn remove(&mut self, item: &ItemRemoval, gone: GoneRow) {
        let address = &item.address;
        let key = removed_key(item.what, address);
        match item.what {
            ItemKind::Blob => {
                if let Some(old) = self.row(&key) {
                    self.replace_blob(address, Some(old), None);
                    self.set(key, None);
                }
            }
            ItemKind::Derivation => {
                if let Some(DerivationRow { alias: Some(alias), .. }) = self.row(&key) {
                    self.set(Table::Alias.key(&alias), None);
                }
                self.put(Count::Derivations, key, None::<DerivationRow>);
            }
            ItemKind::Memo(_) => self.put(Count::Memos, key, None::<MemoRow>),
        }
        let edge = |input| (Table::Edge.pair(input, address), None);
        self.edges.extend(item.edges.iter().map(edge));
        self.put(Count::Gone, Table::Gone.key(address), Some(gone));
    }

    /// Removes a tombstone that is at this place, after its row was loaded. The log no longer has it.
    pub(crate) fn forget(&mut self, address: &Address, place: RecordPlace) {
        let key = Table::Gone.key(address);
        if self.row::<GoneRow>(&key).is_some_and(|row| row.place.is_at(place)) {
            self.put(Count::Gone, key, None::<GoneRow>);
        }
    }

    /// Puts or deletes a row that is counted.
    fn put<R: Row>(&mut self, count: Count, key: Key, new: Option<R>) {
        let old: Option<R> = self.row(&key);
        self.tally.replace(count, old.as_ref(), new.as_ref());
        if old.is_some() || new.is_some() {
            self.set(key, new.map(|row| row.encode()));
        }
    }

    fn set(&mut self, key: Key, row: Option<RowBytes>) {
        let slot = self.rows.entry(key).or_insert(Slot { row: None, is_changed: false });
        slot.row = row;
        if !slot.is_changed {
            slot.is_changed = true;
            self.changed.push(key);
        }
    }
}

/// The key of a removed item.
pub(crate) fn removed_key(what: ItemKind, address: &Address) -> Key {
    match what {
        ItemKind::Blob => Table::Blob.key(address),
        ItemKind::Derivation => Table::Derivation.key(address),
        ItemKind::Memo(_) => Table::Memo.key(address),
    }
}
