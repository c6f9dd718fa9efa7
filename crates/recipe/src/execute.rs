//! One computation: a function (or several in a row) with its inputs at hand, from first chunk to memo.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Class, Cost, Error as Kept, Reader, Writer};
use anabranch_engine::flight::{Panicked, Waiter};
use anabranch_engine::options::Class as Pace;
use anabranch_text::panic_message;
use bytes::Bytes;
use smallvec::SmallVec;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::chain::Chain;
use crate::closure;
use crate::error::Error;
use crate::events::Event;
use crate::executor::Inner;
use crate::function::{Call, Chunks, Fault, Function, Holds, Kernel, Open, Out, Signature};
use crate::recipe::{FunctionId, Params};
use crate::registry;
use crate::run::{Given, Kept as InMemory, Made};

/// The most functions that are fused.
pub(crate) const ROW_MOST: usize = 64;

/// Values up to this size are kept in one piece; what works on no more needs no share of the memory for functions.
const SMALL: usize = 64 << 10;

/// A function is given its inputs in chunks of at most this size.
const CHUNK: usize = 256 << 10;

/// So much is read ahead before a function goes on.
const AHEAD: usize = 1 << 20;

/// After so many inputs or pieces, others on the same thread have their turn.
const TURNS: u32 = 64;

/// What a streaming function takes: chunks read ahead, given, and on their way to the disk.
const STREAMING: u64 = 4 << 20;

/// A recipe in hand.
pub(crate) struct Stage {
    pub address: Address,
    pub function: Arc<dyn Function>,
    pub params: Option<Arc<Params>>,
    pub input_count: usize,
}

/// One recipe, or several to be fused.
pub(crate) type Stages = SmallVec<[Stage; 1]>;

/// Whom a value is computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For a recipe that reads it.
    Recipe,
    /// For who asked for it.
    Caller,
}

impl Stage {
    pub(crate) fn failed(&self, fault: Fault) -> Error {
        Error::Function { address: self.address, function: self.id(), fault }
    }

    fn panicked(&self, message: String) -> Error {
        Error::Panicked { address: self.address, function: self.id(), message }
    }

    fn id(&self) -> Box<FunctionId> {
        Box::new(self.function.signature().id.clone())
    }

    fn begin(&self, sizes: &[u64]) -> Result<Box<dyn Kernel>, Error> {
        let none = Params::new();
        let call = Call { params: self.params.as_deref().unwrap_or(&none), sizes };
        match catch_unwind(AssertUnwindSafe(|| self.function.begin(&call))) {
            Ok(begun) => begun.map_err(|fault| self.failed(fault)),
            Err(payload) => Err(self.panicked(panic_message(&*payload))),
        }
    }
}

/// Joins the flight of the last stage's address, or opens one with these inputs.
pub(crate) fn join(
    inner: &Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<Given>,
) -> Waiter<Address, Result<Made, Error>> {
    let address = stages.last().expect("there is something to compute").address;
    let working = Arc::clone(inner);
    inner.flights.join(address, || None, move || execute(working, stages, purpose, inputs))
}

/// Computes as many of the stages together as nobody else reads between; says which was the last of them.
pub(crate) async fn row(
    inner: Arc<Inner>,
    mut stages: Vec<Stage>,
    purposes: Vec<Purpose>,
    inputs: Vec<Given>,
) -> Result<(Made, usize), Error> {
    let mut together = 1;
    while together < stages.len() {
        let (before, next) = (&stages[together - 1], &stages[together]);
        let none = Params::new();
        let params = next.params.as_deref().unwrap_or(&none);
        // Whatever is wrong with the next one is told when its turn comes.
        let fits = registry::check(next.function.signature(), next.input_count, params).is_ok();
        if !fits || inner.store.dependents(&before.address, None, 2).await?.len() > 1 {
            break;
        }
        together += 1;
    }
    stages.truncate(together);
    match join(&inner, stages.into(), purposes[together - 1], inputs).await {
        Ok(landed) => Ok((landed?, together - 1)),
        Err(Panicked(message)) => std::panic::resume_unwind(Box::new(message)),
    }
}

async fn execute(
    inner: Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<Given>,
) -> Result<Made, Error> {
    let address = stages[stages.len() - 1].address;
    // Another flight may have landed since this one was asked for.
    if let Some(memo) = inner.store.recall(&address).await? {
        let mut lease = inner.store.lease();
        if let Some((output, size)) = closure::remembered(&inner, memo, &mut lease).await? {
            let given = Given { output, size, bytes: None, kept: None, lease: Some(Arc::new(lease)) };
            return Ok(Made { given, fresh: false });
        }
    }
    let counters = &inner.counters;
    let result = compute(&inner, stages, purpose, inputs).await;
    match &result {
        Ok((made, count, spent)) => {
            inner.count(&counters.computed, *count as u64);
            let (Given { output, size, .. }, micros) = (&made.given, spent.as_micros() as u64);
            inner.events.tell(|| Event::Computed { address, output: *output, size: *size, micros });
        }
        Err(error) => {
            inner.count(&counters.failed, 1);
            inner.events.tell(|| Event::Failed { address, error: error.to_string() });
        }
    }
    result.map(|(made, ..)| made)
}

async fn compute(
    inner: &Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<Given>,
) -> Result<(Made, usize, Duration), Error> {
    let room = room(inner, &stages, &inputs).await?;
    let count = stages.len();
    let mut drive = Box::new(Drive::begin(stages, inputs, room)?);
    let mut sink = Sink::Small(Chunks::new(), 0);
    let mut spent = Duration::ZERO;
    let mut turns = 0u32;
    loop {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(TURNS) {
            tokio::task::yield_now().await;
        }
        let stop;
        (drive, stop) = advance(inner, drive, &mut spent).await?;
        let (chunks, paused) = drive.out.take();
        drive.paused = paused;
        for chunk in chunks {
            sink = sink.take(inner, purpose, chunk).await?;
        }
        match stop {
            Stop::Given => {}
            Stop::Needs(input) => drive.fill(input, inner).await?,
            Stop::Done => break,
        }
    }
    let derivation = drive.stages[count - 1].address;
    let made = sink.keep(inner, derivation, spent).await?;
    Ok((made, count, spent))
}

/// A share of the memory for functions.
async fn room(
    inner: &Inner,
    stages: &Stages,
    inputs: &[Given],
) -> Result<Option<OwnedSemaphorePermit>, Error> {
    let total: u64 = inputs.iter().map(|given| given.size).sum();
    if total <= SMALL as u64 {
        return Ok(None);
    }
    let most = u64::from(inner.config.memory_bytes);
    let stage = &stages[0];
    let bytes = match stage.function.signature().holds {
        Holds::Chunks => (STREAMING * stages.len() as u64).min(2 * total).min(most),
        Holds::Everything if 2 * total <= most => 2 * total,
        Holds::Everything => {
            let what = "the inputs of a function that holds them in memory";
            return Err(stage.failed(Fault::TooLarge { what, most: most / 2 }));
        }
    };
    let permit = Arc::clone(&inner.memory).acquire_many_owned(bytes as u32).await;
    permit.map(Some).map_err(|_| Error::Stopped)
}

/// Lets the function go on as far as it gets: here if that is quick, else on a thread for such work.
async fn advance(
    inner: &Inner,
    mut drive: Box<Drive>,
    spent: &mut Duration,
) -> Result<(Box<Drive>, Stop), Error> {
    let effort = drive.effort();
    let clock = inner.engine.clock();
    if effort.is_some_and(|effort| effort <= inner.engine.inline_threshold()) {
        let began = clock.now();
        let stop = drive.advance();
        *spent += clock.now().saturating_duration_since(began);
        return stop.map(|stop| (drive, stop));
    }
    let (done, back) = oneshot::channel();
    let clock = Arc::clone(clock);
    let run = Box::new(move || {
        if done.is_closed() {
            return;
        }
        let began = clock.now();
        let stop = drive.advance();
        // Whoever waited may be gone by now.
        let _ = done.send((drive, stop, clock.now().saturating_duration_since(began)));
    });
    inner.engine.pool(Pace::Batch).submit(run);
    let (drive, stop, took) = back.await.map_err(|_| Error::Stopped)?;
    *spent += took;
    stop.map(|stop| (drive, stop))
}

/// A call under way, with what it has been given.
struct Drive {
    stages: Stages,
    kernel: Work,
    feeds: SmallVec<[Feed; 1]>,
    ended: SmallVec<[bool; 8]>,
    /// All before have ended.
    first: usize,
    out: Out,
    paused: bool,
    finishing: bool,
    total: u64,
    /// How many feeds have a reader.
    reading: usize,
    /// Goes where the inputs go, for a call that nobody waits for any more may still be at work.
    _room: Option<OwnedSemaphorePermit>,
}

enum Work {
    One(Box<dyn Kernel>),
    Row(Chain),
}

/// Why a call does not go on by itself.
enum Stop {
    /// What it gave is to be taken away first.
    Given,
    /// It needs more of that input.
    Needs(usize),
    Done,
}

impl Drive {
    fn begin(stages: Stages, inputs: Vec<Given>, room: Option<OwnedSemaphorePermit>) -> Result<Drive, Error> {
        let sizes: SmallVec<[u64; 8]> = inputs.iter().map(|given| given.size).collect();
        let kernel = match &stages[..] {
            [only] => Work::One(only.begin(&sizes)?),
            [first, rest @ ..] => {
                let mut kernels = vec![first.begin(&sizes)?];
                for stage in rest {
                    kernels.push(stage.begin(&[u64::MAX])?);
                }
                Work::Row(Chain::new(kernels))
            }
            [] => unreachable!("there is something to compute"),
        };
        let total = sizes.iter().sum();
        let ended = SmallVec::from_elem(false, inputs.len());
        let feeds = inputs.into_iter().map(Feed::of).collect();
        let out = Out::default();
        Ok(Drive {
            stages,
            kernel,
            feeds,
            ended,
            first: 0,
            out,
            paused: false,
            finishing: false,
            total,
            reading: 0,
            _room: room,
        })
    }

    /// Reads on in an input. Those that are read by turns share what is read ahead.
    async fn fill(&mut self, input: usize, inner: &Inner) -> Result<(), Error> {
        let feed = &mut self.feeds[input];
        self.reading -= usize::from(feed.reader.is_some());
        feed.fill(inner, AHEAD / (self.reading + 1)).await?;
        self.reading += usize::from(feed.reader.is_some());
        Ok(())
    }

    /// How long going on will take, about; nothing if nobody knows.
    fn effort(&self) -> Option<Duration> {
        let nanos = |stage: &Stage| stage.function.signature().nanos_per_kib;
        if self.stages.iter().any(|stage| nanos(stage) == Signature::OPAQUE) {
            return None;
        }
        let ready: u64 = match self.stages[0].function.signature().holds {
            // It works once it has everything.
            Holds::Everything => self.total,
            Holds::Chunks => self.feeds.get(self.first).map_or(0, |feed| feed.ready_bytes as u64),
        };
        let nanos: u64 = self.stages.iter().map(|stage| u64::from(nanos(stage))).sum();
        Some(Duration::from_nanos(ready.saturating_mul(nanos) >> 10))
    }

    fn advance(&mut self) -> Result<Stop, Error> {
        match catch_unwind(AssertUnwindSafe(|| self.go_on())) {
            Ok(Ok(stop)) => Ok(stop),
            Ok(Err(fault)) => Err(self.stages[self.at()].failed(fault)),
            Err(payload) => Err(self.stages[self.at()].panicked(panic_message(&*payload))),
        }
    }

    fn at(&self) -> usize {
        match &self.kernel {
            Work::One(_) => 0,
            Work::Row(chain) => chain.at(),
        }
    }

    fn go_on(&mut self) -> Result<Stop, Fault> {
        let Drive { kernel, feeds, ended, first, out, paused, finishing, .. } = self;
        let kernel: &mut dyn Kernel = match kernel {
            Work::One(kernel) => &mut **kernel,
            Work::Row(chain) => chain,
        };
        if std::mem::take(paused) {
            kernel.resume(out)?;
        }
        loop {
            if out.is_full() || out.is_paused() {
                return Ok(Stop::Given);
            }
            if *finishing {
                return Ok(Stop::Done);
            }
            match kernel.wants(&Open { ended, first: *first }) {
                Some(input) => {
                    assert!(!ended[input], "it wants more of input {input}, which has ended");
                    let feed = &mut feeds[input];
                    if let Some(chunk) = feed.pop() {
                        kernel.push(input, chunk, out)?;
                    } else if feed.is_done {
                        ended[input] = true;
                        while ended.get(*first) == Some(&true) {
                            *first += 1;
                        }
                        kernel.end(input, out)?;
                    } else {
                        return Ok(Stop::Needs(input));
                    }
                }
                None => {
                    *finishing = true;
                    kernel.finish(out)?;
                }
            }
        }
    }
}

/// An input on its way to a function.
struct Feed {
    given: Given,
    reader: Option<Box<Reader>>,
    ready: SmallVec<[Bytes; 1]>,
    /// So many of those are used up.
    used: usize,
    ready_bytes: usize,
    is_done: bool,
}

impl Feed {
    fn of(mut given: Given) -> Feed {
        let bytes = given.bytes.take();
        let is_done = bytes.is_some() || given.size == 0;
        let mut feed = Feed { given, reader: None, ready: SmallVec::new(), used: 0, ready_bytes: 0, is_done };
        bytes.into_iter().for_each(|bytes| feed.push(bytes));
        feed
    }

    fn push(&mut self, bytes: Bytes) {
        self.ready_bytes += bytes.len();
        if !bytes.is_empty() {
            self.ready.push(bytes);
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let piece = self.ready.get_mut(self.used)?;
        let chunk = if piece.len() > CHUNK { piece.split_to(CHUNK) } else { std::mem::take(piece) };
        if piece.is_empty() {
            self.used += 1;
        }
        if self.used == self.ready.len() {
            self.ready.clear();
            self.used = 0;
        }
        self.ready_bytes -= chunk.len();
        Some(chunk)
    }

    /// Reads on: at least a piece, and no more once there are so many bytes.
    async fn fill(&mut self, inner: &Inner, ahead: usize) -> Result<(), Error> {
        let address = self.given.output;
        if self.given.size <= SMALL as u64 {
            let bytes = inner.store.get(&address).await?.ok_or(Kept::Missing { address })?;
            self.push(bytes);
            self.is_done = true;
            return Ok(());
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let reader =
                    inner.store.read(&address, 0..u64::MAX).await?.ok_or(Kept::Missing { address })?;
                self.reader.insert(Box::new(reader))
            }
        };
        let mut pieces: SmallVec<[Bytes; 4]> = SmallVec::new();
        let mut read = 0;
        while read < ahead && !self.is_done {
            match reader.next().await {
                Some(piece) => {
                    let piece = piece?;
                    read += piece.len();
                    pieces.push(piece);
                }
                None => self.is_done = true,
            }
        }
        if self.is_done {
            self.reader = None;
        }
        pieces.into_iter().for_each(|piece| self.push(piece));
        Ok(())
    }
}

/// The largest value that is also kept in memory for who asked for it.
const KEPT_MOST: usize = 16 << 20;

/// An output on its way to the store.
enum Sink {
    Small(Chunks, usize),
    /// With its bytes, as long as they are not too many.
    Large(Box<Writer>, Option<InMemory>, usize),
}

impl Sink {
    async fn take(self, inner: &Inner, purpose: Purpose, chunk: Bytes) -> Result<Sink, Error> {
        match self {
            Sink::Small(mut chunks, len) if len + chunk.len() <= SMALL => {
                let len = len + chunk.len();
                chunks.push(chunk);
                Ok(Sink::Small(chunks, len))
            }
            Sink::Small(mut chunks, len) => {
                let mut writer = inner.store.writer(Class::Derivable);
                let len = len + chunk.len();
                chunks.push(chunk);
                for chunk in &chunks {
                    writer.write(chunk.clone()).await?;
                }
                // Only the last recipe's value is wanted as it is.
                let room = match purpose {
                    Purpose::Caller => Arc::clone(&inner.kept).try_acquire_many_owned(KEPT_MOST as u32).ok(),
                    Purpose::Recipe => None,
                };
                let kept = room.map(|room| InMemory { chunks: chunks.into_vec(), room });
                Ok(Sink::Large(Box::new(writer), kept, len))
            }
            Sink::Large(mut writer, kept, len) => {
                let len = len + chunk.len();
                let kept = kept.filter(|_| len <= KEPT_MOST).map(|mut kept| {
                    kept.chunks.push(chunk.clone());
                    kept
                });
                writer.write(chunk).await?;
                Ok(Sink::Large(writer, kept, len))
            }
        }
    }

    /// The output is whole: keeps it, and that the recipe came to it. A small one is written later.
    async fn keep(self, inner: &Inner, derivation: Address, spent: Duration) -> Result<Made, Error> {
        let store = &inner.store;
        let cost = Cost { cpu: spent, ..Cost::default() };
        let remembered =
            |output, size| anabranch_content::NewMemo { derivation, output, size, cost, inputs: &[] };
        match self {
            Sink::Small(chunks, len) => {
                let bytes = registry::join(chunks);
                let (output, size) = (Address::of(&bytes), len as u64);
                store.derived(remembered(output, size), bytes.clone()).await?;
                let given = Given { output, size, bytes: Some(bytes), kept: None, lease: None };
                Ok(Made { given, fresh: true })
            }
            Sink::Large(writer, mut kept, len) => {
                // It has room for the largest.
                if let Some(kept) = &mut kept {
                    drop(kept.room.split(KEPT_MOST - len));
                }
                let put = writer.finish().await?;
                let mut lease = store.lease();
                // It may have been collected before it was held.
                if !lease.hold(put.address).await? || store.size(&put.address).await?.is_none() {
                    return Err(Kept::Missing { address: put.address }.into());
                }
                store.remember(remembered(put.address, put.len), Class::Derivable).await?;
                let (lease, kept) = (Some(Arc::new(lease)), kept.map(Arc::new));
                let given = Given { output: put.address, size: put.len, bytes: None, kept, lease };
                Ok(Made { given, fresh: true })
            }
        }
    }
}
