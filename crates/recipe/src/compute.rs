//! One computation: grants memory, runs the function, and stores its output.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::Address;
use anabranch_engine::options::Class;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::budget::{CallBudget, CallTime};
use crate::drive::{Drive, Pause};
use crate::error::Error;
use crate::execute::{Purpose, Stages};
use crate::executor::Inner;
use crate::feed::Feed;
use crate::function::Fault;
use crate::progress::CallProgress;
use crate::recipe::memory_of;
use crate::sink::Sink;
use crate::value::StoredValue;

/// The number of pauses of a call after which it yields to other tasks on the same thread.
const TURNS: u32 = 64;

/// The memory for inputs and output in transit: chunks read ahead, held by the function, and being written.
const TRANSFER: u64 = 4 << 20;

/// The thing that is too large if a call would take more memory than there is.
pub(crate) const CALL_MEMORY: &str = "the memory of the call";

/// The minimum memory of a call.
const LEAST: u64 = 16 << 10;

/// The first grant for claims, in addition to the signature's claims per input byte.
const CLAIMS: u64 = 64 << 10;

/// Work of a call that is estimated to take no longer is short: it never waits behind calls of unknown length.
const SHORT: Duration = Duration::from_millis(50);

/// A call that ran in place for this many times the threshold is not run in place again.
const WRONG_BY: u32 = 4;

/// The factor by which the grant grows, at least, after a claim beyond it.
const GROWTH: u64 = 4;

/// Computes the value of the last stage, and remembers it for the stage and for its call if that has another address.
/// Also returns the time that the functions worked.
pub(crate) async fn compute(
    inner: &Arc<Inner>,
    stages: Stages,
    purpose: Purpose,
    inputs: Vec<StoredValue>,
    call: Option<Address>,
) -> Result<(StoredValue, Duration), Error> {
    let (fixed, mut claims) = needed(&stages, &inputs);
    let address = stages.last().expect("there is a stage").address;
    let total = inputs.iter().map(|input| input.size).fold(0, u64::saturating_add);
    let most = inner.memory.most();
    let mut feeds = inputs.into_iter().map(Feed::of).collect();
    let (mut stages, mut spent) = (stages, Duration::ZERO);
    loop {
        let Some(claims_most) = most.checked_sub(fixed) else {
            return Err(stages[0].failed(Fault::TooLarge { what: CALL_MEMORY, most }));
        };
        claims = claims.min(claims_most);
        let room = inner.memory.take(fixed + claims).await?;
        let now = inner.engine.clock().now();
        let time = CallTime::starting(now, inner.config.call_time, inner.engine.clock());
        let progress = CallProgress::new(&inner.events, address, total, now);
        let budget = Arc::new(CallBudget::new(claims, Some(time)).with_progress(progress));
        let _stop = StopOnDrop(Arc::clone(&budget));
        let drive = Box::new(Drive::new(stages, feeds, budget, Some(room)));
        match run(inner, drive, purpose, &mut spent).await? {
            AttemptOutcome::ToItsEnd(sink, derivation) => {
                return Ok((sink.keep(inner, (derivation, call), spent).await?, spent));
            }
            AttemptOutcome::OutOfMemory(drive, failed, _) if claims == claims_most => {
                let Error::Function { address, function, .. } = failed else { return Err(failed) };
                drop(drive);
                let fault = Fault::TooLarge { what: CALL_MEMORY, most };
                return Err(Error::Function { address, function, fault });
            }
            AttemptOutcome::OutOfMemory(drive, _, needed) => {
                claims = claims.saturating_mul(GROWTH).max(needed);
                (stages, feeds) = drive.restart();
            }
        }
    }
}

/// The result of one attempt to run a call.
enum AttemptOutcome {
    /// The call finished. Its output is being stored. The address is the derivation's.
    ToItsEnd(Sink, Address),
    /// The call claimed this much memory in total, more than it was granted.
    OutOfMemory(Box<Drive>, Error, u64),
}

async fn run(
    inner: &Arc<Inner>,
    mut drive: Box<Drive>,
    purpose: Purpose,
    spent: &mut Duration,
) -> Result<AttemptOutcome, Error> {
    let mut sink = Sink::new();
    let mut turns = 0u32;
    loop {
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(TURNS) {
            tokio::task::yield_now().await;
        }
        let pause;
        (drive, pause) = advance(inner, drive, spent).await?;
        let pause = match pause {
            Err(error @ Error::Function { fault: Fault::Memory { needed, .. }, .. }) => {
                return Ok(AttemptOutcome::OutOfMemory(drive, error, needed));
            }
            other => other?,
        };
        for chunk in drive.take_output() {
            sink = sink.take(inner, purpose, chunk).await?;
        }
        match pause {
            Pause::Output => {}
            Pause::Needs(input) => Box::pin(drive.fill(input, inner)).await?,
            Pause::Done => {
                return Ok(AttemptOutcome::ToItsEnd(sink, drive.stages[drive.stages.len() - 1].address));
            }
        }
    }
}

/// The bytes that a call takes without claiming them, and the first grant for its claims.
fn needed(stages: &Stages, inputs: &[StoredValue]) -> (u64, u64) {
    let total = inputs.iter().map(|input| input.size).fold(0, u64::saturating_add);
    let transfer = TRANSFER.min(total.saturating_mul(4)).saturating_add(LEAST);
    let mut fixed = transfer;
    let mut claims = CLAIMS;
    for (place, stage) in stages.iter().enumerate() {
        let memory = &stage.function.signature().memory;
        // A later stage of a fused run holds only chunks of its input, whose size is unknown.
        let (bytes, count) = if place == 0 { (total, inputs.len() as u64) } else { (0, 1) };
        let params = stage.params.as_deref().map_or(0, memory_of);
        let own = bytes
            .saturating_mul(memory.per_input_byte)
            .saturating_add(count.saturating_mul(memory.per_input))
            .saturating_add(params.saturating_mul(memory.per_param_byte))
            .saturating_add(memory.base);
        fixed = fixed.saturating_add(own);
        claims = claims.saturating_add(bytes.saturating_mul(memory.claims_per_input_byte));
    }
    (fixed, claims)
}

/// Runs the function until it pauses: in place if that is quick, otherwise on the batch pool.
async fn advance(
    inner: &Inner,
    mut drive: Box<Drive>,
    spent: &mut Duration,
) -> Result<(Box<Drive>, Result<Pause, Error>), Error> {
    let clock = inner.engine.clock();
    let effort = drive.effort();
    if drive.may_run_in_place() && effort.is_some_and(|effort| effort <= inner.engine.inline_threshold()) {
        let began = clock.now();
        let pause = drive.advance();
        let took = clock.now().saturating_duration_since(began);
        if took > WRONG_BY * inner.engine.inline_threshold() {
            drive.leave_place();
        }
        *spent += took;
        return Ok((drive, pause));
    }
    Box::pin(advance_on_pool(inner, drive, effort, spent)).await
}

async fn advance_on_pool(
    inner: &Inner,
    mut drive: Box<Drive>,
    effort: Option<Duration>,
    spent: &mut Duration,
) -> Result<(Box<Drive>, Result<Pause, Error>), Error> {
    let clock = inner.engine.clock();
    let asked = clock.now();
    let place = match effort {
        Some(effort) if effort <= SHORT => None,
        _ => Some(long_place(inner).await?),
    };
    let (done, back) = oneshot::channel();
    let clock = Arc::clone(clock);
    let job = Box::new(move || {
        if done.is_closed() {
            return;
        }
        let began = clock.now();
        drive.budget.waited(began.saturating_duration_since(asked));
        let pause = drive.advance();
        drop(place);
        // The computation may have been dropped in the meantime.
        let _ = done.send((drive, pause, clock.now().saturating_duration_since(began)));
    });
    inner.engine.pool(Class::Batch).submit(job);
    let (drive, pause, took) = back.await.map_err(|_| Error::Stopped)?;
    *spent += took;
    Ok((drive, pause))
}

/// Waits for one of the threads that long work may occupy. Work in progress cannot be interrupted, so these are fewer
/// threads than the pool has, and short work always finds one.
async fn long_place(inner: &Inner) -> Result<OwnedSemaphorePermit, Error> {
    Arc::clone(&inner.long_places).acquire_owned().await.map_err(|_| Error::Stopped)
}

/// Signals the function to stop when the computation is dropped.
struct StopOnDrop(Arc<CallBudget>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
