//! A look inside: lists blobs, derivations and memos page by page, finds addresses by their beginning, and removes
//! single items.

use super::commit::{DoomedItem, Order, RemovalCondition, RemovalGroup};
use super::imports;
use super::sweep::Producers;
use super::tables::{Blob, DerivationRow, MemoRow, Row, Table};
use super::{Core, DryRun, Event, Store, lock};
use crate::facts::{Class, Memo, RemovalReason, Time};
use crate::log::{ItemKind, ItemRemoval};
use crate::{Address, Error, Wait};

/// A blob in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    /// Its address.
    pub address: Address,
    /// Its length in bytes.
    pub size: u64,
    /// Its class.
    pub class: Class,
    /// When it was put, or last put again.
    pub at: Time,
}

/// A derivation in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedDerivation {
    /// Its address.
    pub address: Address,
    /// Another address that leads to it.
    pub alias: Option<Address>,
    /// When it was described, or last described again.
    pub at: Time,
}

/// The items that were removed from under an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedItems {
    /// The blob's length in bytes, if a blob was removed: that of the address, or the value of its derivation.
    pub blob: Option<u64>,
    /// Whether the description of a derivation was removed.
    pub derivation: bool,
    /// The number of memos removed: the derivation's own, or those whose output the blob was.
    pub memos: u64,
}

/// The fewest hex digits by which an address is found.
const PREFIX_LEAST: usize = 4;

impl Store {
    /// Up to `most` blobs after `after`, in order of address. Intermediate values are blobs too.
    pub async fn list_blobs(&self, after: Option<Address>, most: usize) -> Result<Vec<ListedBlob>, Error> {
        let listed = |address, Blob { class, at, .. }, size| ListedBlob { address, size, class, at };
        self.page(Table::Blob, after, most, move |address, row: Blob| listed(address, row, row.size())).await
    }

    /// Up to `most` derivations after `after`, in order of address.
    pub async fn list_derivations(
        &self,
        after: Option<Address>,
        most: usize,
    ) -> Result<Vec<ListedDerivation>, Error> {
        self.page(Table::Derivation, after, most, |address, row: DerivationRow| ListedDerivation {
            address,
            alias: row.alias,
            at: row.at,
        })
        .await
    }

    /// Up to `most` memos after that of the derivation `after`, in order of their derivations.
    pub async fn list_memos(&self, after: Option<Address>, most: usize) -> Result<Vec<Memo>, Error> {
        self.page(Table::Memo, after, most, |_, row: MemoRow| row.memo).await
    }

    /// Up to `most` addresses of blobs and derivations (or their aliases) that begin with these hex digits, at least 4,
    /// in order.
    pub async fn find_prefix(&self, prefix: &str, most: usize) -> Result<Vec<Address>, Error> {
        let wrong = || Error::Prefix { prefix: prefix.to_owned() };
        if !(PREFIX_LEAST..=64).contains(&prefix.len()) {
            return Err(wrong());
        }
        let digits: Option<Vec<u8>> =
            prefix.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.ok_or_else(wrong)?;
        self.reading(move |core| {
            core.wait_for_pending()?;
            core.find_prefix(&digits, most)
        })
        .await
    }

    /// Removes the blob or derivation under an address: a blob with the memos whose output it is, a derivation with its
    /// memo and with its computed value, unless something else leads to that value. [`Error::Held`] if a pin, a name, an
    /// import, a lease or another derivation holds the address, and [`Error::Missing`] if there is nothing to remove. A
    /// dry run removes nothing.
    pub async fn remove(&self, address: &Address, dry_run: DryRun) -> Result<RemovedItems, Error> {
        let address = *address;
        self.in_turn(
            |turns| &turns.keeping,
            move |core| core.with_reserve(|| remove(core, &address, &[], dry_run)),
        )
        .await
    }

    /// The items that [`Store::remove`] would remove once these other addresses are removed. Nothing is removed.
    pub async fn would_remove(&self, address: &Address, after: &[Address]) -> Result<RemovedItems, Error> {
        let (address, after) = (*address, after.to_vec());
        self.in_turn(
            |turns| &turns.keeping,
            move |core| core.with_reserve(|| remove(core, &address, &after, DryRun::Yes)),
        )
        .await
    }

    async fn page<R: Row, T: Send + 'static>(
        &self,
        table: Table,
        after: Option<Address>,
        most: usize,
        listed: impl Fn(Address, R) -> T + Send + Sync + 'static,
    ) -> Result<Vec<T>, Error> {
        self.reading(move |core| {
            if after.is_none() {
                core.wait_for_pending()?;
            }
            let mut page = Vec::new();
            for row in core.catalogue.rows(table, after)?.take(most) {
                let (address, row) = row?;
                page.push(listed(address, core.catalogue.decoded(&row)?));
            }
            Ok(page)
        })
        .await
    }
}

impl Core {
    fn find_prefix(&self, digits: &[u8], most: usize) -> Result<Vec<Address>, Error> {
        let (pairs, half) = digits.as_chunks::<2>();
        let bytes = pairs.iter().map(|[high, low]| high << 4 | low);
        let mut found = Vec::new();
        for table in [Table::Blob, Table::Derivation, Table::Alias] {
            let prefix: Vec<u8> = std::iter::once(table as u8).chain(bytes.clone()).collect();
            let place = prefix.len() - 1;
            let fits =
                |address: &Address| half.first().is_none_or(|half| address.as_bytes()[place] >> 4 == *half);
            let mut count = 0;
            for address in self.catalogue.addresses(&prefix)? {
                let address = address?;
                if fits(&address) {
                    found.push(address);
                    count += 1;
                }
                if count == most {
                    break;
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(most);
        Ok(found)
    }

    /// A derivation that reads the address and is not one of these.
    fn reader(&self, address: &Address, besides: &[Address]) -> Result<Option<Address>, Error> {
        let readers = self.catalogue.dependents(address, None, besides.len() + 1)?;
        Ok(readers.into_iter().find(|reader| !besides.contains(reader)))
    }

    /// The holder of a removable item, if there is one.
    fn holder(&self, addresses: &[Address]) -> Result<Option<String>, Error> {
        for address in addresses {
            if self.catalogue.pin(address, Wait::Yes)?.is_some() {
                return Ok(Some(format!("a pin of {address}")));
            }
        }
        for row in self.catalogue.names()? {
            let row = row?;
            if let Some(import) = imports::record(&row) {
                if imports::holds(self, &row, addresses)? {
                    return Ok(Some(format!("import {} ({})", import.id, import.label)));
                }
                continue;
            }
            let is_here =
                |change: &crate::NameChange| change.address.is_some_and(|it| addresses.contains(&it));
            let now = row.history.last().is_some_and(is_here);
            if row.history.iter().any(is_here) {
                let what = if now { "name" } else { "the history of name" };
                return Ok(Some(format!("{what} {:?}", row.name)));
            }
        }
        let held = self.guard.held();
        Ok(addresses.iter().any(|address| held.contains(address)).then(|| "a run in progress".to_owned()))
    }
}

fn remove(core: &Core, address: &Address, after: &[Address], dry_run: DryRun) -> Result<RemovedItems, Error> {
    core.wait_for_pending()?;
    let _only = lock(&core.keeping);
    // As in a collection: what holds the address from now on is noticed by the writer.
    let _collecting = core.guard.begin();
    let removal = Removal::of(core, address, after)?;
    match dry_run {
        DryRun::Yes => Ok(removal.items),
        DryRun::No => removal.carry_out(core),
    }
}

/// The items to be removed.
struct Removal {
    address: Address,
    /// The items under the address, which are removed together.
    own: RemovalGroup,
    /// The value of the derivation, and the other memos of that value.
    value: RemovalGroup,
    items: RemovedItems,
    /// The blobs that go.
    blobs: Vec<Address>,
}

impl Removal {
    /// Finds the items, none of which is held, as if the addresses `after` were removed.
    fn of(core: &Core, address: &Address, after: &[Address]) -> Result<Removal, Error> {
        let address = core.catalogue.alias(address, Wait::Yes)?.unwrap_or(*address);
        let (own, value, blobs, items) = Default::default();
        let mut removal = Removal { address, own, value, items, blobs };
        let derivation = core.catalogue.derivation(&address, Wait::Yes)?;
        let blob = core.catalogue.stored_blob(&address, Wait::Yes)?;
        let memo = core.catalogue.stored_memo(&address)?;
        let needs_producers = blob.is_some() || memo.is_some();
        let producers = if needs_producers { Some(Producers::find(core)?) } else { None };
        let of_blob = match (&producers, blob) {
            (Some(producers), Some(_)) => producers.of(core, &address)?,
            _ => Vec::new(),
        };
        let mut addresses = vec![address];
        addresses.extend(derivation.and_then(|row| row.alias));
        // The value of a held derivation is held too.
        addresses.extend(of_blob.iter().map(|(row, _)| row.memo.derivation));
        let held = |holder| Error::Held { address, holder };
        if let Some(holder) = core.holder(&addresses)? {
            return Err(held(holder));
        }
        if let Some(reader) = core.reader(&address, after)? {
            return Err(held(format!("derivation {reader}, which reads it,")));
        }
        if let (Some(producers), Some((row, _))) = (&producers, &memo) {
            removal.add_value(core, producers, &row.memo.output, after)?;
        }
        if let Some(blob) = blob {
            removal.own.push(blob_to_go(address, &blob));
            removal.items.blob = Some(blob.size());
            removal.blobs.push(address);
        }
        for (row, bytes) in of_blob.into_iter().chain(memo) {
            removal
                .own
                .push(DoomedItem { removed: core.doom_memo(&row)?, when: RemovalCondition::Unwanted(bytes) });
            removal.items.memos += 1;
        }
        if let Some(row) = derivation {
            let edges = core.derivation(&address, Wait::Yes)?.map(|it| it.inputs).unwrap_or_default();
            let removed = ItemRemoval { address, what: ItemKind::Derivation, edges };
            removal.own.push(DoomedItem { removed, when: RemovalCondition::Unwanted(row.encode()) });
            removal.items.derivation = true;
        }
        if removal.own.is_empty() {
            return Err(Error::Missing { address });
        }
        Ok(removal)
    }

    /// Adds the computed value of the derivation, unless another derivation has the same value or something holds it.
    fn add_value(
        &mut self,
        core: &Core,
        producers: &Producers,
        output: &Address,
        after: &[Address],
    ) -> Result<(), Error> {
        let Some(blob) = core.catalogue.stored_blob(output, Wait::Yes)? else { return Ok(()) };
        let mut others = producers.of(core, output)?;
        others
            .retain(|(row, _)| row.memo.derivation != self.address && !after.contains(&row.memo.derivation));
        let mut addresses = vec![*output];
        addresses.extend(others.iter().map(|(row, _)| row.memo.derivation));
        for other in &addresses[1..] {
            if core.catalogue.derivation(other, Wait::Yes)?.is_some() {
                return Ok(());
            }
        }
        let is_read = core.reader(output, after)?.is_some();
        if blob.class == Class::Acknowledged || is_read || core.holder(&addresses)?.is_some() {
            return Ok(());
        }
        self.value.push(blob_to_go(*output, &blob));
        for (row, bytes) in others {
            self.value
                .push(DoomedItem { removed: core.doom_memo(&row)?, when: RemovalCondition::Unwanted(bytes) });
            self.items.memos += 1;
        }
        self.items.blob = Some(blob.size());
        self.blobs.push(*output);
        Ok(())
    }

    fn carry_out(self, core: &Core) -> Result<RemovedItems, Error> {
        let Removal { address, own, value, items, blobs } = self;
        let why = RemovalReason::Invalidated;
        let groups = [own, value].into_iter().filter(|group| !group.is_empty());
        let removed = core.submit_blocking(Order::Remove(why, groups.collect()))?.removed;
        if removed.is_empty() {
            return Err(Error::Held { address, holder: "a call in progress".to_owned() });
        }
        for blob in &blobs {
            core.cache.remove(blob);
        }
        core.tell(&Event::Removed { count: removed.len(), why });
        core.keeper.wake();
        let is_gone = |blob: &Address| removed.contains(&(*blob, ItemKind::Blob));
        let memos = removed.iter().filter(|(_, what)| matches!(what, ItemKind::Memo(_))).count() as u64;
        Ok(RemovedItems { blob: items.blob.filter(|_| blobs.iter().any(is_gone)), memos, ..items })
    }
}

fn blob_to_go(address: Address, blob: &Blob) -> DoomedItem {
    let removed = ItemRemoval { address, what: ItemKind::Blob, edges: Vec::new() };
    DoomedItem { removed, when: RemovalCondition::Unwanted(blob.encode()) }
}
