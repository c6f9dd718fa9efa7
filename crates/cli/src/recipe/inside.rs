//! Calls about the content of a store: pages of items, short addresses, space and its holders, single removals.

use anabranch_content::{Address, DryRun, ListedBlob, ListedDerivation, RemovedItems, Root, Usage};

use super::backend::Backend;
use super::owner::Owner;
use super::place::Connection;
use super::show::shell_word;
use crate::failure::Failure;

impl Backend {
    /// Up to `most` blobs after an address, in order.
    pub(super) async fn blobs(&self, after: Option<Address>, most: u32) -> Result<Vec<ListedBlob>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().list_blobs(after, most as usize).await?)
            }
            Connection::Client(client) => Ok(client.list_blobs(after, most).await?),
        })
        .await
    }

    /// Up to `most` recipes after an address, in order.
    pub(super) async fn recipes(
        &self,
        after: Option<Address>,
        most: u32,
    ) -> Result<Vec<ListedDerivation>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().list_derivations(after, most as usize).await?)
            }
            Connection::Client(client) => Ok(client.list_derivations(after, most).await?),
        })
        .await
    }

    /// Up to `most` addresses that begin with these hex digits.
    pub(super) async fn find_prefix(&self, prefix: &str, most: u32) -> Result<Vec<Address>, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().find_prefix(prefix, most as usize).await?)
            }
            Connection::Client(client) => Ok(client.find_prefix(prefix, most).await?),
        })
        .await
    }

    /// The use of space: totals, up to `most` holders, and the holders of these addresses.
    pub(super) async fn usage(&self, most: u32, addresses: &[Address]) -> Result<Usage, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().usage(most as usize, addresses).await?)
            }
            Connection::Client(client) => Ok(client.usage(most, addresses).await?),
        })
        .await
    }

    /// Removes a blob or a recipe that nothing protects.
    pub(super) async fn remove(&self, address: Address) -> Result<RemovedItems, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().remove(&address, DryRun::No).await?)
            }
            Connection::Client(client) => Ok(client.remove(&address, DryRun::No).await?),
        })
        .await
    }

    /// The items that this would remove once the other addresses are removed.
    pub(super) async fn would_remove(
        &self,
        address: Address,
        after: &[Address],
    ) -> Result<RemovedItems, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => {
                Ok(executor.store().would_remove(&address, after).await?)
            }
            Connection::Client(client) => Ok(client.would_remove(&address, after).await?),
        })
        .await
    }

    /// Drops a name with its history; true if the name existed.
    pub(super) async fn forget_ref(&self, name: &str) -> Result<bool, Failure> {
        self.call(async |connection| match connection {
            Connection::Owner(Owner { executor, .. }) => Ok(executor.store().forget_name(name).await?),
            Connection::Client(client) => Ok(client.forget_ref(name).await?),
        })
        .await
    }
}

/// Describes a holder.
pub(super) fn holder(root: &Root) -> String {
    match root {
        Root::Name(name) => name.clone(),
        Root::Pin(pin) => format!("pin {}", short(pin)),
        Root::History(name) => format!("history of {name}"),
        Root::Import { id, label } => format!("import {id} ({label})"),
    }
}

/// The command that drops a holder.
pub(super) fn way_out(root: &Root) -> String {
    match root {
        Root::Name(name) | Root::History(name) => {
            format!("`anabranch recipe ref drop {} --history` drops that name", shell_word(name))
        }
        Root::Pin(pin) => format!("`anabranch recipe unpin {}` drops that pin", short(pin)),
        Root::Import { id, .. } => format!("`anabranch recipe imports drop {id}` drops that import"),
    }
}

/// The first digits of an address, which commands accept.
pub(super) fn short(address: &Address) -> String {
    address.to_string()[..12].to_owned()
}
