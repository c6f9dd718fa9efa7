//! The writer: one thread that takes the callers' orders, writes them as one batch, syncs it, updates the index and
//! answers (group commit).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::derivations::EncodedDerivation;
use super::derived::{DerivedBatch, DerivedValue};
use super::overlay::Overlay;
use super::quota::Claim;
use super::tables::RowBytes;
use super::{Core, Event, lock};
use crate::facts::{Class, Memo, RemovalReason};
use crate::log::{Append, Gather, ItemKind, ItemRemoval, Position, Record, RecordPlace};
use crate::{Address, Error};

/// An order to the writer, with the caller's reply channel.
#[derive(Debug)]
pub(crate) struct Request {
    pub order: Order,
    /// The caller that waits for the answer, if any.
    pub done: Option<oneshot::Sender<Result<Answer, Error>>>,
    /// The caller's share of the queue, released with the answer.
    pub room: Option<OwnedSemaphorePermit>,
    /// The room in the quota for the order's bytes, held until they are in the index.
    pub claim: Claim,
}

#[derive(Debug)]
pub(crate) enum Order {
    /// Writes a record; with its body's checksum, if the caller computed it.
    Write(Record, Option<u32>),
    /// Writes a memo, unless its derivation has one.
    WriteIfFree(Record),
    /// Writes the descriptions of derivations, which have one answer.
    Derivations(Vec<EncodedDerivation>),
    /// Writes records that have one answer, which does not wait for a sync.
    Append(Vec<Record>),
    /// Writes a derived value that is visible already; no caller waits for it.
    Derived(Box<DerivedValue>),
    /// Removes items, group by group.
    Remove(RemovalReason, Vec<RemovalGroup>),
    /// Moves a record to the log's end, if the index still points to its old place.
    Move(RecordPlace, Record),
    /// Removes tombstones whose record is at this place.
    Forget(RecordPlace, Vec<Address>),
    /// Does nothing: its answer says that all orders before it were served.
    Pass,
    /// Syncs the log.
    Sync,
    /// Syncs the log and begins a new segment.
    Rotate,
}

/// Items that are removed together, or not at all.
pub(crate) type RemovalGroup = Vec<DoomedItem>;

/// A doomed item: one that a collection, a repair or a caller chose for removal.
#[derive(Debug)]
pub(crate) struct DoomedItem {
    pub removed: ItemRemoval,
    pub when: RemovalCondition,
}

/// The condition under which the writer really removes a doomed item.
#[derive(Debug)]
pub(crate) enum RemovalCondition {
    /// Its row is unchanged, and no caller uses it.
    Unwanted(RowBytes),
    /// Its row still points to the same damaged bytes; even if a caller uses it.
    Damaged(RowBytes),
    /// Always, even if it has changed.
    Always,
}

/// The answer to an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// A record was written; false if its fact was already in the store.
    pub written: bool,
    /// The same for each of many records.
    pub each_written: Vec<bool>,
    /// The removed items.
    pub removed: Vec<(Address, ItemKind)>,
}

/// The writer's state, kept from batch to batch.
pub(crate) struct Writer {
    pub(super) core: Arc<Core>,
    append: Append,
    /// Batches to be answered; bounded by the number of waiting callers.
    answers: Arc<Gather<Answers>>,
    /// The bytes of the batch, and their position in the log.
    pub(super) buffer: Vec<u8>,
    pub(super) base: Position,
    /// The changes of the batch, on top of the index.
    pub(super) overlay: Overlay,
    pub(super) followups: Vec<Followup>,
}

/// Work to do once the batch is in the index.
pub(super) enum Followup {
    /// Update the cache of memos.
    Memo(Memo),
    /// Update the cache of memos, and allow the removed addresses to be put again.
    Removed(Vec<ItemRemoval>),
    /// Report that a derivation has another output than before.
    Diverged { derivation: Address, before: Address, now: Address },
}

/// Requests with their answers.
type Answers = Vec<(Request, Result<Answer, Error>)>;

/// From this many callers on, a separate thread answers, while the writer goes on.
const MANY: usize = 256;

fn answer(answers: Answers) {
    for (request, answer) in answers {
        // The caller may have stopped waiting.
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
        let mut settling = DerivedBatch::default();
        let mut claims = Claim::default();
        let ready =
            core.segments.check().and_then(|()| core.background.wait_for_index(core.catalogue.index()));
        let applying = lock(&core.applying);
        self.begin(batch);
        for mut request in batch.drain(..) {
            sync |= request.order.is_durable();
            claims.add(std::mem::take(&mut request.claim));
            let answer = ready.clone().and_then(|()| match &mut request.order {
                Order::Sync | Order::Pass => Ok(Answer::default()),
                Order::Rotate => {
                    rotate = true;
                    Ok(Answer::default())
                }
                Order::Forget(place, addresses) => self.admit_forgetting(*place, addresses),
                Order::Write(record, crc) => self.admit(record, *crc),
                Order::WriteIfFree(memo) => self.admit_if_free(memo),
                Order::Derivations(described) => self.admit_derivations(described),
                Order::Append(records) => self.admit_all(records),
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
            let used = tally.used_bytes();
            core.space.written(used, claims);
            drop(tally);
            if core.should_ask_for_reserve(used) {
                core.keeper.wake();
            }
            core.background.orphans(orphans);
        }
        self.overlay.end();
        drop(applying);
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
        let gone = self.core.tally().gone;
        self.overlay.begin(&self.core.catalogue, gone);
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

    /// Does the work that follows a batch, which is in the index or failed.
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
                        if is_written && matches!(item.what, ItemKind::Memo(_)) {
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
    /// The approximate number of bytes that the order writes.
    fn size_hint(&self) -> usize {
        match self {
            Order::Write(record, _) | Order::WriteIfFree(record) | Order::Move(_, record) => {
                record.fact.size_hint()
            }
            Order::Derivations(described) => described.iter().map(|it| it.encoded.len()).sum(),
            Order::Append(records) => records.iter().map(|record| record.fact.size_hint()).sum(),
            Order::Derived(derived) => {
                let memos = derived.memos.iter().flatten().map(|memo| memo.record.fact.size_hint());
                derived.blob.fact.size_hint() + memos.sum::<usize>()
            }
            Order::Remove(_, groups) => {
                groups.iter().flatten().map(|doomed| 96 + 32 * doomed.removed.edges.len()).sum()
            }
            Order::Forget(..) | Order::Pass | Order::Sync | Order::Rotate => 0,
        }
    }

    fn is_durable(&self) -> bool {
        match self {
            Order::Write(record, _) | Order::WriteIfFree(record) => record.class == Class::Acknowledged,
            Order::Derivations(_) | Order::Remove(..) | Order::Sync | Order::Rotate => true,
            Order::Append(_) | Order::Derived(_) | Order::Move(..) | Order::Forget(..) | Order::Pass => false,
        }
    }
}
