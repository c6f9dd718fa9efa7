//! Memos: the remembered outputs of derivations.

use super::commit::{DoomedItem, Order, RemovalCondition};
use super::counters::Kind;
use super::derivations::check_inputs;
use super::tables::MemoRow;
use super::{Core, Event, Store};
use crate::facts::{Class, Cost, Memo, RemovalReason};
use crate::log::{Fact, ItemKind, ItemRemoval};
use crate::{Address, Error, Wait};

/// The output of a derivation, for [`Store::remember`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMemo<'a> {
    /// The derivation.
    pub derivation: Address,
    /// The blob that is its output; put it first.
    pub output: Address,
    /// That blob's length in bytes.
    pub size: u64,
    /// The cost of computing it.
    pub cost: Cost,
    /// Its inputs, if [`Store::put_derivation`] has not described it.
    pub inputs: &'a [Address],
}

impl Store {
    /// Remembers the output of a derivation. If it had another output before, the new one replaces it, and
    /// [`Event::Diverged`] reports that.
    pub async fn remember(&self, made: NewMemo<'_>, class: Class) -> Result<(), Error> {
        let result = self.remember_made(made, class).await;
        self.inner.core.count(Kind::Memo, result, |new| new.then_some(0)).map(|_| ())
    }

    /// The memo of a derivation; `None` if there is none.
    pub async fn recall(&self, derivation: &Address) -> Result<Option<Memo>, Error> {
        let derivation = *derivation;
        let result = self.quick(move |core, wait| core.catalogue.memo(&derivation, wait)).await;
        self.inner.core.count(Kind::Recall, result, |memo| memo.as_ref().map(|_| 0))
    }

    /// The memo of a derivation, if it is in memory; `None` if there is none, or the answer would have to wait for the
    /// disk.
    pub fn recall_now(&self, derivation: &Address) -> Option<Memo> {
        self.inner.core.catalogue.memo(derivation, Wait::No).unwrap_or_default()
    }

    /// [`Store::recall`] for many derivations at once, in their order.
    pub async fn recall_many(&self, derivations: &[Address]) -> Result<Vec<Option<Memo>>, Error> {
        let derivations = derivations.to_vec();
        self.quick(move |core, wait| core.catalogue.memos(&derivations, wait)).await
    }

    /// Removes the memos of derivations; returns how many there were. The outputs stay until they are collected.
    pub async fn invalidate(&self, derivations: &[Address]) -> Result<usize, Error> {
        let derivations = derivations.to_vec();
        self.blocking(move |core| {
            // Memos of pending values are removed too, once the index has them.
            if derivations.iter().any(|derivation| core.catalogue.is_pending(derivation)) {
                core.submit_blocking(Order::Pass)?;
            }
            let mut doomed = Vec::new();
            for address in &derivations {
                if let Some((row, _)) = core.catalogue.stored_memo(address)? {
                    let removed = core.doom_memo(&row)?;
                    doomed.push(vec![DoomedItem { removed, when: RemovalCondition::Always }]);
                }
            }
            let removed =
                core.submit_blocking(Order::Remove(RemovalReason::Invalidated, doomed))?.removed.len();
            core.tell(&Event::Removed { count: removed, why: RemovalReason::Invalidated });
            Ok(removed)
        })
        .await
    }

    async fn remember_made(&self, made: NewMemo<'_>, class: Class) -> Result<bool, Error> {
        let NewMemo { derivation, output, size, cost, inputs } = made;
        check_inputs(inputs)?;
        let core = &self.inner.core;
        let wanted = core.guard.want([&[output, derivation], inputs].concat());
        // A check in memory: about 1% of the memos whose output is missing pass it, and the output is derived again.
        if wanted.is_leaving(0) || !core.catalogue.may_have_blob(&output) {
            return Err(Error::Missing { address: output });
        }
        let fact = Fact::Memo { derivation, output, size, cost, inputs: inputs.to_vec() };
        let claim = core.claim(fact.size_hint() as u64).await?;
        Ok(core.write(fact, class, claim).await?.written)
    }
}

impl Core {
    /// The removal of a memo: with its edges, unless a description of the derivation still has them.
    pub(super) fn doom_memo(&self, row: &MemoRow) -> Result<ItemRemoval, Error> {
        let address = row.memo.derivation;
        let described = self.catalogue.derivation(&address, Wait::Yes)?.is_some();
        let edges = if described { Vec::new() } else { self.memo_inputs(row)? };
        Ok(ItemRemoval { address, what: ItemKind::Memo(row.memo.output), edges })
    }

    /// The inputs recorded in a memo; empty if its record is damaged or missing.
    pub(super) fn memo_inputs(&self, row: &MemoRow) -> Result<Vec<Address>, Error> {
        match self.segments.record(row.place, Wait::Yes) {
            Ok(Some(record)) => match record.fact {
                Fact::Memo { inputs, .. } => Ok(inputs),
                _ => Ok(Vec::new()),
            },
            Ok(None) => Ok(Vec::new()),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(cause) => Err(Error::disk("read", &crate::log::segment_path(row.place.segment), cause)),
        }
    }
}
