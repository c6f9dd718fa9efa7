//! Queries about addresses: the data under one, its dependents, and lists.

use super::catalogue::{AddressStatus, FoundData};
use super::commit::Order;
use super::tables::Table;
use super::{Core, Store};
use crate::facts::{Derivation, Memo, RemovalRecord};
use crate::{Address, Error, Wait};

/// The data that a store has under an address, the most useful kind first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The memo of a derivation. The bytes of its output may be missing.
    Memo(Memo),
    /// The description of a derivation without a memo.
    Derivation(Derivation),
    /// A blob, by its length in bytes.
    Blob(u64),
    /// The address is not in the store.
    Nothing,
}

impl Store {
    /// The most useful data under an address. An alias is followed.
    pub async fn known(&self, address: &Address) -> Result<Lookup, Error> {
        let address = *address;
        self.quick(move |core, wait| core.known(&address, wait)).await
    }

    /// Whether an address is that of a blob, of a described derivation or an alias of one. Their bytes are not read, so they
    /// may be damaged.
    pub async fn contains(&self, address: &Address) -> Result<bool, Error> {
        if self.inner.core.cache.contains(address) {
            return Ok(true);
        }
        let address = *address;
        self.quick(move |core, wait| core.catalogue.contains(&address, wait)).await
    }

    /// Everything that the store knows about an address, including when and why its data was removed. An alias is
    /// followed.
    pub async fn status(&self, address: &Address) -> Result<AddressStatus, Error> {
        let address = *address;
        self.quick(move |core, wait| core.catalogue.status(&address, wait)).await
    }

    /// When and why data under an address was removed; `None` if none was, or it came back. An alias is not followed.
    pub async fn removal(&self, address: &Address) -> Result<Option<RemovalRecord>, Error> {
        let address = *address;
        let row = self.quick(move |core, wait| core.catalogue.gone(&address, wait)).await?;
        Ok(row.map(|row| row.gone))
    }

    /// The status of many addresses, in their order.
    pub async fn statuses(&self, addresses: &[Address]) -> Result<Vec<AddressStatus>, Error> {
        let addresses = addresses.to_vec();
        self.quick(move |core, wait| {
            addresses.iter().map(|address| core.catalogue.status(address, wait)).collect()
        })
        .await
    }

    /// The derivation that an alias leads to; `None` for any other address.
    pub async fn alias(&self, alias: &Address) -> Result<Option<Address>, Error> {
        let alias = *alias;
        self.quick(move |core, wait| core.catalogue.alias(&alias, wait)).await
    }

    /// Up to `most` derivations after `after` that read this address or its alias, in order of address.
    pub async fn dependents(
        &self,
        address: &Address,
        after: Option<Address>,
        most: usize,
    ) -> Result<Vec<Address>, Error> {
        let address = *address;
        self.reading(move |core| core.catalogue.dependents(&address, after, most)).await
    }

    /// Up to `most` addresses of described derivations after `after`, in order.
    pub async fn derivations(&self, after: Option<Address>, most: usize) -> Result<Vec<Address>, Error> {
        self.reading(move |core| {
            core.catalogue.rows(Table::Derivation, after)?.take(most).map(|row| Ok(row?.0)).collect()
        })
        .await
    }
}

impl Core {
    fn known(&self, address: &Address, wait: Wait) -> Result<Lookup, Error> {
        Ok(match self.catalogue.find(address, wait)? {
            FoundData::Memo(memo) => Lookup::Memo(memo),
            FoundData::Derivation(address, row) => {
                self.described(&address, row, wait)?.map_or(Lookup::Nothing, Lookup::Derivation)
            }
            FoundData::Blob(blob) => Lookup::Blob(blob.size()),
            FoundData::Nothing => Lookup::Nothing,
        })
    }

    /// Waits until all pending values are in the index or dropped.
    pub(super) fn wait_for_pending(&self) -> Result<(), Error> {
        match self.catalogue.has_pending() {
            true => self.submit_blocking(Order::Pass).map(|_| ()),
            false => Ok(()),
        }
    }
}
