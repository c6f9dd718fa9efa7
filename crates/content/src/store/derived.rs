//! Values that are known at once and written behind: what was derived can be derived again.

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::commit::{Order, Request};
use super::counters::Kind;
use super::derivations::check_inputs;
use super::memos::NewMemo;
use super::pending::Ticket;
use super::{Core, Event, Store};
use crate::facts::{Class, Memo};
use crate::log::{Fact, Record};
use crate::{Address, Error};

/// What an entry takes beside its bytes, in the queue and in tables.
const ENTRY_BYTES: usize = 1024;

/// So many values fill the queue, however small they are: whoever waits for an answer waits behind them.
const VALUES_MOST: usize = 8192;

/// A value for the writer, with the memo that leads to it.
#[derive(Debug)]
pub(crate) struct Derived {
    pub(super) blob: Record,
    /// The checksum of the blob's record.
    pub(super) crc: Option<u32>,
    pub(super) memo: Record,
    ticket: Ticket,
    /// Held until it is written: the output, the derivation, its inputs.
    wanted: Vec<Address>,
}

impl Derived {
    pub(super) fn output(&self) -> &Address {
        &self.wanted[0]
    }

    fn derivation(&self) -> &Address {
        &self.wanted[1]
    }
}

impl Store {
    /// Keeps what a derivation came to, bytes and memo, as derivable. Both are found from now on, but are written
    /// later: this waits only for room in the queue. `made.output` is the address of the bytes. Bytes that are too
    /// many to be packed ([`super::Config::packed_most`]) are put and remembered, which waits.
    pub async fn derived(&self, made: NewMemo<'_>, bytes: impl Into<Bytes>) -> Result<(), Error> {
        let bytes: Bytes = bytes.into();
        debug_assert_eq!(made.output, Address::of(&bytes));
        if bytes.len() > self.inner.core.config.packed_most {
            self.put(bytes, Class::Derivable).await?;
            return self.remember(made, Class::Derivable).await;
        }
        let len = bytes.len() as u64;
        let result = self.inner.core.derived(made, bytes).await;
        self.inner.core.count(Kind::Derived, result, |new| new.then_some(len)).map(|_| ())
    }

    /// Waits until what was [`derived`](Store::derived) so far is written, though not synced: a process that is killed
    /// leaves it.
    pub async fn written(&self) -> Result<(), Error> {
        self.inner.core.submit(Order::Pass, 0).await.map(|_| ())
    }

    /// The same for what one derivation came to; at no cost if that is not on its way.
    pub async fn written_of(&self, derivation: &Address) -> Result<(), Error> {
        match self.inner.core.catalogue.is_pending(derivation) {
            true => self.written().await,
            false => Ok(()),
        }
    }
}

impl Core {
    /// Says whether it is new; else the same is on its way already.
    async fn derived(&self, made: NewMemo<'_>, bytes: Bytes) -> Result<bool, Error> {
        let NewMemo { derivation, output, size, cost, inputs } = made;
        check_inputs(inputs)?;
        self.segments.check()?;
        self.room_for(self.catalogue.pending_bytes() + bytes.len() as u64).await?;
        let units = ENTRY_BYTES + bytes.len() + 64 * inputs.len();
        let room = self.queue_room(units.max(self.config.queue_bytes as usize / VALUES_MOST)).await?;
        let at = self.now();
        // Held first: whoever finds the memo may rely on what it leads to.
        let wanted = [&[output, derivation], inputs].concat();
        wanted.iter().for_each(|address| _ = self.guard.hold(address));
        let Some(ticket) =
            self.catalogue.announce(Memo { derivation, output, size, cost, at }, inputs, bytes.clone())
        else {
            wanted.iter().for_each(|address| self.guard.release(address));
            return Ok(false);
        };
        self.admit(output, &bytes);
        let blob = Fact::Blob { address: output, bytes };
        let crc = blob.long_body_crc();
        let memo = Fact::Memo { derivation, output, size, cost, inputs: inputs.to_vec() };
        let [blob, memo] = [blob, memo].map(|fact| Record { at, class: Class::Derivable, fact });
        let derived = Box::new(Derived { blob, crc, memo, ticket, wanted });
        let request = Request { order: Order::Derived(derived), done: None, room: Some(room) };
        if let Err(Request { order: Order::Derived(derived), .. }) = self.orders.push_deferred(request) {
            self.forget(&derived);
            return Err(Error::Closed);
        }
        Ok(true)
    }

    /// It was not written, and is not known any more.
    fn forget(&self, derived: &Derived) {
        self.catalogue.settle(derived.ticket, derived.derivation(), derived.output());
        self.cache.remove(derived.output());
        derived.wanted.iter().for_each(|address| self.guard.release(address));
    }
}

/// The derived values of a batch, until the index has them.
#[derive(Default)]
pub(super) struct Settling {
    derived: Vec<(Box<Derived>, Option<Error>)>,
    /// Their room in the queue, given back at once.
    room: Option<OwnedSemaphorePermit>,
}

impl Settling {
    pub(super) fn add(
        &mut self,
        derived: Box<Derived>,
        room: Option<OwnedSemaphorePermit>,
        failure: Option<Error>,
    ) {
        match (&mut self.room, room) {
            (Some(all), Some(room)) => all.merge(room),
            (all, room) => *all = room.or(all.take()),
        }
        self.derived.push((derived, failure));
    }

    /// They are in the index, or failed for this reason or their own. Failures are told once.
    pub(super) fn settle(self, core: &Core, failure: Option<&Error>) {
        let mut told = None;
        for (derived, own_failure) in self.derived {
            match failure.cloned().or(own_failure) {
                Some(error) => {
                    core.forget(&derived);
                    told = Some(error);
                }
                None => {
                    core.catalogue.settle(derived.ticket, derived.derivation(), derived.output());
                    derived.wanted.iter().for_each(|address| core.guard.written(address));
                }
            }
        }
        if let Some(error) = told {
            core.tell(&Event::Failed { doing: "write derived values", error });
        }
    }
}
