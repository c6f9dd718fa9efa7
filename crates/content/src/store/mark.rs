//! The mark phase of collection: finds the held addresses.

use std::collections::HashSet;
use std::time::Duration;

use super::event::is_young;
use super::tables::{DerivationRow, MemoRow, Table};
use super::{Core, Scope, imports};
use crate::facts::Memo;
use crate::{Address, Error, Wait};

/// The held addresses, each as 64 of its bits. Two addresses that share these bits are both held, which is safe.
#[derive(Default)]
pub(super) struct Marks {
    means: HashSet<u64>,
    values: HashSet<u64>,
    /// Derivations whose memo is held.
    pub(super) memos: HashSet<u64>,
    /// The output and cost of each held memo.
    results: HashSet<(u64, u64)>,
}

/// The part of a held address that must stay.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// Its value.
    Value,
    /// The derivations and blobs that are needed to derive its value again.
    Means,
}

impl Marks {
    pub(super) fn holds(&self, address: &Address) -> bool {
        self.means.contains(&address.bits()) || self.values.contains(&address.bits())
    }

    /// Whether a held memo has the same output and cost, as the memos of one computation have.
    pub(super) fn holds_result(&self, memo: &Memo) -> bool {
        self.results.contains(&result_of(memo))
    }
}

/// The output and cost of a memo.
fn result_of(memo: &Memo) -> (u64, u64) {
    (memo.output.bits(), memo.cost.worth())
}

pub(super) fn mark(core: &Core, grace: Duration, scope: Scope) -> Result<Marks, Error> {
    let mut marks = Marks::default();
    let mut stack: Vec<(Address, Need)> = young(core, grace, scope)?;
    for pin in core.catalogue.pins(None)? {
        stack.push((pin?, Need::Value));
    }
    for row in core.catalogue.names()? {
        let row = row?;
        stack.extend(row.history.iter().filter_map(|named| Some((named.address?, Need::Value))));
        imports::each_entry(core, &row, |_, address| {
            stack.push((address, Need::Value));
            Ok(())
        })?;
    }
    stack.extend(core.guard.held().into_iter().map(|address| (address, Need::Value)));
    while let Some((address, need)) = stack.pop() {
        let set = if need == Need::Value { &mut marks.values } else { &mut marks.means };
        if set.insert(address.bits())
            && let Some(memo) = follow(core, &address, need, &mut stack)?
        {
            marks.memos.insert(address.bits());
            marks.results.insert(result_of(&memo));
        }
    }
    Ok(marks)
}

/// Touches addresses and everything that they lead to, for a collection that began before they were held. During one
/// collection, no address is followed twice.
pub(super) fn touch_all(core: &Core, addresses: Vec<Address>) -> Result<(), Error> {
    let mut stack: Vec<_> = addresses.into_iter().map(|address| (address, Need::Value)).collect();
    while let Some((address, need)) = stack.pop() {
        if core.guard.touch_once(&address, need == Need::Value) {
            follow(core, &address, need, &mut stack)?;
        }
    }
    Ok(())
}

/// Young derivations and memos, which hold their inputs and outputs as a pin does: a caller is about to build on them.
/// With [`Scope::KeepDerivations`], every derivation.
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

/// The addresses that an address leads to, by itself or as an alias.
pub(super) struct ReachedAddresses {
    /// Whether it is a derivation whose description is there.
    pub(super) derivation: bool,
    /// The memo that is held with it.
    memo: Option<Memo>,
    pub(super) next: Vec<(Address, Need)>,
}

/// Adds the addresses that an address leads to. Returns the memo that is held with it.
fn follow(
    core: &Core,
    address: &Address,
    need: Need,
    stack: &mut Vec<(Address, Need)>,
) -> Result<Option<Memo>, Error> {
    let reached = reached(core, address, need)?;
    stack.extend(reached.next);
    Ok(reached.memo)
}

pub(super) fn reached(core: &Core, address: &Address, need: Need) -> Result<ReachedAddresses, Error> {
    let mut next = Vec::new();
    next.extend(core.catalogue.alias(address, Wait::Yes)?.map(|derivation| (derivation, need)));
    let derivation = match core.derivation(address, Wait::Yes) {
        Ok(derivation) => derivation,
        Err(Error::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    let described = derivation.is_some();
    next.extend(derivation.into_iter().flat_map(|it| it.inputs).map(|input| (input, Need::Means)));
    let mut memo = None;
    // A derivation without a description cannot be derived again, so its value must stay.
    if (need == Need::Value || !described)
        && let Some((row, _)) = core.catalogue.stored_memo(address)?
    {
        next.push((row.memo.output, Need::Value));
        if !described {
            next.extend(core.memo_inputs(&row)?.into_iter().map(|input| (input, Need::Means)));
        }
        memo = Some(row.memo);
    }
    Ok(ReachedAddresses { derivation: described, memo, next })
}
