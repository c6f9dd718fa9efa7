//! Calls about the content of a store: imports, lists, short addresses, single removals.

use anabranch_content::{
    Address, DroppedImport, DryRun, Import, ImportRecord, ImportReport, ListedBlob, ListedDerivation, Memo,
    RemovedItems, Usage,
};
use bytes::Bytes;
use futures_util::Stream;

use super::{Client, Error, streams};
use crate::proto::recipes as proto;
use crate::wire::{self, MalformedMessage};

impl Client {
    /// Adds the content of an archive. The server checks Deriva's addresses, so `alias_of` of the terms is not used.
    pub async fn import<E>(
        &self,
        stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        terms: &Import,
    ) -> Result<ImportReport, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut recipes = self.recipes.clone();
        let (trust_memos, label) = (terms.trust_memos, terms.label.clone());
        let write = move |chunk| proto::ImportRequest { chunk, trust_memos, label: label.clone() };
        let reply = streams::send(stream, write, |chunks| recipes.import(chunks)).await?;
        Ok(wire::imported(reply)?)
    }

    /// The imports that still protect their content from collection, oldest first.
    pub async fn imports(&self) -> Result<Vec<ImportRecord>, Error> {
        let reply = self.recipes.clone().imports(proto::ImportsRequest {}).await?.into_inner();
        Ok(reply.imports.into_iter().map(wire::import_record).collect())
    }

    /// Drops an import by its id; `None` if there is none.
    pub async fn drop_import(&self, id: &str) -> Result<Option<DroppedImport>, Error> {
        let request = proto::DropImportRequest { id: id.to_owned() };
        let reply = self.recipes.clone().drop_import(request).await?.into_inner();
        let (memos, names) = (reply.memos, reply.names);
        let dropped = |record| DroppedImport { record: wire::import_record(record), memos, names };
        Ok(reply.dropped.map(dropped))
    }

    /// Up to `most` blobs after `after`, in order of address.
    pub async fn list_blobs(&self, after: Option<Address>, most: u32) -> Result<Vec<ListedBlob>, Error> {
        self.list(proto::ListKind::Blobs, after, most, wire::listed_blob).await
    }

    /// Up to `most` recipes after `after`, in order of address.
    pub async fn list_derivations(
        &self,
        after: Option<Address>,
        most: u32,
    ) -> Result<Vec<ListedDerivation>, Error> {
        self.list(proto::ListKind::Recipes, after, most, wire::listed_derivation).await
    }

    /// Up to `most` memos after that of the recipe `after`, in order of their recipes.
    pub async fn list_memos(&self, after: Option<Address>, most: u32) -> Result<Vec<Memo>, Error> {
        self.list(proto::ListKind::Memos, after, most, wire::listed_memo).await
    }

    /// Up to `most` addresses of blobs and recipes that begin with these hex digits, at least 4.
    pub async fn find_prefix(&self, prefix: &str, most: u32) -> Result<Vec<Address>, Error> {
        let request = proto::FindPrefixRequest { prefix: prefix.to_owned(), most };
        let reply = self.recipes.clone().find_prefix(request).await?.into_inner();
        Ok(wire::addresses("addresses", &reply.addresses)?)
    }

    /// The use of space: the totals, the space of up to `most` holders, and the holders of these addresses.
    pub async fn usage(&self, most: u32, addresses: &[Address]) -> Result<Usage, Error> {
        let request = proto::UsageRequest { most, addresses: wire::from_addresses(addresses) };
        Ok(wire::usage(self.recipes.clone().usage(request).await?.into_inner())?)
    }

    /// Removes one blob or recipe; an error if something holds it.
    pub async fn remove(&self, address: &Address, dry_run: DryRun) -> Result<RemovedItems, Error> {
        let address = wire::from_address(address);
        let request = proto::RemoveRequest { address, dry_run: dry_run == DryRun::Yes, after: Vec::new() };
        Ok(wire::removed(&self.recipes.clone().remove(request).await?.into_inner()))
    }

    /// The items that [`Client::remove`] would remove once these other addresses are removed. Nothing is removed.
    pub async fn would_remove(&self, address: &Address, after: &[Address]) -> Result<RemovedItems, Error> {
        let (address, after) = (wire::from_address(address), wire::from_addresses(after));
        let request = proto::RemoveRequest { address, dry_run: true, after };
        Ok(wire::removed(&self.recipes.clone().remove(request).await?.into_inner()))
    }

    async fn list<T>(
        &self,
        kind: proto::ListKind,
        after: Option<Address>,
        most: u32,
        listed: fn(&proto::ListedItem) -> Result<T, MalformedMessage>,
    ) -> Result<Vec<T>, Error> {
        let after = after.as_ref().map(wire::from_address);
        let request = proto::ListRequest { kind: kind.into(), after, most };
        let reply = self.recipes.clone().list(request).await?.into_inner();
        Ok(reply.listed.iter().map(listed).collect::<Result<_, _>>()?)
    }
}
