//! Memos: what derivations came to.

use super::commit::{Doomed, Order, When};
use super::counters::Kind;
use super::derivations::check_inputs;
use super::tables::MemoRow;
use super::{Core, Event, Store};
use crate::facts::{Class, Cost, Memo, RemovalReason};
use crate::log::{Fact, Removed, What};
use crate::{Address, Error, Wait};

/// What a derivation came to, to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMemo<'a> {
    /// Which derivation.
    pub derivation: Address,
    /// The blob it came to; put it first.
    pub output: Address,
    /// That blob's length in bytes.
    pub size: u64,
    /// What it cost.
    pub cost: Cost,
    /// The addresses it read, if no [`Store::put_derivation`] described it.
    pub inputs: &'a [Address],
}

impl Store {
    /// Remembers what a derivation came to. If it came to something else before, the new output counts, and
    /// [`Event::Diverged`] tells of it.
    pub async fn remember(&self, made: NewMemo<'_>, class: Class) -> Result<(), Error> {
        let result = self.remember_made(made, class).await;
        self.inner.core.count(Kind::Memo, result, |new| new.then_some(0)).map(|_| ())
    }

    /// What a derivation came to; nothing when that is not known.
    pub async fn recall(&self, derivation: &Address) -> Result<Option<Memo>, Error> {
        let derivation = *derivation;
        let result = self.quick(move |core, wait| core.catalogue.memo(&derivation, wait)).await;
        self.inner.core.count(Kind::Recall, result, |memo| memo.as_ref().map(|_| 0))
    }

    /// What a derivation came to, if that can be said at once; nothing when it is not known, or the disk would have to
    /// be waited for.
    pub fn recall_now(&self, derivation: &Address) -> Option<Memo> {
        self.inner.core.catalogue.memo(derivation, Wait::No).unwrap_or_default()
    }

    /// The same as [`Store::recall`] for many at once, in their order.
    pub async fn recall_many(&self, derivations: &[Address]) -> Result<Vec<Option<Memo>>, Error> {
        let derivations = derivations.to_vec();
        self.quick(move |core, wait| core.catalogue.memos(&derivations, wait)).await
    }

    /// Forgets what derivations came to; says how many were remembered. The outputs stay, for collection to find.
    pub async fn invalidate(&self, derivations: &[Address]) -> Result<usize, Error> {
        let derivations = derivations.to_vec();
        self.blocking(move |core| {
            // What was derived before goes too: once the index has it.
            if derivations.iter().any(|derivation| core.catalogue.is_pending(derivation)) {
                core.submit_blocking(Order::Pass)?;
            }
            let mut doomed = Vec::new();
            for address in &derivations {
                if let Some((row, _)) = core.catalogue.stored_memo(address)? {
                    let removed = core.doom_memo(&row)?;
                    doomed.push(vec![Doomed { removed, when: When::Always }]);
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
        // A quick look: one memo in a hundred whose output is missing gets past it, and its output is derived again.
        if wanted.is_leaving(0) || !core.catalogue.may_have_blob(&output) {
            return Err(Error::Missing { address: output });
        }
        let fact = Fact::Memo { derivation, output, size, cost, inputs: inputs.to_vec() };
        core.room_for(fact.size_hint() as u64).await?;
        Ok(core.write(fact, class).await?.written)
    }
}

impl Core {
    /// How to remove a memo: with its edges, unless a description of the derivation still has them.
    pub(super) fn doom_memo(&self, row: &MemoRow) -> Result<Removed, Error> {
        let address = row.memo.derivation;
        let described = self.catalogue.derivation(&address, Wait::Yes)?.is_some();
        let edges = if described { Vec::new() } else { self.memo_inputs(row)? };
        Ok(Removed { address, what: What::Memo(row.memo.output), edges })
    }

    /// The addresses that a memo's derivation read, as the memo has it; none if its record is damaged or missing.
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
