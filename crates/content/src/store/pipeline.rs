//! A pipeline of orders to the writer, from a thread that may block: several in flight share a batch.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::Core;
use super::commit::{Answer, Order, Request};
use super::quota::Claim;
use crate::Error;
use crate::facts::Class;
use crate::log::{Fact, Record};

/// The most orders in flight, and the most bytes of their records.
const ORDERS_MOST: usize = 512;
const BYTES_MOST: usize = 8 << 20;

pub(crate) struct Pipeline<'a> {
    core: &'a Core,
    answers: VecDeque<(usize, oneshot::Receiver<Result<Answer, Error>>)>,
    bytes: usize,
    /// The number of orders that wrote a record.
    pub written: u64,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(core: &'a Core) -> Pipeline<'a> {
        Pipeline { core, answers: VecDeque::new(), bytes: 0, written: 0 }
    }

    /// Sends an order that adds nothing to the bytes in use to the writer, once there is room.
    pub(crate) fn order(&mut self, order: Order, bytes: usize) -> Result<(), Error> {
        self.claimed(order, bytes, Claim::default())
    }

    fn claimed(&mut self, order: Order, bytes: usize, claim: Claim) -> Result<(), Error> {
        while self.answers.len() >= ORDERS_MOST
            || (self.bytes + bytes > BYTES_MOST && !self.answers.is_empty())
        {
            self.settle_one()?;
        }
        let (done, answer) = oneshot::channel();
        self.core.leave(Request { order, done: Some(done), room: None, claim })?;
        self.bytes += bytes;
        self.answers.push_back((bytes, answer));
        Ok(())
    }

    /// Writes a fact in the room of this claim.
    pub(crate) fn write(&mut self, fact: Fact, class: Class, claim: Claim) -> Result<(), Error> {
        let (bytes, crc) = (fact.size_hint(), fact.long_body_crc());
        let record = Record { at: self.core.now(), class, fact };
        self.claimed(Order::Write(record, crc), bytes, claim)
    }

    /// Writes acknowledged facts in the room of this claim, with one sync.
    pub(crate) fn write_all(&mut self, facts: Vec<Fact>, claim: Claim) -> Result<(), Error> {
        let bytes = facts.iter().map(Fact::size_hint).sum();
        let at = self.core.now();
        let record = |fact| Record { at, class: Class::Acknowledged, fact };
        self.claimed(Order::Append(facts.into_iter().map(record).collect()), bytes, claim)?;
        self.order(Order::Sync, 0)
    }

    /// Writes a memo in the room of this claim, unless its derivation has one.
    pub(crate) fn write_if_free(&mut self, memo: Fact, class: Class, claim: Claim) -> Result<(), Error> {
        let bytes = memo.size_hint();
        let record = Record { at: self.core.now(), class, fact: memo };
        self.claimed(Order::WriteIfFree(record), bytes, claim)
    }

    /// Waits for all answers; returns how many orders wrote a record.
    pub(crate) fn settle(mut self) -> Result<u64, Error> {
        self.wait()?;
        Ok(self.written)
    }

    /// Waits until every order so far is answered.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        while !self.answers.is_empty() {
            self.settle_one()?;
        }
        Ok(())
    }

    fn settle_one(&mut self) -> Result<(), Error> {
        let Some((bytes, answer)) = self.answers.pop_front() else { return Ok(()) };
        self.bytes -= bytes;
        let outcome = answer.blocking_recv().unwrap_or(Err(Error::Closed))?;
        self.written += u64::from(outcome.written);
        Ok(())
    }
}
