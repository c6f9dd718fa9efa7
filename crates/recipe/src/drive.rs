//! The loop that drives a function: chunks of its inputs in, chunks of its output out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use anabranch_content::Address;
use anabranch_text::panic_message;
use bytes::Bytes;
use smallvec::SmallVec;
use tokio::sync::OwnedSemaphorePermit;

use crate::budget::CallBudget;
use crate::chain::Chain;
use crate::error::Error;
use crate::execute::{Stage, Stages};
use crate::executor::Inner;
use crate::feed::Feed;
use crate::function::{Call, Fault, Function, Kernel, Open, Out};
use crate::recipe::Params;
use crate::registry::check;
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

/// A call in progress, with its inputs.
pub(crate) struct Drive {
    pub(crate) stages: Stages,
    kernel: Option<Work>,
    feeds: SmallVec<[Feed; 1]>,
    ended: SmallVec<[bool; 8]>,
    /// All inputs before this one have ended.
    first: usize,
    out: Out,
    paused: bool,
    finishing: bool,
    total: u64,
    chunk_most: usize,
    /// The number of feeds with an open reader.
    reading: usize,
    budget: Arc<CallBudget>,
    /// The call's memory grant. It lives as long as the inputs, because a call may still run after its caller is gone.
    _room: Option<OwnedSemaphorePermit>,
}

enum Work {
    One(Box<dyn Kernel>),
    Row(Chain),
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
        let ended = SmallVec::from_elem(false, feeds.len());
        let chunk_most = chunk_most(&stages);
        Drive {
            stages,
            kernel: None,
            feeds,
            ended,
            first: 0,
            out: Out::default(),
            paused: false,
            finishing: false,
            total,
            chunk_most,
            reading: 0,
            budget,
            _room: room,
        }
    }

    /// Resets the call: the stages, and the inputs from their beginning.
    pub(crate) fn restart(self) -> (Stages, SmallVec<[Feed; 1]>) {
        (self.stages, self.feeds.into_iter().map(Feed::restart).collect())
    }

    /// Reads more of an input. Inputs read in turns share the read-ahead buffer.
    pub(crate) async fn fill(&mut self, input: usize, inner: &Inner) -> Result<(), Error> {
        let feed = &mut self.feeds[input];
        self.reading -= usize::from(feed.is_reading());
        feed.fill(inner, AHEAD / (self.reading + 1)).await?;
        self.reading += usize::from(feed.is_reading());
        let mut ready = feed.ready_bytes();
        for next in self.feeds.iter_mut().skip(input + 1).take(SMALL_AHEAD) {
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
        let has_begun = self.kernel.is_some();
        let is_opaque = |stage: &Stage| {
            let signature = stage.function.signature();
            (!has_begun && signature.begin == BeginCost::Compiles)
                || signature.nanos_per_kib == Signature::OPAQUE
        };
        if self.stages.iter().any(is_opaque) {
            return None;
        }
        let ready: u64 = match self.stages[0].function.signature().holds {
            // The work starts once all input has arrived.
            Holds::Everything => self.total,
            Holds::Chunks => {
                let ahead = self.feeds.iter().skip(self.first).take(SMALL_AHEAD + 1);
                ahead.map(|feed| feed.ready_bytes() as u64).take_while(|ready| *ready > 0).sum()
            }
        };
        let nanos = |stage: &Stage| u64::from(stage.function.signature().nanos_per_kib);
        let nanos: u64 = self.stages.iter().map(nanos).sum();
        Some(Duration::from_nanos(ready.saturating_mul(nanos) >> 10))
    }

    /// Runs until the call pauses.
    pub(crate) fn advance(&mut self) -> Result<Pause, Error> {
        match catch_unwind(AssertUnwindSafe(|| self.go_on())) {
            Ok(Ok(pause)) => Ok(pause),
            Ok(Err((stage, fault))) => Err(self.stages[stage].failed(fault)),
            Err(payload) => Err(self.stages[self.stage_at_work()].panicked(panic_message(&*payload))),
        }
    }

    /// The output since the last call of this method.
    pub(crate) fn take_output(&mut self) -> crate::function::Chunks {
        let (chunks, paused) = self.out.take();
        self.paused = paused;
        if let Some(progress) = self.budget.progress() {
            progress.wrote(chunks.iter().map(Bytes::len).sum());
        }
        chunks
    }

    fn stage_at_work(&self) -> usize {
        match &self.kernel {
            None | Some(Work::One(_)) => 0,
            Some(Work::Row(chain)) => chain.at(),
        }
    }

    fn go_on(&mut self) -> Result<Pause, (usize, Fault)> {
        if self.kernel.is_none() {
            self.begin()?;
        }
        let pause = self.step_on();
        pause.map_err(|fault| (self.stage_at_work(), fault))
    }

    fn begin(&mut self) -> Result<(), (usize, Fault)> {
        let sizes: SmallVec<[u64; 8]> = self.feeds.iter().map(Feed::size).collect();
        let inputs: SmallVec<[Address; 2]> = self.feeds.iter().map(Feed::address).collect();
        let unknown = [u64::MAX];
        let mut kernels = SmallVec::<[Box<dyn Kernel>; 1]>::new();
        for (place, stage) in self.stages.iter().enumerate() {
            let none = Params::new();
            let params = stage.params.as_deref().unwrap_or(&none);
            let (inputs, sizes) =
                if place == 0 { (&inputs[..], &sizes[..]) } else { (&[][..], &unknown[..]) };
            let call = Call::new(stage.function.signature(), params, sizes, &self.budget).of(inputs);
            kernels.push(stage.function.begin(&call).map_err(|fault| (place, fault))?);
        }
        self.kernel = Some(match kernels.len() {
            1 => Work::One(kernels.remove(0)),
            _ => Work::Row(Chain::new(kernels.into_vec())),
        });
        Ok(())
    }

    fn step_on(&mut self) -> Result<Pause, Fault> {
        let Drive { kernel, feeds, ended, first, out, paused, finishing, budget, chunk_most, .. } = self;
        let kernel: &mut dyn Kernel = match kernel.as_mut().expect("it has begun") {
            Work::One(kernel) => &mut **kernel,
            Work::Row(chain) => chain,
        };
        if std::mem::take(paused) {
            kernel.resume(out)?;
        }
        loop {
            if out.is_full() || out.is_paused() {
                return Ok(Pause::Output);
            }
            if *finishing {
                return Ok(Pause::Done);
            }
            budget.check()?;
            match kernel.wants(&Open { ended, first: *first }) {
                Some(input) => {
                    assert!(!ended[input], "it wants more of input {input}, which has ended");
                    let feed = &mut feeds[input];
                    if let Some(chunk) = feed.pop(*chunk_most) {
                        budget.progress().into_iter().for_each(|progress| progress.read(chunk.len()));
                        kernel.push(input, chunk, out)?;
                    } else if feed.is_done() {
                        ended[input] = true;
                        while ended.get(*first) == Some(&true) {
                            *first += 1;
                        }
                        kernel.end(input, out)?;
                    } else {
                        return Ok(Pause::Needs(input));
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
        address: Address::of(b""),
        function: Arc::clone(function),
        params: Some(Arc::new(params.clone())),
        input_count: inputs.len(),
        reads_recipes: false,
    };
    let feeds = inputs.iter().map(|chunks| Feed::of_chunks(chunks)).collect();
    let mut drive = Drive::new(smallvec::smallvec![stage], feeds, Arc::clone(budget), None);
    loop {
        let pause = drive.go_on().map_err(|(_, fault)| fault)?;
        drive.take_output().into_iter().for_each(&mut take);
        match pause {
            Pause::Output => {}
            Pause::Done => return Ok(()),
            Pause::Needs(_) => unreachable!("all chunks are in memory"),
        }
    }
}
