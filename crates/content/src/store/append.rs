//! Appending: values that outlive their process at once, and a power cut after the next sync.

use bytes::Bytes;

use super::Store;
use super::commit::Order;
use super::counters::Kind;
use super::derivations::check_inputs;
use super::memos::NewMemo;
use super::quota::Claim;
use crate::facts::Class;
use crate::log::{Fact, Record};
use crate::{Address, Error};

impl Store {
    /// Stores bytes and the memos whose output they are, as acknowledged data. It returns once all are written to the
    /// log: they survive a crash of the process from then on, and a power cut once [`sync`](Store::sync) returns.
    /// Bytes that are too many to be packed ([`super::Config::packed_most`]) are synced at once.
    pub async fn append(&self, bytes: impl Into<Bytes>, made: &[NewMemo<'_>]) -> Result<(), Error> {
        let bytes: Bytes = bytes.into();
        debug_assert!(made.iter().all(|made| made.output == Address::of(&bytes)));
        if bytes.len() > self.inner.core.config.packed_most {
            self.put(bytes, Class::Acknowledged).await?;
            for made in made {
                self.remember(*made, Class::Acknowledged).await?;
            }
            return Ok(());
        }
        let len = bytes.len() as u64;
        let result = self.append_packed(bytes, made).await;
        self.inner.core.count(Kind::Append, result, |new| new.then_some(len)).map(|_| ())
    }

    /// Waits until everything that was written so far is on the disk itself.
    pub async fn sync(&self) -> Result<(), Error> {
        self.inner.core.submit(Order::Sync, 0, Claim::default()).await.map(|_| ())
    }

    /// Returns whether the bytes are new.
    async fn append_packed(&self, bytes: Bytes, made: &[NewMemo<'_>]) -> Result<bool, Error> {
        let core = &self.inner.core;
        let Some(first) = made.first() else { return Ok(false) };
        let output = first.output;
        let mut addresses = vec![output];
        for NewMemo { derivation, inputs, .. } in made {
            check_inputs(inputs)?;
            addresses.push(*derivation);
            addresses.extend(*inputs);
        }
        // A blob that is there already must not be removed before the memos that lead to it are written.
        let _wanted = core.guard.want(addresses);
        let at = core.now();
        let memos = made.iter().map(|made| Fact::Memo {
            derivation: made.derivation,
            output,
            size: made.size,
            cost: made.cost,
            inputs: made.inputs.to_vec(),
        });
        let facts = std::iter::once(Fact::Blob { address: output, bytes }).chain(memos);
        let records: Vec<Record> =
            facts.map(|fact| Record { at, class: Class::Acknowledged, fact }).collect();
        let weight = records.iter().map(|record| record.fact.size_hint()).sum();
        let claim = core.claim(weight as u64).await?;
        let answer = core.submit(Order::Append(records), weight, claim).await?;
        Ok(answer.each_written.first().copied().unwrap_or_default())
    }
}
