//! What collection finds to be held.

use std::collections::HashSet;
use std::time::Duration;

use super::event::is_young;
use super::tables::{DerivationRow, MemoRow, Table};
use super::{Core, Scope};
use crate::{Address, Error, Wait};

/// What is held. Addresses are kept as 64 of their bits: two that share them are both held, which is safe.
#[derive(Default)]
pub(super) struct Marks {
    means: HashSet<u64>,
    values: HashSet<u64>,
    /// Derivations whose memo is held.
    pub(super) memos: HashSet<u64>,
}

/// How much of an address is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Its value.
    Value,
    /// What it takes to derive it.
    Means,
}

impl Marks {
    pub(super) fn holds(&self, address: &Address) -> bool {
        self.means.contains(&address.bits()) || self.values.contains(&address.bits())
    }
}

pub(super) fn mark(core: &Core, grace: Duration, scope: Scope) -> Result<Marks, Error> {
    let mut marks = Marks::default();
    let mut stack: Vec<(Address, Need)> = young(core, grace, scope)?;
    for pin in core.catalogue.pins(None)? {
        stack.push((pin?, Need::Value));
    }
    for row in core.catalogue.names()? {
        stack.extend(row?.history.iter().filter_map(|named| Some((named.address?, Need::Value))));
    }
    stack.extend(core.guard.held().into_iter().map(|address| (address, Need::Value)));
    while let Some((address, need)) = stack.pop() {
        let set = if need == Need::Value { &mut marks.values } else { &mut marks.means };
        if set.insert(address.bits()) {
            follow(core, &address, need, &mut marks.memos, &mut stack)?;
        }
    }
    Ok(marks)
}

/// Touches addresses and all that they lead to, for a collection that began before they were held. What one such call
/// has followed, later ones do not follow again while the collection goes on.
pub(super) fn touch_all(core: &Core, addresses: Vec<Address>) -> Result<(), Error> {
    let mut stack: Vec<_> = addresses.into_iter().map(|address| (address, Need::Value)).collect();
    while let Some((address, need)) = stack.pop() {
        if core.guard.touch_once(&address, need == Need::Value) {
            follow(core, &address, need, &mut HashSet::new(), &mut stack)?;
        }
    }
    Ok(())
}

/// What is young holds what it needs, as if it were pinned: somebody is about to build on it. So does every derivation,
/// if that is asked for.
fn young(core: &Core, grace: Duration, scope: Scope) -> Result<Vec<(Address, Need)>, Error> {
    let now = core.now();
    let mut found = Vec::new();
    for row in core.catalogue.rows(Table::Derivation, None)? {
        let (address, row) = row?;
        if scope == Scope::KeepDerivations {
            found.push((address, Need::Value));
        } else if is_young(core.catalogue.decoded::<DerivationRow>(&row)?.at, now, grace) {
            found.push((address, Need::Means));
        }
    }
    for row in core.catalogue.rows(Table::Memo, None)? {
        let (address, row) = row?;
        if is_young(core.catalogue.decoded::<MemoRow>(&row)?.memo.at, now, grace) {
            found.push((address, Need::Value));
        }
    }
    Ok(found)
}

/// What an address leads to, by itself or as an alias.
fn follow(
    core: &Core,
    address: &Address,
    need: Need,
    memos: &mut HashSet<u64>,
    stack: &mut Vec<(Address, Need)>,
) -> Result<(), Error> {
    stack.extend(core.catalogue.alias(address, Wait::Yes)?.map(|derivation| (derivation, need)));
    let derivation = match core.derivation(address, Wait::Yes) {
        Ok(derivation) => derivation,
        Err(Error::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    let described = derivation.is_some();
    stack.extend(derivation.into_iter().flat_map(|it| it.inputs).map(|input| (input, Need::Means)));
    // What nothing describes cannot be derived again: its value is all there is.
    if (need == Need::Value || !described)
        && let Some((row, _)) = core.catalogue.stored_memo(address)?
    {
        memos.insert(address.bits());
        stack.push((row.memo.output, Need::Value));
        if !described {
            stack.extend(core.memo_inputs(&row)?.into_iter().map(|input| (input, Need::Means)));
        }
    }
    Ok(())
}
