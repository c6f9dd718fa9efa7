//! The names that imports set: dropped with the import, unless they were changed since.
//!
//! The record of an import leads to a list of the names that it is about to set, each with the time of that change. The
//! list is written before the first name is set, so no name is left behind if the import ends half-way.

use std::collections::BTreeMap;

use super::Core;
use super::import::ImportedName;
use super::imports::record;
use super::mark::touch_all;
use super::pipeline::Pipeline;
use super::quota::Claim;
use super::roots::current_address;
use super::tables::NameRow;
use crate::facts::{NameChange, Time};
use crate::log::Fact;
use crate::{Address, Error, Value, Wait};

/// Names, each with the change that an import makes.
pub(super) type ListedNames = BTreeMap<String, NameChange>;

/// The names that are set or dropped at a time: other changes of names wait for so many.
const NAMES_AT_ONCE: usize = 256;

/// Finds the names of an archive that are free and that the caller does not skip, and notes the address of the others.
pub(super) fn free_names(
    core: &Core,
    names: &mut [ImportedName],
    skip_name: Option<fn(&str) -> bool>,
) -> Result<ListedNames, Error> {
    core.segments.check()?;
    let mut free = ListedNames::new();
    let at = core.now();
    for it in names {
        it.is_skipped = skip_name.is_some_and(|skip| skip(&it.name));
        if it.is_skipped {
            continue;
        }
        match current_address(&history(core, &it.name)?) {
            Some(found) => it.taken_by = Some(found).filter(|found| *found != it.address),
            None => _ = free.insert(it.name.clone(), NameChange { address: Some(it.address), at }),
        }
    }
    Ok(free)
}

/// Sets the names of this list that are still free, and notes the address of the others.
pub(super) fn set_names(core: &Core, names: &mut [ImportedName], listed: &ListedNames) -> Result<(), Error> {
    let mut free: Vec<_> =
        names.iter_mut().filter_map(|it| listed.get(&it.name).map(|change| (it, *change))).collect();
    for part in free.chunks_mut(NAMES_AT_ONCE) {
        let addresses: Vec<Address> = part.iter().map(|(it, _)| it.address).collect();
        let _wanted = core.guard.want(addresses.clone());
        // Before the turn: room may take a collection, and the changes of all other names would wait for it, too.
        let mut claim = Claim::default();
        for (it, change) in &*part {
            let fact = core.name_record(&it.name, history(core, &it.name)?, *change);
            claim.add(core.claim_blocking(fact.size_hint() as u64)?);
        }
        set_part(core, part, claim)?;
        if core.guard.is_collecting() {
            touch_all(core, addresses)?;
        }
    }
    Ok(())
}

fn set_part(
    core: &Core,
    part: &mut [(&mut ImportedName, NameChange)],
    mut claim: Claim,
) -> Result<(), Error> {
    let _turn = core.names.blocking_turn();
    let changes = core.names.change();
    let (mut facts, mut set) = (Vec::new(), Vec::new());
    for (it, change) in part {
        let history = history(core, &it.name)?;
        if let Some(found) = current_address(&history) {
            it.taken_by = Some(found).filter(|found| *found != it.address);
            continue;
        }
        facts.push(core.name_record(&it.name, history, *change));
        set.push((it.name.clone(), Some(it.address)));
    }
    core.extend_claim(&mut claim, facts.iter().map(|fact| fact.size_hint() as u64).sum())?;
    write_all(core, facts, claim)?;
    changes.written(set);
    Ok(())
}

fn history(core: &Core, name: &str) -> Result<Vec<NameChange>, Error> {
    Ok(core.catalogue.name(name, Wait::Yes)?.map_or_else(Vec::new, |row| row.history))
}

/// The bytes of the list: a map from the names to address and time, in canonical encoding.
pub(super) fn encode_names(names: ListedNames) -> Vec<u8> {
    let listed = |change: NameChange| {
        let at = i64::try_from(change.at.0).unwrap_or(i64::MAX);
        Value::List(vec![change.address.map_or(Value::Null, Value::Address), Value::Int(at)])
    };
    let names = names.into_iter().map(|(name, change)| (name, listed(change))).collect();
    Value::Map(names).encode().expect("a map of short lists is not nested")
}

fn decode_names(bytes: &[u8]) -> ListedNames {
    let Ok(Value::Map(names)) = Value::decode(bytes) else { return ListedNames::new() };
    let change = |listed: Value| match listed {
        Value::List(parts) => match *parts {
            [Value::Address(address), Value::Int(at)] => {
                Some(NameChange { address: Some(address), at: Time(u64::try_from(at).ok()?) })
            }
            _ => None,
        },
        _ => None,
    };
    names.into_iter().filter_map(|(name, listed)| Some((name, change(listed)?))).collect()
}

/// The names that an import has set or was about to set.
pub(super) fn listed_names(core: &Core, row: &NameRow) -> Result<ListedNames, Error> {
    let Some(list) = names_list(row) else { return Ok(ListedNames::new()) };
    let bytes = core.load_range(&list, &(0..u64::MAX), Wait::Yes)?;
    Ok(bytes.map_or_else(ListedNames::new, |bytes| decode_names(&bytes)))
}

/// The blob that lists the names of an import.
fn names_list(row: &NameRow) -> Option<Address> {
    record(row)?;
    let (_, earlier) = row.history.split_last()?;
    earlier.last()?.address
}

/// Drops the names that an import set and that were not changed since. They do not stay in the history of the name,
/// which would still hold them. Returns how many were dropped.
pub(super) fn drop_names(core: &Core, row: &NameRow) -> Result<u64, Error> {
    let listed: Vec<_> = listed_names(core, row)?.into_iter().collect();
    let mut dropped = 0;
    for part in listed.chunks(NAMES_AT_ONCE) {
        dropped += drop_part(core, part)?;
    }
    Ok(dropped)
}

fn drop_part(core: &Core, part: &[(String, NameChange)]) -> Result<u64, Error> {
    let _turn = core.names.blocking_turn();
    core.segments.check()?;
    let changes = core.names.change();
    let (mut facts, mut dropped) = (Vec::new(), Vec::new());
    for (name, listed) in part {
        let mut history = history(core, name)?;
        if history.last() != Some(listed) {
            continue;
        }
        history.pop();
        if current_address(&history).is_some() {
            history.push(NameChange { address: None, at: core.now() });
        }
        facts.push(Fact::Name { name: name.clone(), history });
        dropped.push((name.clone(), None));
    }
    let count = dropped.len() as u64;
    write_all(core, facts, Claim::default())?;
    changes.written(dropped);
    Ok(count)
}

fn write_all(core: &Core, facts: Vec<Fact>, claim: Claim) -> Result<(), Error> {
    let mut writes = Pipeline::new(core);
    writes.write_all(facts, claim)?;
    writes.settle().map(|_| ())
}
