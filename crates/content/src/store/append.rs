//! Appending: values that outlive their process at once, and a power cut after the next sync.

use bytes::Bytes;

use super::Store;
use super::commit::Order;
use super::counters::Kind;
use super::derivations::check_inputs;
use super::memos::NewMemo;
use crate::facts::Class;
use crate::log::{Fact, Record};
use crate::{Address, Error};

impl Store {
    /// Stores a derivation's output, bytes and memo, as acknowledged data. It returns once both are written to the log:
    /// they survive a crash of the process from then on, and a power cut once [`sync`](Store::sync) returns.
    /// `made.output` is the address of the bytes. A value that is too large to be packed
    /// ([`super::Config::packed_most`]) is synced at once.
    pub async fn append(&self, made: NewMemo<'_>, bytes: impl Into<Bytes>) -> Result<(), Error> {
        let bytes: Bytes = bytes.into();
        debug_assert_eq!(made.output, Address::of(&bytes));
        if bytes.len() > self.inner.core.config.packed_most {
            self.put(bytes, Class::Acknowledged).await?;
            return self.remember(made, Class::Acknowledged).await;
        }
        let len = bytes.len() as u64;
        let result = self.append_packed(made, bytes).await;
        self.inner.core.count(Kind::Append, result, |new| new.then_some(len)).map(|_| ())
    }

    /// Waits until everything that was written so far is on the disk itself.
    pub async fn sync(&self) -> Result<(), Error> {
        self.inner.core.submit(Order::Sync, 0).await.map(|_| ())
    }

    /// Returns whether the memo is new.
    async fn append_packed(&self, made: NewMemo<'_>, bytes: Bytes) -> Result<bool, Error> {
        let NewMemo { derivation, output, size, cost, inputs } = made;
        check_inputs(inputs)?;
        let core = &self.inner.core;
        core.room_for(bytes.len() as u64).await?;
        // A blob that is there already must not be removed before the memo that leads to it is written.
        let _wanted = core.guard.want([&[output, derivation], inputs].concat());
        let at = core.now();
        let blob = Fact::Blob { address: output, bytes };
        let memo = Fact::Memo { derivation, output, size, cost, inputs: inputs.to_vec() };
        let weight = blob.size_hint() + memo.size_hint();
        let records = [blob, memo].map(|fact| Record { at, class: Class::Acknowledged, fact });
        let answer = core.submit(Order::Append(records.into()), weight).await?;
        Ok(answer.each_written.last().copied().unwrap_or_default())
    }
}
