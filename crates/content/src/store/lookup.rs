//! Questions about addresses: what is under one, who reads it, what is listed.

use super::catalogue::{AddressStatus, Found};
use super::commit::Order;
use super::tables::Table;
use super::{Core, Store};
use crate::facts::{Derivation, Memo};
use crate::{Address, Error, Wait};

/// What a store has under an address, the most useful answer first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The remembered output of a derivation. Its bytes may be gone all the same.
    Memo(Memo),
    /// The description of a derivation whose output is not remembered.
    Derivation(Derivation),
    /// A blob of so many bytes.
    Blob(u64),
    /// Nothing.
    Nothing,
}

impl Store {
    /// The most useful answer about an address. An alias answers for the derivation that it leads to.
    pub async fn known(&self, address: &Address) -> Result<Lookup, Error> {
        let address = *address;
        self.quick(move |core, wait| core.known(&address, wait)).await
    }

    /// Everything that is known about an address, and why what was there is not any more. An alias answers for the
    /// derivation that it leads to.
    pub async fn status(&self, address: &Address) -> Result<AddressStatus, Error> {
        let address = *address;
        self.quick(move |core, wait| core.catalogue.status(&address, wait)).await
    }

    /// The same for many addresses, in their order.
    pub async fn statuses(&self, addresses: &[Address]) -> Result<Vec<AddressStatus>, Error> {
        let addresses = addresses.to_vec();
        self.quick(move |core, wait| {
            addresses.iter().map(|address| core.catalogue.status(address, wait)).collect()
        })
        .await
    }

    /// The derivation that an alias leads to; nothing for any other address.
    pub async fn alias(&self, alias: &Address) -> Result<Option<Address>, Error> {
        let alias = *alias;
        self.quick(move |core, wait| core.catalogue.alias(&alias, wait)).await
    }

    /// The derivations that read this address, or its alias, in the order of theirs: at most so many, behind `after`.
    pub async fn dependents(
        &self,
        address: &Address,
        after: Option<Address>,
        most: usize,
    ) -> Result<Vec<Address>, Error> {
        let address = *address;
        self.blocking(move |core| core.catalogue.dependents(&address, after, most)).await
    }

    /// Addresses of derivations whose description is there, in order: at most so many, behind `after`.
    pub async fn derivations(&self, after: Option<Address>, most: usize) -> Result<Vec<Address>, Error> {
        self.blocking(move |core| {
            core.catalogue.rows(Table::Derivation, after)?.take(most).map(|row| Ok(row?.0)).collect()
        })
        .await
    }
}

impl Core {
    fn known(&self, address: &Address, wait: Wait) -> Result<Lookup, Error> {
        Ok(match self.catalogue.find(address, wait)? {
            Found::Memo(memo) => Lookup::Memo(memo),
            Found::Derivation(address) => {
                self.derivation(&address, wait)?.map_or(Lookup::Nothing, Lookup::Derivation)
            }
            Found::Blob(blob) => Lookup::Blob(blob.size()),
            Found::Nothing => Lookup::Nothing,
        })
    }

    /// Waits until what is on its way to the log is in the index, or not known any more.
    pub(super) fn wait_for_pending(&self) -> Result<(), Error> {
        match self.catalogue.has_pending() {
            true => self.submit_blocking(Order::Pass).map(|_| ()),
            false => Ok(()),
        }
    }
}
