//! The writer: one thread that takes what callers left, writes it as one batch, makes it durable, tells the index,
//! and answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::derived::{Derived, Settling};
use super::overlay::Overlay;
use super::tables::RowBytes;
use super::{Core, Event};
use crate::facts::{Class, Memo, RemovalReason};
use crate::log::{Append, Gather, Place, Position, Record, Removed, What};
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
    Remove(RemovalReason, Vec<Group>),
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
    answers: Arc<Gather<Answers>>,
    /// The batch as it goes to the log, and where it goes.
    pub(super) buffer: Vec<u8>,
    pub(super) base: Position,
    /// What the batch changes: newer than what the index says.
    pub(super) overlay: Overlay,
    pub(super) followups: Vec<Followup>,
}

/// What is to be done once the batch is in the index.
pub(super) enum Followup {
    /// The memos in memory follow.
    Memo(Memo),
    /// So do they, and the removed addresses may be put again.
    Removed(Vec<Removed>),
    /// A derivation came to something else than before.
    Diverged { derivation: Address, before: Address, now: Address },
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

fn answer_batches(queue: &Gather<Answers>) {
    let mut batches = Vec::new();
    while queue.take(0, &mut batches) {
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
            base: append.end(),
            append,
            answers: Arc::new(Gather::new()),
            buffer: Vec::new(),
            overlay: Overlay::default(),
            followups: Vec::new(),
        }
    }

    /// Serves orders until the queue is closed and empty.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        let queue = Arc::clone(&self.answers);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("content-answers".to_owned());
            let has_thread = thread.spawn_scoped(scope, || answer_batches(&queue)).is_ok();
            let _close = CloseOnDrop(&queue);
            let mut batch = Vec::new();
            let mut last = 0;
            while self.core.orders.take(last, &mut batch) {
                last = batch.iter().filter(|request| request.done.is_some()).count();
                let answers = self.serve(&mut batch);
                match answers.len() {
                    MANY.. if has_thread => _ = queue.push(answers),
                    _ => answer(answers),
                }
            }
            self.append.rotate()
        })
    }

    fn serve(&mut self, batch: &mut Vec<Request>) -> Answers {
        let core = Arc::clone(&self.core);
        let mut sync = false;
        let mut rotate = false;
        let mut answers: Answers = Vec::with_capacity(batch.len());
        let mut settling = Settling::default();
        let ready =
            core.segments.check().and_then(|()| core.background.wait_for_index(core.catalogue.index()));
        self.begin(batch);
        for mut request in batch.drain(..) {
            sync |= request.order.is_durable();
            let answer = ready.clone().and_then(|()| match &mut request.order {
                Order::Sync | Order::Pass => Ok(Answer::default()),
                Order::Rotate => {
                    rotate = true;
                    Ok(Answer::default())
                }
                Order::Forget(place, addresses) => self.admit_forgetting(*place, addresses),
                Order::Write(record, crc) => self.admit(record, *crc),
                Order::WriteAll(records) => self.admit_all(records),
                Order::Derived(derived) => self.admit_derived(derived),
                Order::Move(from, record) => self.admit_move(*from, record),
                Order::Remove(why, doomed) => self.admit_removal(*why, std::mem::take(doomed)),
            });
            match request.order {
                Order::Derived(derived) => settling.add(derived, request.room, answer.err()),
                _ => answers.push((request, answer)),
            }
        }
        let result = self.write(sync, rotate);
        if result.is_ok() {
            let mut tally = core.tally();
            let orphans = core.catalogue.apply(self.overlay.changes(), self.append.end(), &mut tally);
            core.used.store(tally.used_bytes(), Ordering::Relaxed);
            drop(tally);
            core.background.orphans(orphans);
        }
        self.follow_up(result.is_ok());
        settling.settle(&core, result.as_ref().err());
        if let Err(error) = result {
            answers.iter_mut().for_each(|(_, answer)| *answer = Err(error.clone()));
        }
        core.background.wake_when_due(&core);
        core.watch_quota();
        answers
    }

    fn begin(&mut self, batch: &[Request]) {
        self.buffer.clear();
        self.followups.clear();
        self.overlay.begin(self.core.tally().gone);
        let size: usize = batch.iter().map(|request| request.order.size_hint()).sum();
        self.base = self.append.next(size as u64);
    }

    fn write(&mut self, sync: bool, rotate: bool) -> Result<(), Error> {
        if !self.buffer.is_empty() {
            self.append.append(self.base, &self.buffer)?;
        }
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
        Ok(())
    }

    /// The batch is in the index, or failed.
    fn follow_up(&mut self, is_written: bool) {
        let Core { catalogue, guard, .. } = &*self.core;
        for followup in self.followups.drain(..) {
            match followup {
                Followup::Memo(memo) if is_written => catalogue.memo_written(&memo),
                Followup::Diverged { derivation, before, now } if is_written => {
                    self.core.tell(&Event::Diverged { derivation, before, now });
                }
                Followup::Memo(_) | Followup::Diverged { .. } => {}
                Followup::Removed(items) => {
                    for item in items {
                        if is_written && matches!(item.what, What::Memo(_)) {
                            catalogue.memo_removed(&item.address);
                        }
                        guard.left(&item.address);
                    }
                }
            }
        }
    }
}

impl Order {
    /// About how many bytes it has written.
    fn size_hint(&self) -> usize {
        match self {
            Order::Write(record, _) | Order::Move(_, record) => record.fact.size_hint(),
            Order::WriteAll(records) => records.iter().map(|record| record.fact.size_hint()).sum(),
            Order::Derived(derived) => derived.blob.fact.size_hint() + derived.memo.fact.size_hint(),
            Order::Remove(_, groups) => {
                groups.iter().flatten().map(|doomed| 96 + 32 * doomed.removed.edges.len()).sum()
            }
            Order::Forget(..) | Order::Pass | Order::Sync | Order::Rotate => 0,
        }
    }

    fn is_durable(&self) -> bool {
        match self {
            Order::Write(record, _) => record.class == Class::Acknowledged,
            Order::WriteAll(records) => records.iter().any(|record| record.class == Class::Acknowledged),
            Order::Remove(..) | Order::Sync | Order::Rotate => true,
            Order::Derived(_) | Order::Move(..) | Order::Forget(..) | Order::Pass => false,
        }
    }
}
