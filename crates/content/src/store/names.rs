//! Names in pages. The index has names in the order of their hashes, so their own order is kept in memory once a page
//! was read.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;

use super::commit::Order;
use super::quota::Claim;
use super::roots::is_reserved;
use super::{Core, Store, lock};
use crate::facts::NameChange;
use crate::{Address, Error};

/// Names that point to an address, in order.
type NamedAddresses = BTreeMap<String, Address>;

/// The order of all names.
#[derive(Debug)]
pub(super) struct NameOrder {
    /// The most names whose order is kept ([`super::Config::names_kept`]).
    kept_most: usize,
    /// Held while a name changes, and while the names are read.
    changing: tokio::sync::Mutex<()>,
    /// `None` until a page is read, and while a name changes: a change that is given up half-way may be in the log or
    /// not.
    names: Mutex<Option<NamedAddresses>>,
}

/// Changes of names that are being written.
pub(super) struct NameChangeUnderWay<'a> {
    order: &'a NameOrder,
    names: Option<NamedAddresses>,
}

impl NameOrder {
    pub(super) fn new(kept_most: usize) -> NameOrder {
        NameOrder { kept_most, changing: tokio::sync::Mutex::default(), names: Mutex::default() }
    }

    /// Waits for a turn to change a name: changes run one at a time.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// The same, on a thread that may wait.
    pub(super) fn blocking_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.blocking_lock()
    }

    /// Begins to change names. Dropping it instead of [`NameChangeUnderWay::written`] forgets the order.
    pub(super) fn change(&self) -> NameChangeUnderWay<'_> {
        NameChangeUnderWay { order: self, names: lock(&self.names).take() }
    }

    /// Forgets the order: the next page reads the names.
    pub(super) fn forget(&self) {
        lock(&self.names).take();
    }

    fn page(&self, after: &str, most: usize) -> Option<Vec<(String, Address)>> {
        let names = lock(&self.names);
        let rest = names.as_ref()?.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        Some(rest.take(most).map(|(name, address)| (name.clone(), *address)).collect())
    }
}

impl NameChangeUnderWay<'_> {
    /// The names point to these addresses now.
    pub(super) fn written(self, changes: impl IntoIterator<Item = (String, Option<Address>)>) {
        let Some(mut names) = self.names else { return };
        for (name, address) in changes {
            match address {
                Some(address) => _ = names.insert(name, address),
                None => _ = names.remove(&name),
            }
        }
        if names.len() <= self.order.kept_most {
            *lock(&self.order.names) = Some(names);
        }
    }
}

impl Store {
    /// All names that point to an address, with their addresses, in order.
    pub async fn names(&self) -> Result<Vec<(String, Address)>, Error> {
        let names = self.reading(|core| named_addresses(core, "", usize::MAX)).await?;
        Ok(names.into_iter().collect())
    }

    /// Up to `most` names after `after` (empty: from the first one) that point to an address, with their addresses, in
    /// order. The first call reads all names and keeps their order in memory; later ones read their page alone, unless
    /// there are more names than [`super::Config::names_kept`].
    pub async fn names_after(&self, after: &str, most: usize) -> Result<Vec<(String, Address)>, Error> {
        let core = &self.inner.core;
        if let Some(page) = core.names.page(after, most) {
            return Ok(page);
        }
        let _turn = core.names.turn().await;
        if let Some(page) = core.names.page(after, most) {
            return Ok(page);
        }
        // A change whose caller has given up waiting may still be in the writer's queue.
        core.submit(Order::Pass, 0, Claim::default()).await?;
        if core.tally().names as usize > core.names.kept_most {
            let after = after.to_owned();
            let page = self.reading(move |core| named_addresses(core, &after, most)).await?;
            return Ok(page.into_iter().collect());
        }
        let names = self.reading(|core| named_addresses(core, "", usize::MAX)).await?;
        *lock(&core.names.names) = Some(names);
        Ok(core.names.page(after, most).unwrap_or_default())
    }
}

/// The first names after `after`, at most so many.
fn named_addresses(core: &Core, after: &str, most: usize) -> Result<NamedAddresses, Error> {
    let mut names = NamedAddresses::new();
    for row in core.catalogue.names()? {
        let row = row?;
        if let Some(NameChange { address: Some(address), .. }) = row.history.last()
            && !is_reserved(&row.name)
            && row.name.as_str() > after
        {
            names.insert(row.name, *address);
            if names.len() > most {
                names.pop_last();
            }
        }
    }
    Ok(names)
}
