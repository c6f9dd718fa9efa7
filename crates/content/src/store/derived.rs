//! Derived values: visible at once and written later (write-behind), as they can be derived again.

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::commit::{Order, Request};
use super::counters::Kind;
use super::derivations::check_inputs;
use super::memos::NewMemo;
use super::pending::Ticket;
use super::quota::Claim;
use super::{Core, Event, Store};
use crate::facts::{Class, Memo};
use crate::log::{Fact, Record};
use crate::{Address, Error};

/// The memory that an entry takes beside its bytes, in the queue and in tables.
const ENTRY_BYTES: usize = 1024;

/// The most values in the queue, however small: callers that wait for an answer wait behind them.
const VALUES_MOST: usize = 8192;

/// A value for the writer, with the memos that lead to it.
#[derive(Debug)]
pub(crate) struct DerivedValue {
    pub(super) blob: Record,
    /// The checksum of the blob's record.
    pub(super) crc: Option<u32>,
    /// One or two, in place: another thread frees what is allocated for them.
    pub(super) memos: [Option<DerivedMemo>; 2],
    held: HeldAddresses,
}

/// The addresses that are held until a value is written.
#[derive(Debug)]
struct HeldAddresses {
    output: Address,
    derivation: Address,
    also: Option<Address>,
    inputs: Box<[Address]>,
}

/// A memo of a derived value.
#[derive(Debug)]
pub(crate) struct DerivedMemo {
    pub(super) record: Record,
    derivation: Address,
    ticket: Ticket,
}

impl HeldAddresses {
    fn for_each(&self, act: impl FnMut(&Address)) {
        let HeldAddresses { output, derivation, also, inputs } = self;
        [output, derivation].into_iter().chain(also).chain(inputs).for_each(act);
    }
}

impl Store {
    /// Stores a derivation's output, bytes and memo, as derivable. Both are visible from now on, but are written later:
    /// this waits only for room in the queue. `made.output` is the address of the bytes. With `also`, the output gets a
    /// second memo, of this derivation. A value that is too large to be packed ([`super::Config::packed_most`]) is put
    /// and remembered at once, which waits for the disk.
    pub async fn derived(
        &self,
        made: NewMemo<'_>,
        also: Option<Address>,
        bytes: impl Into<Bytes>,
    ) -> Result<(), Error> {
        let bytes: Bytes = bytes.into();
        debug_assert_eq!(made.output, Address::of(&bytes));
        if bytes.len() > self.inner.core.config.packed_most {
            // Boxed, so that the futures of callers, which seldom come here, stay small.
            return Box::pin(self.derived_large(made, also, bytes)).await;
        }
        let len = bytes.len() as u64;
        let result = self.inner.core.derived(made, also, bytes).await;
        self.inner.core.count(Kind::Derived, result, |new| new.then_some(len)).map(|_| ())
    }

    async fn derived_large(
        &self,
        made: NewMemo<'_>,
        also: Option<Address>,
        bytes: Bytes,
    ) -> Result<(), Error> {
        self.put(bytes, Class::Derivable).await?;
        self.remember(made, Class::Derivable).await?;
        match also {
            Some(derivation) => {
                self.remember(NewMemo { derivation, inputs: &[], ..made }, Class::Derivable).await
            }
            None => Ok(()),
        }
    }

    /// Waits until all values [`derived`](Store::derived) so far are written, though not synced: they survive a crash
    /// of the process, but perhaps not a power cut.
    pub async fn written(&self) -> Result<(), Error> {
        self.inner.core.submit(Order::Pass, 0, Claim::default()).await.map(|_| ())
    }

    /// Waits until one derivation's output is written; returns at once if it is not pending.
    pub async fn written_of(&self, derivation: &Address) -> Result<(), Error> {
        match self.inner.core.catalogue.is_pending(derivation) {
            true => self.written().await,
            false => Ok(()),
        }
    }
}

impl Core {
    /// Returns whether a memo is new; false if the same memos are pending already.
    async fn derived(&self, made: NewMemo<'_>, also: Option<Address>, bytes: Bytes) -> Result<bool, Error> {
        let NewMemo { derivation, output, size, cost, inputs } = made;
        check_inputs(inputs)?;
        self.segments.check()?;
        let claim = self.claim(bytes.len() as u64).await?;
        let units = ENTRY_BYTES + bytes.len() + 64 * inputs.len();
        let room = self.queue_room(units.max(self.config.queue_bytes as usize / VALUES_MOST)).await?;
        let at = self.now();
        // Held first: a caller that finds a memo may rely on the addresses that it leads to.
        let held = HeldAddresses { output, derivation, also, inputs: inputs.into() };
        held.for_each(|address| _ = self.guard.hold(address));
        let announce = |derivation, inputs: &[Address]| {
            let memo = Memo { derivation, output, size, cost, at };
            let ticket = self.catalogue.announce(memo, inputs, bytes.clone())?;
            let fact = Fact::Memo { derivation, output, size, cost, inputs: inputs.to_vec() };
            let record = Record { at, class: Class::Derivable, fact };
            Some(DerivedMemo { record, derivation, ticket })
        };
        let memos = [announce(derivation, inputs), also.and_then(|also| announce(also, &[]))];
        if memos.iter().all(Option::is_none) {
            held.for_each(|address| self.guard.release(address));
            return Ok(false);
        }
        self.admit(output, &bytes);
        let blob = Fact::Blob { address: output, bytes };
        let crc = blob.long_body_crc();
        let blob = Record { at, class: Class::Derivable, fact: blob };
        let derived = Box::new(DerivedValue { blob, crc, memos, held });
        let request = Request { order: Order::Derived(derived), done: None, room: Some(room), claim };
        if let Err(Request { order: Order::Derived(derived), .. }) = self.orders.push_deferred(request) {
            self.forget(&derived);
            return Err(Error::Closed);
        }
        Ok(true)
    }

    /// Drops a value whose write failed: it is no longer visible.
    fn forget(&self, derived: &DerivedValue) {
        self.settle(derived);
        self.cache.remove(&derived.held.output);
        derived.held.for_each(|address| self.guard.release(address));
    }

    /// Removes the memos of a value from pending.
    fn settle(&self, derived: &DerivedValue) {
        for memo in derived.memos.iter().flatten() {
            self.catalogue.settle(memo.ticket, &memo.derivation, &derived.held.output);
        }
    }
}

/// The derived values of a batch that is being written.
#[derive(Default)]
pub(super) struct DerivedBatch {
    derived: Vec<(Box<DerivedValue>, Option<Error>)>,
    /// Their room in the queue, released all at once.
    room: Option<OwnedSemaphorePermit>,
}

impl DerivedBatch {
    pub(super) fn add(
        &mut self,
        derived: Box<DerivedValue>,
        room: Option<OwnedSemaphorePermit>,
        failure: Option<Error>,
    ) {
        match (&mut self.room, room) {
            (Some(all), Some(room)) => all.merge(room),
            (all, room) => *all = room.or(all.take()),
        }
        self.derived.push((derived, failure));
    }

    /// Removes the values from pending: they are in the index, or failed for this reason or their own. Failures are
    /// reported once per batch.
    pub(super) fn settle(self, core: &Core, failure: Option<&Error>) {
        let mut told = None;
        for (derived, own_failure) in self.derived {
            match failure.cloned().or(own_failure) {
                Some(error) => {
                    core.forget(&derived);
                    told = Some(error);
                }
                None => {
                    core.settle(&derived);
                    derived.held.for_each(|address| core.guard.written(address));
                }
            }
        }
        if let Some(error) = told {
            core.tell(&Event::Failed { doing: "write derived values", error });
        }
    }
}
