//! The writer: one thread that takes what callers left, writes it as one batch, makes it durable, tells the index,
//! and answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Core;
use super::admit::{Entry, Fresh};
use super::apply::Batch;
use super::derived::{Derived, Settling};
use super::tables::RowBytes;
use crate::facts::{Class, Why};
use crate::index::{BuildBits, Key};
use crate::log::{Append, Fact, Gather, Place, Record, Removed, What};
use crate::{Address, Error};

/// Something for the writer to do.
#[derive(Debug)]
pub(crate) struct Request {
    pub order: Order,
    /// Who waits for the answer, if anybody does.
    pub done: Option<oneshot::Sender<Result<Answer, Error>>>,
    /// The caller's share of the queue, given back with the answer.
    pub room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(crate) enum Order {
    /// A record, and its body's checksum if its caller made it.
    Write(Record, Option<u32>),
    /// Records that are answered together.
    WriteAll(Vec<Record>),
    /// A value that is known already; nobody waits for it.
    Derived(Box<Derived>),
    /// Removes things, group by group.
    Remove(Why, Vec<Group>),
    /// Takes a record to the log's end, if it still holds at its old place.
    Move(Place, Record),
    /// Forgets tombstones that a record carried.
    Forget(Place, Vec<Address>),
    /// Nothing: its answer says that all orders before it were served.
    Pass,
    /// Makes the whole log durable.
    Sync,
    /// The same, and begins a new segment.
    Rotate,
}

/// Things that go together, or not at all.
pub(crate) type Group = Vec<Doomed>;

/// Something to remove.
#[derive(Debug)]
pub(crate) struct Doomed {
    pub removed: Removed,
    pub when: When,
}

/// When something that was doomed really goes.
#[derive(Debug)]
pub(crate) enum When {
    /// If its row is still this, and nobody wants it.
    Unwanted(RowBytes),
    /// If it is still what this row says, whoever wants it: it is damaged.
    Damaged(RowBytes),
    /// Whatever it is by now.
    Always,
}

/// What became of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Something was written; else it was there already.
    pub written: bool,
    /// The same for each of many records.
    pub each_written: Vec<bool>,
    /// What was removed.
    pub removed: Vec<(Address, What)>,
}

/// The writer's state, kept from batch to batch.
pub(crate) struct Writer {
    pub(super) core: Arc<Core>,
    append: Append,
    /// Batches to be answered; their callers wait, so they are the bound.
    herald: Arc<Gather<Answers>>,
    pub(super) buffer: Vec<u8>,
    /// What this batch brings or takes away: newer than what the index says.
    pub(super) fresh: HashMap<Key, Fresh, BuildBits>,
}

/// Callers, and what they are to be told.
type Answers = Vec<(Request, Result<Answer, Error>)>;

/// So many callers are answered by a thread of its own, while the writer goes on.
const MANY: usize = 256;

fn answer(answers: Answers) {
    for (request, answer) in answers {
        // A caller that went away does not want to know.
        let _ = request.done.map(|done| done.send(answer));
    }
}

fn answer_batches(herald: &Gather<Answers>) {
    let mut batches = Vec::new();
    while herald.take(0, &mut batches) {
        batches.drain(..).for_each(answer);
    }
}

struct CloseOnDrop<'a>(&'a Gather<Answers>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Writer {
    pub(crate) fn new(core: Arc<Core>, append: Append) -> Writer {
        Writer {
            core,
            append,
            herald: Arc::new(Gather::new()),
            buffer: Vec::new(),
            fresh: HashMap::default(),
        }
    }

    /// Serves orders until the queue is closed and empty.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let herald = Arc::clone(&self.herald);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("content-answers".to_owned());
            let has_herald = thread.spawn_scoped(scope, || answer_batches(&herald)).is_ok();
            let _close = CloseOnDrop(&herald);
            let mut batch = Vec::new();
            let mut last = 0;
            while self.core.orders.take(last, &mut batch) {
                last = batch.iter().filter(|request| request.done.is_some()).count();
                let answers = self.serve(&mut batch);
                match answers.len() {
                    MANY.. if has_herald => _ = herald.push(answers),
                    _ => answer(answers),
                }
            }
            self.append.rotate()
        })
    }

    fn serve(&mut self, batch: &mut Vec<Request>) -> Answers {
        self.buffer.clear();
        self.fresh.clear();
        let mut entries = Vec::with_capacity(batch.len());
        let mut forgotten = Vec::new();
        let mut sync = false;
        let mut rotate = false;
        let mut answers: Answers = Vec::with_capacity(batch.len());
        let mut settling = Settling::default();
        let core = &self.core;
        let ready = core.segments.check().and_then(|()| core.background.wait_for_index(&core.index));
        for mut request in batch.drain(..) {
            sync |= request.order.is_durable();
            let answer = ready.clone().and_then(|()| match &mut request.order {
                Order::Sync | Order::Pass => Ok(Answer::default()),
                Order::Rotate => {
                    rotate = true;
                    Ok(Answer::default())
                }
                Order::Forget(place, addresses) => {
                    forgotten.extend(addresses.drain(..).map(|address| (address, *place)));
                    Ok(Answer::default())
                }
                Order::Write(record, crc) => self.admit(record, *crc, &mut entries),
                Order::WriteAll(records) => self.admit_all(records, &mut entries),
                Order::Derived(derived) => self.admit_derived(derived, &mut entries),
                Order::Move(from, record) => self.admit_move(*from, record, &mut entries),
                Order::Remove(why, doomed) => self.admit_removal(*why, std::mem::take(doomed), &mut entries),
            });
            match request.order {
                Order::Derived(derived) => settling.add(derived, request.room, answer.err()),
                _ => answers.push((request, answer)),
            }
        }
        let result = self.write(&entries, sync, rotate).and_then(|base| {
            let indexed = self.index(&entries, base, &forgotten);
            // The log has what the index lacks: both are read again when the store is opened.
            indexed.inspect_err(|error| self.core.segments.break_off(error))
        });
        self.absolve(&entries);
        settling.settle(&self.core, result.as_ref().err());
        if let Err(error) = result {
            answers.iter_mut().for_each(|(_, answer)| *answer = Err(error.clone()));
        }
        self.core.background.wake_when_due(&self.core);
        self.core.watch_quota();
        answers
    }

    fn write(&mut self, entries: &[Entry], sync: bool, rotate: bool) -> Result<Option<Place>, Error> {
        let base = match entries {
            [] => None,
            _ => Some(self.append.append(&self.buffer)?),
        };
        if sync {
            self.append.sync()?;
        }
        if rotate {
            self.append.rotate()?;
        }
        let tail = self.append.end().segment;
        if self.core.tail.swap(tail, Ordering::AcqRel) != tail {
            self.core.keeper.wake();
        }
        Ok(base)
    }

    /// Brings what was written into the index, where everybody sees it.
    fn index(
        &mut self,
        entries: &[Entry],
        base: Option<Place>,
        forgotten: &[(Address, Place)],
    ) -> Result<(), Error> {
        let core = &self.core;
        let mut tally = core.tally();
        let mut batch = Batch::new(&core.index, &mut tally);
        for (entry, base) in entries.iter().zip(base.iter().cycle()) {
            let place = Place { offset: base.offset + entry.offset, len: entry.len, ..*base };
            batch.apply(&entry.record, place, entry.known).map_err(|error| core.index_error(error))?;
        }
        for (address, place) in forgotten {
            batch.forget(address, *place).map_err(|error| core.index_error(error))?;
        }
        let (changes, orphans) = batch.done();
        core.index.apply(changes, self.append.end().pair(), || tally.encode());
        core.used.store(tally.used_bytes(), Ordering::Relaxed);
        drop(tally);
        entries.iter().for_each(|entry| core.keep_recalled(&entry.record));
        core.background.orphans(orphans);
        Ok(())
    }

    fn absolve(&self, entries: &[Entry]) {
        for entry in entries {
            if let Fact::Remove { items, .. } = &entry.record.fact {
                items.iter().for_each(|item| self.core.guard.left(&item.address));
            }
        }
    }
}

impl Order {
    fn is_durable(&self) -> bool {
        match self {
            Order::Write(record, _) => record.class == Class::Acknowledged,
            Order::WriteAll(records) => records.iter().any(|record| record.class == Class::Acknowledged),
            Order::Remove(..) | Order::Sync | Order::Rotate => true,
            Order::Derived(_) | Order::Move(..) | Order::Forget(..) | Order::Pass => false,
        }
    }
}
