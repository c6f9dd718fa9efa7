//! The names that imports set: dropped with the import, if they still have its addresses.
//!
//! They are listed in a blob, a map from names to addresses in canonical encoding.

use std::collections::BTreeMap;

use super::import::ImportedName;
use super::imports::record;
use super::pipeline::Pipeline;
use super::quota::Claim;
use super::tables::NameRow;
use super::{Core, Store};
use crate::facts::{Class, NameChange};
use crate::log::Fact;
use crate::{Address, Error, Value, Wait};

type ListedNames = BTreeMap<String, Value>;

impl Store {
    /// Sets the names of an archive that are free, and lists them with the import that this name of the store's own
    /// leads to.
    pub(super) async fn set_free_names(
        &self,
        names: &mut [ImportedName],
        skip_name: Option<fn(&str) -> bool>,
        import: Option<String>,
    ) -> Result<(), Error> {
        let mut set = ListedNames::new();
        for it in names {
            it.is_skipped = skip_name.is_some_and(|skip| skip(&it.name));
            if it.is_skipped {
                continue;
            }
            match self.name_if(&it.name, Some(it.address), None).await {
                Ok(_) => _ = set.insert(it.name.clone(), Value::Address(it.address)),
                Err(Error::NameConflict { found, .. }) => {
                    it.taken_by = found.filter(|found| *found != it.address);
                }
                Err(error) => return Err(error),
            }
        }
        match import {
            Some(import) if !set.is_empty() => self.list_names(import, set).await,
            _ => Ok(()),
        }
    }

    async fn list_names(&self, import: String, set: ListedNames) -> Result<(), Error> {
        let core = &self.inner.core;
        let _turn = core.names.turn().await;
        let read = {
            let import = import.clone();
            self.reading(move |core| {
                let row = core.catalogue.name(&import, Wait::Yes)?;
                row.map(|row| Ok((listed_names(core, &row)?, row))).transpose()
            })
        };
        // The import may have been dropped in the meantime.
        let Some((mut names, row)) = read.await? else { return Ok(()) };
        names.extend(set);
        let bytes = Value::Map(names).encode().expect("a map of addresses is not nested");
        let address = Address::of(&bytes);
        let _wanted = core.guard.want(vec![address]);
        self.put(bytes, Class::Acknowledged).await?;
        let history =
            [Some(NameChange { address: Some(address), at: core.now() }), row.history.last().copied()];
        let fact = Fact::Name { name: import, history: history.into_iter().flatten().collect() };
        let claim = core.claim(fact.size_hint() as u64).await?;
        core.write(fact, Class::Acknowledged, claim).await?;
        self.hold_meanwhile([address]).await
    }
}

/// The blob that lists the names that an import set.
pub(super) fn names_list(row: &NameRow) -> Option<Address> {
    record(row)?;
    let (_, earlier) = row.history.split_last()?;
    earlier.last()?.address
}

/// The names that an import set, and their addresses.
fn listed_names(core: &Core, row: &NameRow) -> Result<ListedNames, Error> {
    let Some(list) = names_list(row) else { return Ok(ListedNames::new()) };
    let bytes = core.load_range(&list, &(0..u64::MAX), Wait::Yes)?;
    match bytes.map(|bytes| Value::decode(&bytes)) {
        Some(Ok(Value::Map(names))) => Ok(names),
        _ => Ok(ListedNames::new()),
    }
}

/// Drops the names that an import set and that still have the addresses that it gave them. They do not stay in the
/// history of the name, which would still hold them. Returns how many were dropped.
pub(super) fn drop_names(core: &Core, row: &NameRow) -> Result<u64, Error> {
    let mut dropped = 0;
    for (name, address) in listed_names(core, row)? {
        let _turn = core.names.blocking_turn();
        let Some(row) = core.catalogue.name(&name, Wait::Yes)? else { continue };
        let mut history = row.history;
        let set = |history: &[NameChange]| history.last().and_then(|last| last.address).map(Value::Address);
        if set(&history) != Some(address.clone()) {
            continue;
        }
        history.pop();
        if set(&history).is_some() {
            history.push(NameChange { address: None, at: core.now() });
        }
        let change = core.names.change();
        let mut writes = Pipeline::new(core);
        writes.write(Fact::Name { name: name.clone(), history }, Class::Acknowledged, Claim::default())?;
        writes.settle()?;
        change.written(&name, None);
        dropped += 1;
    }
    Ok(dropped)
}
