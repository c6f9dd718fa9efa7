//! The writer: one thread that takes what callers left, writes it as one batch, makes it durable, tells the index,
//! and answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Core;
use super::apply::{Batch, Known, name_key};
use super::tables::{Blob, GoneRow, Home, MemoRow, NameRow, Noted, Row, RowBytes, Table};
use crate::facts::{Class, Time, Why};
use crate::index::{BuildBits, Key};
use crate::log::{Append, Fact, Gather, Place, Record, Removed, What};
use crate::{Address, Error, Wait};

/// A record of removals is full with so many bytes of edges: far from what a record may have, even with one more.
const REMOVED_MOST: usize = 4 << 20;

/// Something for the writer to do.
#[derive(Debug)]
pub(crate) struct Request {
    pub order: Order,
    pub done: oneshot::Sender<Result<Answer, Error>>,
    /// The caller's share of the queue, given back with the answer.
    pub _room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(crate) enum Order {
    /// A record, and its body's checksum if its caller made it.
    Write(Record, Option<u32>),
    /// Removes what is still as it was seen and wanted by nobody.
    Remove(Why, Vec<Doomed>),
    /// Takes a record to the log's end, if it still holds at its old place.
    Move(Place, Record),
    /// Forgets tombstones that a record carried.
    Forget(Place, Vec<Address>),
    /// Makes the whole log durable.
    Sync,
    /// The same, and begins a new segment.
    Rotate,
}

/// Something to remove.
#[derive(Debug)]
pub(crate) struct Doomed {
    pub removed: Removed,
    /// Its row when it was doomed; if that has changed, it stays. Nothing: remove it whoever wants it.
    pub seen: Option<RowBytes>,
}

/// What became of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Something was written; else it was there already.
    pub written: bool,
    /// What was removed.
    pub removed: Vec<(Address, What)>,
}

/// The writer's state, kept from batch to batch.
pub(crate) struct Writer {
    core: Arc<Core>,
    append: Append,
    /// Batches to be answered; their callers wait, so they are the bound.
    herald: Arc<Gather<Answers>>,
    buffer: Vec<u8>,
    /// What this batch brings or takes away: newer than what the index says.
    fresh: HashMap<Key, Fresh, BuildBits>,
}

/// Callers, and what they are to be told.
type Answers = Vec<(Request, Result<Answer, Error>)>;

/// So many callers are answered by a thread of its own, while the writer goes on.
const MANY: usize = 256;

fn answer(answers: Answers) {
    for (request, answer) in answers {
        // A caller that went away does not want to know.
        let _ = request.done.send(answer);
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

/// How the batch changes what the index has under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fresh {
    /// Something else will be there, elsewhere.
    There(Class),
    /// The same will be there, with this promise.
    Touched(Class),
    /// Nothing will be there.
    Gone,
}

/// A request that is written, and where in the buffer.
struct Entry {
    record: Record,
    offset: u32,
    len: u32,
    known: Known,
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
                last = batch.len();
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
        let core = &self.core;
        let ready = core.segments.check().and_then(|()| core.background.wait_for_index(&core.index));
        for mut request in batch.drain(..) {
            sync |= request.order.is_durable();
            let answer = ready.clone().and_then(|()| match &mut request.order {
                Order::Sync => Ok(Answer::default()),
                Order::Rotate => {
                    rotate = true;
                    Ok(Answer::default())
                }
                Order::Forget(place, addresses) => {
                    forgotten.extend(addresses.drain(..).map(|address| (address, *place)));
                    Ok(Answer::default())
                }
                Order::Write(record, crc) => self.admit(record, *crc, &mut entries),
                Order::Move(from, record) => self.admit_move(*from, record, &mut entries),
                Order::Remove(why, doomed) => self.admit_removal(*why, std::mem::take(doomed), &mut entries),
            });
            answers.push((request, answer));
        }
        let result = self.write(&entries, sync, rotate).and_then(|base| {
            let indexed = self.index(&entries, base, &forgotten);
            // The log has what the index lacks: both are read again when the store is opened.
            indexed.inspect_err(|error| self.core.segments.break_off(error))
        });
        self.absolve(&entries);
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

    /// Takes a record into the batch, unless what it says is so already.
    fn admit(
        &mut self,
        record: &mut Record,
        crc: Option<u32>,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        let mut known = Known::Unknown;
        let mut nothing = |is_nothing| {
            if is_nothing {
                known = Known::Nothing;
            }
        };
        let present = match &record.fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                let key = Table::Blob.key(address);
                match self.present_blob(&key)? {
                    Some((class, _)) if class >= record.class => true,
                    Some((_, Some(Home::Packed))) => {
                        // The bytes are in the log already; what they lack is the promise.
                        let touch = Record { fact: Fact::Touch { address: *address }, ..*record };
                        self.note_fresh(&touch);
                        self.enter(touch, entries);
                        return Ok(Answer::default());
                    }
                    there => {
                        nothing(there.is_none() && !self.fresh.contains_key(&key));
                        false
                    }
                }
            }
            Fact::Derivation { address, .. } => {
                let row = self.row::<Noted>(Table::Derivation.key(address))?;
                nothing(row.is_none() && !self.fresh.contains_key(&Table::Derivation.key(address)));
                row.is_some_and(|row| self.is_recent(row.at, record))
            }
            Fact::Memo { derivation, output, .. } => {
                let row = self.row::<MemoRow>(Table::Memo.key(derivation))?;
                nothing(row.is_none() && !self.fresh.contains_key(&Table::Memo.key(derivation)));
                row.is_some_and(|row| {
                    let same = row.memo.output == *output && row.class >= record.class;
                    same && self.is_recent(row.memo.at, record)
                })
            }
            Fact::Pin { address } => self.row::<Noted>(Table::Pin.key(address))?.is_some(),
            Fact::Unpin { address } => self.row::<Noted>(Table::Pin.key(address))?.is_none(),
            Fact::Touch { address } => self.present_blob(&Table::Blob.key(address))?.is_none(),
            Fact::Name { .. } | Fact::Remove { .. } => false,
        };
        if !present {
            self.note_fresh(record);
            self.enter_known(record.take(), crc, known, entries);
        }
        Ok(Answer { written: !present, removed: Vec::new() })
    }

    /// What this record says is newer than what the index has, until the batch is in.
    fn note_fresh(&mut self, record: &Record) {
        if let Some(key) = subject(&record.fact) {
            let fresh = match record.fact {
                Fact::Touch { .. } => Fresh::Touched(record.class),
                Fact::Unpin { .. } => Fresh::Gone,
                _ => Fresh::There(record.class),
            };
            self.fresh.insert(key, fresh);
        }
    }

    /// Is it too soon to say the same again? Later, what is said again counts as young again.
    fn is_recent(&self, at: Time, record: &Record) -> bool {
        record.at.since(at) < self.core.config.touch_after
    }

    /// The class of a blob that is there, or will be when this batch is, and where it is in the former case.
    fn present_blob(&self, key: &Key) -> Result<Option<(Class, Option<Home>)>, Error> {
        let there = |class| Ok(self.row::<Blob>(*key)?.map(|blob| (blob.class.max(class), Some(blob.home))));
        match self.fresh.get(key) {
            Some(Fresh::There(class)) => Ok(Some((*class, None))),
            Some(Fresh::Touched(class)) => there(*class),
            Some(Fresh::Gone) => Ok(None),
            None => there(Class::Derivable),
        }
    }

    fn admit_move(
        &mut self,
        from: Place,
        record: &Record,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        if !self.holds(from, &record.fact)? {
            return Ok(Answer::default());
        }
        let mut record = record.clone();
        if let Fact::Blob { address, .. } | Fact::File { address, .. } = &record.fact {
            // What was learnt of it since it was written goes with it.
            let key = Table::Blob.key(address);
            let blob: Option<Blob> = self.row(key)?;
            let touched = self.present_blob(&key)?.map(|(class, _)| class);
            record.class = record.class.max(touched.unwrap_or(record.class));
            record.at = record.at.max(blob.map_or(record.at, |blob| blob.at));
        }
        if !matches!(record.fact, Fact::Remove { .. }) {
            self.note_fresh(&record);
        }
        self.enter(record, entries);
        Ok(Answer { written: true, removed: Vec::new() })
    }

    /// Does the index still mean this record when it says what the record says?
    fn holds(&self, place: Place, fact: &Fact) -> Result<bool, Error> {
        // A tombstone is moved by itself, and does not hold if what it is of comes back in this batch.
        let fresh = match fact {
            Fact::Remove { items, .. } => items.first().map(|item| table(item.what).key(&item.address)),
            fact => subject(fact),
        };
        let fresh = fresh.and_then(|key| self.fresh.get(&key));
        if matches!(fresh, Some(Fresh::There(_) | Fresh::Gone)) {
            return Ok(false);
        }
        let found = match fact {
            Fact::Blob { address, .. } | Fact::File { address, .. } => {
                self.row::<Blob>(Table::Blob.key(address))?.map(|row| row.place())
            }
            Fact::Derivation { address, .. } => {
                self.row::<Noted>(Table::Derivation.key(address))?.map(|row| row.place())
            }
            Fact::Memo { derivation, .. } => {
                self.row::<MemoRow>(Table::Memo.key(derivation))?.map(|row| row.place())
            }
            Fact::Pin { address } => self.row::<Noted>(Table::Pin.key(address))?.map(|row| row.place()),
            Fact::Name { name, .. } => self.row::<NameRow>(name_key(name))?.map(|row| row.place()),
            Fact::Remove { items, .. } => match items.first() {
                Some(item) => self.row::<GoneRow>(Table::Gone.key(&item.address))?.map(|row| row.place()),
                None => None,
            },
            Fact::Touch { .. } | Fact::Unpin { .. } => None,
        };
        Ok(found.is_some_and(|found| found.is_at(place)))
    }

    fn admit_removal(
        &mut self,
        why: Why,
        doomed: Vec<Doomed>,
        entries: &mut Vec<Entry>,
    ) -> Result<Answer, Error> {
        let key = |removed: &Removed| table(removed.what).key(&removed.address);
        // All that may fail comes first: what is said to leave, leaves.
        let rows = doomed.iter().map(|doomed| self.core.index.get(&key(&doomed.removed), Wait::Yes));
        let rows: Vec<_> = rows.collect::<Result<_, _>>().map_err(|error| self.core.index_error(error))?;
        let at: Time = (self.core.config.clock)();
        let (mut items, mut size) = (Vec::new(), 0);
        let mut removed = Vec::new();
        for (Doomed { removed: item, seen }, row) in doomed.into_iter().zip(rows) {
            if !self.is_still(&item, seen.as_deref(), row.as_deref()) {
                continue;
            }
            self.fresh.insert(key(&item), Fresh::Gone);
            removed.push((item.address, item.what));
            size += item.edges.len() * 32;
            items.push(item);
            if size > REMOVED_MOST {
                let fact = Fact::Remove { why, items: std::mem::take(&mut items) };
                self.enter(Record { at, class: Class::Acknowledged, fact }, entries);
                size = 0;
            }
        }
        if !items.is_empty() {
            self.enter(Record { at, class: Class::Acknowledged, fact: Fact::Remove { why, items } }, entries);
        }
        Ok(Answer { written: true, removed })
    }

    /// Is it as it was seen, and does nobody want it? Then it leaves now.
    fn is_still(&self, removed: &Removed, seen: Option<&[u8]>, there: Option<&[u8]>) -> bool {
        let address = &removed.address;
        let fresh = self.fresh.get(&table(removed.what).key(address));
        match seen {
            None if there.is_none() || fresh == Some(&Fresh::Gone) => false,
            None => {
                self.core.guard.leave_now(address);
                true
            }
            Some(seen) => there == Some(seen) && fresh.is_none() && self.core.guard.leave(address),
        }
    }

    fn enter(&mut self, record: Record, entries: &mut Vec<Entry>) {
        self.enter_known(record, None, Known::Unknown, entries);
    }

    fn enter_known(&mut self, record: Record, crc: Option<u32>, known: Known, entries: &mut Vec<Entry>) {
        let offset = self.buffer.len();
        record.encode_with(self.core.segments.salt(), crc, &mut self.buffer);
        let len = (self.buffer.len() - offset) as u32;
        entries.push(Entry { record, offset: offset as u32, len, known });
    }

    fn row<R: Row>(&self, key: Key) -> Result<Option<R>, Error> {
        match self.fresh.get(&key) {
            Some(Fresh::Gone) => Ok(None),
            _ => self.core.row(&key, Wait::Yes),
        }
    }
}

/// What a fact is about: where the index has it.
fn subject(fact: &Fact) -> Option<Key> {
    match fact {
        Fact::Blob { address, .. } | Fact::File { address, .. } | Fact::Touch { address } => {
            Some(Table::Blob.key(address))
        }
        Fact::Derivation { address, .. } => Some(Table::Derivation.key(address)),
        Fact::Memo { derivation, .. } => Some(Table::Memo.key(derivation)),
        Fact::Pin { address } | Fact::Unpin { address } => Some(Table::Pin.key(address)),
        Fact::Name { name, .. } => Some(name_key(name)),
        Fact::Remove { .. } => None,
    }
}

fn table(what: What) -> Table {
    match what {
        What::Blob => Table::Blob,
        What::Derivation => Table::Derivation,
        What::Memo(_) => Table::Memo,
    }
}

impl Order {
    fn is_durable(&self) -> bool {
        match self {
            Order::Write(record, _) => record.class == Class::Acknowledged,
            Order::Remove(..) | Order::Sync | Order::Rotate => true,
            Order::Move(..) | Order::Forget(..) => false,
        }
    }
}
