//! The catalogue: finds the data under an address.
//!
//! It is the only place that knows the three sources of an answer and their order: derived values that are not written
//! yet (`pending`), the cache of memos (`recalled`), and the index. Pending comes first: a value leaves it only once
//! the index has it, so no value is missed in between. A derivation comes before an alias, and an alias before a blob:
//! no blob can take the place of a derivation.

use std::sync::Arc;

use bytes::Bytes;

use super::background::Background;
use super::heal::HealingState;
use super::overlay::Changes;
use super::pending::{PendingValues, Ticket};
use super::recalled::{RecalledMemos, Version};
use super::tables::{
    AliasRow, Blob, DerivationRow, GoneRow, MemoRow, NameRow, PinRow, Row, RowBytes, Table, last_address,
    name_key,
};
use super::tally::Tally;
use crate::facts::{Class, Memo, RemovalRecord};
use crate::files::Name;
use crate::index::{self, Generation, Index, Key, View};
use crate::log::Position;
use crate::{Address, Error, Wait};

/// Everything that a store knows about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddressStatus {
    /// The address that the other fields describe: the requested one, or the derivation that it is an alias of.
    pub address: Address,
    /// The alias that leads to the derivation.
    pub alias: Option<Address>,
    /// The blob's length in bytes and its class, if the address is a blob's.
    pub blob: Option<(u64, Class)>,
    /// Whether the description of a derivation is stored.
    pub derivation: bool,
    /// The memo of that derivation, if there is one.
    pub memo: Option<Memo>,
    /// Whether the address, or the alias of it, is pinned.
    pub pinned: bool,
    /// When and why data under the address was removed.
    pub gone: Option<RemovalRecord>,
}

/// The location of a blob's bytes.
pub(crate) enum BlobAt {
    /// In memory, not written yet.
    Pending(Bytes),
    Stored(Blob),
}

impl BlobAt {
    pub(crate) fn size(&self) -> u64 {
        match self {
            BlobAt::Pending(bytes) => bytes.len() as u64,
            BlobAt::Stored(blob) => blob.size(),
        }
    }
}

/// The data under an address, the most useful kind first.
pub(crate) enum FoundData {
    Memo(Memo),
    /// The derivation with this address is described, and its output is not remembered.
    Derivation(Address, DerivationRow),
    Blob(BlobAt),
    Nothing,
}

pub(crate) struct Catalogue {
    index: Index,
    pending: PendingValues,
    recalled: RecalledMemos,
    background: Arc<Background>,
    healing: HealingState,
}

impl Catalogue {
    pub(crate) fn new(index: Index, cache_bytes: u64, background: Arc<Background>) -> Catalogue {
        let (pending, recalled) = (PendingValues::default(), RecalledMemos::new(cache_bytes));
        Catalogue { index, pending, recalled, background, healing: HealingState::default() }
    }

    /// A catalogue of an index that is rebuilt, without anything else in it.
    pub(super) fn empty(&self, index: Index) -> Catalogue {
        Catalogue::new(index, 0, Arc::clone(&self.background))
    }

    pub(super) fn into_index(self) -> Index {
        self.index
    }

    pub(super) fn healing(&self) -> &HealingState {
        &self.healing
    }

    /// Finds the data under an address. An alias is followed.
    pub(crate) fn find(&self, address: &Address, wait: Wait) -> Result<FoundData, Error> {
        let version = match self.memo_at_hand(address) {
            Ok(memo) => return Ok(FoundData::Memo(memo)),
            Err(version) => version,
        };
        // After the look at pending values: a value leaves them for a table that an earlier view may not have.
        let view = self.index.view();
        if let Some(memo) = self.memo_in(&view, address, version, wait)? {
            return Ok(FoundData::Memo(memo));
        }
        if let Some(row) = self.row_in(&view, &Table::Derivation.key(address), wait)? {
            return Ok(FoundData::Derivation(*address, row));
        }
        if let Some(derivation) = self.alias_in(&view, address, wait)? {
            if let Some(memo) = self.memo(&derivation, wait)? {
                return Ok(FoundData::Memo(memo));
            }
            if let Some(row) = self.derivation(&derivation, wait)? {
                return Ok(FoundData::Derivation(derivation, row));
            }
        }
        Ok(self.blob(address, wait)?.map_or(FoundData::Nothing, FoundData::Blob))
    }

    /// Whether there is a blob, a description or an alias with this address.
    pub(crate) fn contains(&self, address: &Address, wait: Wait) -> Result<bool, Error> {
        Ok(self.blob(address, wait)?.is_some()
            || self.derivation(address, wait)?.is_some()
            || self.alias(address, wait)?.is_some())
    }

    /// Everything that is known about an address. An alias is followed.
    pub(crate) fn status(&self, asked: &Address, wait: Wait) -> Result<AddressStatus, Error> {
        let target = self.alias(asked, wait)?;
        let address = target.unwrap_or(*asked);
        let derivation = self.derivation(&address, wait)?;
        let alias = derivation.and_then(|row| row.alias);
        let is_pinned = |address: &Address| self.pin(address, wait).map(|pin| pin.is_some());
        Ok(AddressStatus {
            address,
            alias,
            blob: match self.blob(asked, wait)? {
                Some(BlobAt::Pending(bytes)) => Some((bytes.len() as u64, Class::Derivable)),
                Some(BlobAt::Stored(blob)) => Some((blob.size(), blob.class)),
                None => None,
            },
            derivation: derivation.is_some(),
            memo: self.memo(&address, wait)?,
            pinned: is_pinned(&address)? || alias.map_or(Ok(false), |alias| is_pinned(&alias))?,
            gone: self.row::<GoneRow>(&Table::Gone.key(&address), wait)?.map(|row| row.gone),
        })
    }

    pub(crate) fn blob(&self, address: &Address, wait: Wait) -> Result<Option<BlobAt>, Error> {
        match self.pending.blob(address) {
            Some(bytes) => Ok(Some(BlobAt::Pending(bytes))),
            None => Ok(self.stored_blob(address, wait)?.map(BlobAt::Stored)),
        }
    }

    /// A blob that is in the log or in a file.
    pub(crate) fn stored_blob(&self, address: &Address, wait: Wait) -> Result<Option<Blob>, Error> {
        self.row(&Table::Blob.key(address), wait)
    }

    /// The bytes of a blob that is not written yet.
    pub(crate) fn pending_blob(&self, address: &Address) -> Option<Bytes> {
        self.pending.blob(address)
    }

    /// False if there is certainly no such blob. Never reads a file, and has about 1% false positives.
    pub(crate) fn may_have_blob(&self, address: &Address) -> bool {
        self.pending.blob(address).is_some() || self.index.may_have(&Table::Blob.key(address))
    }

    pub(crate) fn derivation(&self, address: &Address, wait: Wait) -> Result<Option<DerivationRow>, Error> {
        self.row(&Table::Derivation.key(address), wait)
    }

    /// The same, with the generation of the index's runs, for [`Catalogue::row_bytes_since`].
    pub(crate) fn derivation_noting(
        &self,
        address: &Address,
        wait: Wait,
    ) -> Result<(Option<DerivationRow>, Generation), Error> {
        let found = self.index.get_noting(&Table::Derivation.key(address), wait);
        let (row, generation) = found.map_err(|error| self.error(error))?;
        Ok((row.map(|row| self.decoded(&row)).transpose()?, generation))
    }

    /// The derivation that an alias leads to.
    pub(crate) fn alias(&self, alias: &Address, wait: Wait) -> Result<Option<Address>, Error> {
        self.alias_in(&self.index.view(), alias, wait)
    }

    fn alias_in(&self, view: &View, alias: &Address, wait: Wait) -> Result<Option<Address>, Error> {
        let key = Table::Alias.key(alias);
        let Some(row) = view.get(&key, wait).map_err(|error| self.error(error))? else {
            return Ok(None);
        };
        let row = AliasRow::decode(&row).ok_or_else(|| self.undecodable())?;
        Ok(Some(row.derivation))
    }

    pub(crate) fn pin(&self, address: &Address, wait: Wait) -> Result<Option<PinRow>, Error> {
        self.row(&Table::Pin.key(address), wait)
    }

    pub(crate) fn name(&self, name: &str, wait: Wait) -> Result<Option<NameRow>, Error> {
        self.row(&name_key(name), wait)
    }

    pub(crate) fn gone(&self, address: &Address, wait: Wait) -> Result<Option<GoneRow>, Error> {
        self.row(&Table::Gone.key(address), wait)
    }

    /// The memo of a derivation, if there is one.
    pub(crate) fn memo(&self, derivation: &Address, wait: Wait) -> Result<Option<Memo>, Error> {
        match self.memo_at_hand(derivation) {
            Ok(memo) => Ok(Some(memo)),
            Err(version) => self.memo_in(&self.index.view(), derivation, version, wait),
        }
    }

    /// A memo that is pending or cached; else the state of the cache, for [`Catalogue::memo_in`].
    fn memo_at_hand(&self, derivation: &Address) -> Result<Memo, Version> {
        match self.pending.memo(derivation) {
            Some(memo) => Ok(memo),
            None => self.recalled.get(derivation),
        }
    }

    /// The memo that the index has.
    fn memo_in(
        &self,
        view: &View,
        derivation: &Address,
        version: Version,
        wait: Wait,
    ) -> Result<Option<Memo>, Error> {
        let row: Option<MemoRow> = self.row_in(view, &Table::Memo.key(derivation), wait)?;
        Ok(row.map(|row| {
            self.recalled.found(version, &row.memo);
            row.memo
        }))
    }

    /// The memos of many derivations, in their order.
    pub(crate) fn memos(&self, derivations: &[Address], wait: Wait) -> Result<Vec<Option<Memo>>, Error> {
        let mut memos: Vec<Option<Memo>> = match self.pending.is_empty() {
            true => vec![None; derivations.len()],
            false => derivations.iter().map(|derivation| self.pending.memo(derivation)).collect(),
        };
        let keys: Vec<Key> = derivations.iter().map(|derivation| Table::Memo.key(derivation)).collect();
        let rows = self.index.get_many(&keys, wait).map_err(|error| self.error(error))?;
        for (memo, row) in memos.iter_mut().zip(rows).filter(|(memo, _)| memo.is_none()) {
            *memo = row.map(|row| self.decoded::<MemoRow>(&row)).transpose()?.map(|row| row.memo);
        }
        Ok(memos)
    }

    /// The index's row of a memo, decoded and as bytes.
    pub(crate) fn stored_memo(&self, derivation: &Address) -> Result<Option<(MemoRow, RowBytes)>, Error> {
        let row = self.row_bytes(&Table::Memo.key(derivation))?;
        row.map(|row| Ok((self.decoded::<MemoRow>(&row)?, row))).transpose()
    }

    pub(crate) fn is_pending(&self, derivation: &Address) -> bool {
        self.pending.memo(derivation).is_some()
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Makes a value and its memo visible before they are written; `None` if the same memo is pending already.
    pub(crate) fn announce(&self, memo: Memo, inputs: &[Address], bytes: Bytes) -> Option<Ticket> {
        self.pending.add(memo, inputs, bytes)
    }

    /// Removes an announced value: it is in the index now, or its write failed.
    pub(crate) fn settle(&self, ticket: Ticket, derivation: &Address, output: &Address) {
        self.pending.remove(ticket, derivation, output);
    }

    /// Drops all announced values: the writer has stopped.
    pub(crate) fn clear_pending(&self) {
        self.pending.clear();
    }

    /// Up to `most` derivations after `after` that read an address or its alias, in order of address.
    pub(crate) fn dependents(
        &self,
        asked: &Address,
        after: Option<Address>,
        most: usize,
    ) -> Result<Vec<Address>, Error> {
        let address = self.alias(asked, Wait::Yes)?.unwrap_or(*asked);
        let alias = self.derivation(&address, Wait::Yes)?.and_then(|row| row.alias);
        let mut pending: Vec<Address> = Vec::new();
        let mut found = Vec::new();
        for input in [Some(address), alias].into_iter().flatten() {
            // Pending before the index, as everywhere.
            pending.extend(self.pending.readers(&input));
            found.extend(self.readers(&input, after, most)?);
        }
        found.extend(pending.into_iter().filter(|reader| after.is_none_or(|after| *reader > after)));
        found.sort_unstable();
        found.dedup();
        found.truncate(most);
        Ok(found)
    }

    fn readers(&self, input: &Address, after: Option<Address>, most: usize) -> Result<Vec<Address>, Error> {
        let after = after.map(|after| Table::Edge.pair(input, &after));
        let scan = self.index.scan(Table::Edge.key(input).as_bytes(), after.as_ref());
        let mut found = Vec::new();
        for edge in scan.map_err(|error| self.error(error))? {
            if found.len() == most {
                break;
            }
            let (key, _) = edge.map_err(|error| self.error(error))?;
            let derivation = last_address(&key).expect("an edge's key has two addresses");
            // An edge may outlive its derivation, if the derivation's record was damaged.
            if self.derivation(&derivation, Wait::Yes)?.is_some()
                || self.memo(&derivation, Wait::Yes)?.is_some()
            {
                found.push(derivation);
            }
        }
        Ok(found)
    }

    /// All rows of a table after an address, in order, as bytes.
    pub(crate) fn rows(
        &self,
        table: Table,
        after: Option<Address>,
    ) -> Result<impl Iterator<Item = Result<(Address, RowBytes), Error>>, Error> {
        let after = after.map(|after| table.key(&after));
        let scan = self.index.scan(&[table as u8], after.as_ref()).map_err(|error| self.error(error))?;
        Ok(scan.map(|row| {
            let (key, row): (Key, RowBytes) = row.map_err(|error| self.error(error))?;
            Ok((last_address(&key).expect("a row's key has an address"), row))
        }))
    }

    /// The addresses of all rows whose keys begin with these bytes, in order.
    pub(crate) fn addresses(
        &self,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<Address, Error>>, Error> {
        let scan = self.index.scan(prefix, None).map_err(|error| self.error(error))?;
        Ok(scan.map(|row| {
            let (key, _) = row.map_err(|error| self.error(error))?;
            Ok(last_address(&key).expect("a row's key has an address"))
        }))
    }

    /// All pinned addresses after an address, in order.
    pub(crate) fn pins(
        &self,
        after: Option<Address>,
    ) -> Result<impl Iterator<Item = Result<Address, Error>>, Error> {
        Ok(self.rows(Table::Pin, after)?.map(|row| Ok(row?.0)))
    }

    pub(crate) fn names(&self) -> Result<impl Iterator<Item = Result<NameRow, Error>>, Error> {
        Ok(self.rows(Table::Name, None)?.map(|row| self.decoded(&row?.1)))
    }

    /// Applies a batch's changes, up to a position of the log, to index and tally: readers see them from now on.
    /// Returns the files that no record names any more.
    pub(crate) fn apply(&self, mut changes: Changes<'_>, position: Position, tally: &mut Tally) -> Vec<Name> {
        tally.add(changes.tally());
        self.index.apply(changes.rows(), position, || tally.encode());
        changes.orphans()
    }

    /// Called by the writer: this memo is in the index now.
    pub(crate) fn memo_written(&self, memo: &Memo) {
        self.recalled.written(memo);
    }

    /// Called by the writer: the index has no memo of this derivation now.
    pub(crate) fn memo_removed(&self, derivation: &Address) {
        self.recalled.removed(derivation);
    }

    /// The index itself, for the threads that flush and check it.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The row under a key, as bytes.
    pub(crate) fn row_bytes(&self, key: &Key) -> Result<Option<RowBytes>, Error> {
        self.row_bytes_in(&self.index.view(), key)
    }

    /// The same, in a view of the index.
    pub(crate) fn row_bytes_in(&self, view: &View, key: &Key) -> Result<Option<RowBytes>, Error> {
        view.get(key, Wait::Yes).map_err(|error| self.error(error))
    }

    /// The same, of a key that had no row when these runs of the index were looked through.
    pub(crate) fn row_bytes_since(
        &self,
        view: &View,
        key: &Key,
        absent: Generation,
    ) -> Result<Option<RowBytes>, Error> {
        view.get_since(key, absent, Wait::Yes).map_err(|error| self.error(error))
    }

    fn row<R: Row>(&self, key: &Key, wait: Wait) -> Result<Option<R>, Error> {
        self.row_in(&self.index.view(), key, wait)
    }

    fn row_in<R: Row>(&self, view: &View, key: &Key, wait: Wait) -> Result<Option<R>, Error> {
        match view.get(key, wait) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => self.decoded(&bytes).map(Some),
            Err(error) => Err(self.error(error)),
        }
    }

    pub(crate) fn decoded<R: Row>(&self, bytes: &[u8]) -> Result<R, Error> {
        R::decode(bytes).ok_or_else(|| self.undecodable())
    }

    fn undecodable(&self) -> Error {
        let what = "an entry that no store writes".to_owned();
        self.error(index::Error::Damaged { path: "index".into(), what })
    }

    /// Converts an error of the index. Damage asks for the index to be rebuilt: by the index thread, or when the store is
    /// opened again, whichever comes first.
    pub(crate) fn error(&self, error: index::Error) -> Error {
        match error {
            index::Error::Disk(error) => error,
            index::Error::WouldBlock => Error::WouldBlock,
            index::Error::Damaged { path, what } => {
                let what = format!("`{}`: {what}", path.display());
                self.healing.found_damage(&what, || self.index.may_read(&path));
                self.background.wake();
                Error::Index { what }
            }
        }
    }
}
