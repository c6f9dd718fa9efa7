//! The loop that drives functions: chunks of inputs in, chunks of output out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use anabranch_content::Address;
use anabranch_text::panic_message;
use bytes::Bytes;
use smallvec::SmallVec;
use tokio::sync::OwnedSemaphorePermit;

use crate::budget::CallBudget;
use crate::error::Error;
use crate::execute::{Stage, Stages};
use crate::executor::Inner;
use crate::feed::Feed;
use crate::function::{Call, Chunks, Fault, Function};
use crate::recipe::{Params, memory_of};
use crate::registry::{NO_ADDRESS, check};
use crate::running_stage::RunningStage;
use crate::signature::{BeginCost, Holds, Signature};

/// The maximum size of an input chunk.
const CHUNK: usize = 256 << 10;

/// The minimum size of an input chunk, for costly functions.
const CHUNK_LEAST: usize = 8 << 10;

/// The approximate time that a function works on one chunk. The budget is checked between chunks.
const CHUNK_TIME: Duration = Duration::from_millis(10);

/// The number of input bytes read ahead.
const AHEAD: usize = 1 << 20;

/// The number of small inputs read together, so that a call with many inputs rarely pauses.
const SMALL_AHEAD: usize = 64;

/// The number of bytes of small inputs read together.
const SMALL_BYTES: usize = 128 << 10;

/// The approximate cost of one input, in addition to its bytes, in nanoseconds.
const NANOS_PER_INPUT: u64 = 100;

/// The maximum number of inputs that are looked at to estimate the time until a call pauses.
const ESTIMATED_INPUTS: usize = 512;

/// The memory of parameters above which the time of a call is unknown: reading them takes time, too.
const PARAMS_ESTIMATED: u64 = 16 << 10;

/// A call in progress: one stage, or several fused ones, each reading the output of the one before it.
pub(crate) struct Drive {
    pub(crate) stages: Stages,
    /// The same stages, at work.
    running: SmallVec<[RunningStage; 1]>,
    /// The index of the stage that ran last.
    at: usize,
    has_begun: bool,
    /// Whether its time follows from the number of its input bytes.
    is_estimated: bool,
    /// Whether it may run on the caller's thread, where it cannot be stopped.
    in_place: bool,
    total: u64,
    chunk_most: usize,
    /// The number of feeds with an open reader.
    reading: usize,
    pub(crate) budget: Arc<CallBudget>,
    /// The call's memory grant. It lives as long as the inputs, because a call may still run after its caller is gone.
    _room: Option<OwnedSemaphorePermit>,
}

/// The reason why a call paused.
#[derive(Debug)]
pub(crate) enum Pause {
    /// Its output must be taken first.
    Output,
    /// It needs more of this input.
    Needs(usize),
    Done,
}

impl Drive {
    pub(crate) fn new(
        stages: Stages,
        feeds: SmallVec<[Feed; 1]>,
        budget: Arc<CallBudget>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Drive {
        let total = feeds.iter().map(Feed::size).fold(0, u64::saturating_add);
        let chunk_most = chunk_most(&stages);
        let mut running = smallvec::smallvec![RunningStage::reading(feeds)];
        running.extend(stages[1..].iter().map(|_| RunningStage::piped()));
        let (at, has_begun, reading) = (0, false, 0);
        let is_estimated = stages.iter().all(has_estimate);
        let in_place =
            is_estimated && stages.iter().all(|it| it.function.signature().begin == BeginCost::Trifling);
        Drive {
            stages,
            running,
            at,
            has_begun,
            is_estimated,
            in_place,
            total,
            chunk_most,
            reading,
            budget,
            _room: room,
        }
    }

    /// Resets the call: the stages, and the inputs from their beginning.
    pub(crate) fn restart(mut self) -> (Stages, SmallVec<[Feed; 1]>) {
        let feeds = std::mem::take(&mut self.running[0].feeds);
        (self.stages, feeds.into_iter().map(Feed::restart).collect())
    }

    /// Reads more of an input. Inputs read in turns share the read-ahead buffer.
    pub(crate) async fn fill(&mut self, input: usize, inner: &Inner) -> Result<(), Error> {
        let feeds = &mut self.running[0].feeds;
        let feed = &mut feeds[input];
        self.reading -= usize::from(feed.is_reading());
        feed.fill(inner, AHEAD / (self.reading + 1)).await?;
        self.reading += usize::from(feed.is_reading());
        let mut ready = feed.ready_bytes();
        for next in feeds.iter_mut().skip(input + 1).take(SMALL_AHEAD) {
            // A read error is reported only when the function needs that input.
            if ready >= SMALL_BYTES || !next.is_small() || next.fill(inner, AHEAD).await.is_err() {
                break;
            }
            ready += next.ready_bytes();
        }
        Ok(())
    }

    /// The estimated time until the call pauses; `None` if it is unknown.
    pub(crate) fn effort(&self) -> Option<Duration> {
        if !self.is_estimated {
            return None;
        }
        let open = self.running[0].open_feeds();
        let signature = self.stages[0].function.signature();
        let (ready, count) = match signature.holds {
            // The work starts once all input has arrived.
            Holds::Everything => (self.total, open.len()),
            // Its inputs are read in turns.
            Holds::Chunks if signature.memory.per_input > 0 => (self.total, open.len()),
            Holds::Chunks => {
                let pause = open.iter().take(ESTIMATED_INPUTS).position(|feed| !feed.is_done());
                let count = pause.map_or(open.len(), |place| place + 1);
                if count > ESTIMATED_INPUTS {
                    return None;
                }
                (open[..count].iter().map(|feed| feed.ready_bytes() as u64).sum(), count)
            }
        };
        let nanos = |stage: &Stage| u64::from(stage.function.signature().nanos_per_kib);
        let nanos: u64 = self.stages.iter().map(nanos).sum();
        let nanos = (ready.saturating_mul(nanos) >> 10).saturating_add(count as u64 * NANOS_PER_INPUT);
        Some(Duration::from_nanos(nanos))
    }

    /// Whether it may run on the caller's thread if its estimated time is short.
    pub(crate) fn may_run_in_place(&self) -> bool {
        self.in_place
    }

    /// Runs the rest of the call on the pool, because its estimate was wrong.
    pub(crate) fn leave_place(&mut self) {
        self.in_place = false;
    }

    /// Runs until the call pauses.
    pub(crate) fn advance(&mut self) -> Result<Pause, Error> {
        match catch_unwind(AssertUnwindSafe(|| self.go_on())) {
            Ok(Ok(pause)) => Ok(pause),
            Ok(Err(fault)) => Err(self.stages[self.at].failed(fault)),
            Err(payload) => Err(self.stages[self.at].panicked(panic_message(&*payload))),
        }
    }

    /// The output since the last call of this method.
    pub(crate) fn take_output(&mut self) -> Chunks {
        let chunks = self.running.last_mut().expect("there is a stage").take_output();
        if let Some(progress) = self.budget.progress() {
            progress.wrote(chunks.iter().map(Bytes::len).sum());
        }
        chunks
    }

    fn begin(&mut self) -> Result<(), Fault> {
        let inputs: SmallVec<[Address; 2]> = self.running[0].feeds.iter().map(Feed::address).collect();
        for (place, (stage, running)) in self.stages.iter().zip(&mut self.running).enumerate() {
            self.at = place;
            let none = Params::new();
            let params = stage.params.as_deref().unwrap_or(&none);
            let sizes: SmallVec<[u64; 8]> = running.feeds.iter().map(Feed::size).collect();
            let inputs = if place == 0 { &inputs[..] } else { &[] };
            let call = Call::new(stage.function.signature(), params, &sizes, &self.budget).of(inputs);
            running.kernel = Some(stage.function.begin(&call)?);
        }
        self.has_begun = true;
        Ok(())
    }

    fn go_on(&mut self) -> Result<Pause, Fault> {
        if !self.has_begun {
            self.begin()?;
        }
        let Drive { running, at, budget, chunk_most, .. } = self;
        loop {
            if running.last().is_some_and(RunningStage::must_hand_over) {
                return Ok(Pause::Output);
            }
            // The last stage that can go on runs first, so only the output of one call waits between two stages.
            let Some(last) = running.iter().rposition(|stage| !stage.is_over()) else {
                return Ok(Pause::Done);
            };
            *at = last;
            while let Some(input) = running[*at].step(budget, *chunk_most)? {
                if *at == 0 {
                    return Ok(Pause::Needs(input));
                }
                *at -= 1;
            }
            if let [stage, next, ..] = &mut running[*at..] {
                stage.hand_over(next);
            }
        }
    }
}

/// Whether the time of a stage follows from the number of its input bytes.
fn has_estimate(stage: &Stage) -> bool {
    let signature = stage.function.signature();
    signature.begin != BeginCost::Compiles
        && signature.nanos_per_kib != Signature::OPAQUE
        && stage.params.as_deref().is_none_or(|params| memory_of(params) <= PARAMS_ESTIMATED)
}

/// A chunk size that keeps the time per chunk short for every stage.
fn chunk_most(stages: &Stages) -> usize {
    let nanos = stages.iter().map(|stage| stage.function.signature().nanos_per_kib).max().unwrap_or(0);
    let kib = CHUNK_TIME.as_nanos() / u128::from(nanos.max(1));
    usize::try_from(kib << 10).unwrap_or(CHUNK).clamp(CHUNK_LEAST, CHUNK)
}

/// Calls a function as the executor does. Each input is a list of chunks; empty chunks are skipped.
///
/// The output must not depend on how the inputs are split into chunks, so the test of a function should try several
/// splits.
///
/// ```
/// # use anabranch_recipe::{Functions, Params, call};
/// let functions = Functions::builtin();
/// let concat = functions.get(&"concat/1.0.0".parse()?).expect("a function of this crate");
/// let output = call(concat, &[vec!["all at".into()], vec![" ".into(), "sea".into()]], &Params::new())?;
/// assert_eq!(output.concat(), b"all at sea");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn call(
    function: &Arc<dyn Function>,
    inputs: &[Vec<Bytes>],
    params: &Params,
) -> Result<Vec<Bytes>, Fault> {
    let mut output = Vec::new();
    call_within(function, inputs, params, &CallBudget::unlimited(), |chunk| output.push(chunk))?;
    Ok(output)
}

/// Calls a function within a budget. `take` receives the chunks of the output as they are produced.
pub fn call_within(
    function: &Arc<dyn Function>,
    inputs: &[Vec<Bytes>],
    params: &Params,
    budget: &Arc<CallBudget>,
    mut take: impl FnMut(Bytes),
) -> Result<(), Fault> {
    check(function.signature(), inputs.len(), params)?;
    let stage = Stage {
        address: NO_ADDRESS,
        function: Arc::clone(function),
        params: Some(Arc::new(params.clone())),
        input_count: inputs.len(),
        reads_recipes: false,
    };
    let feeds = inputs.iter().map(|chunks| Feed::of_chunks(chunks)).collect();
    let mut drive = Drive::new(smallvec::smallvec![stage], feeds, Arc::clone(budget), None);
    loop {
        let pause = drive.go_on()?;
        drive.take_output().into_iter().for_each(&mut take);
        match pause {
            Pause::Output => {}
            Pause::Done => return Ok(()),
            Pause::Needs(_) => unreachable!("all chunks are in memory"),
        }
    }
}
