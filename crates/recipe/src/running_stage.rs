//! One stage of a call in progress: its kernel, its inputs and its pending output.

use smallvec::SmallVec;

use crate::budget::CallBudget;
use crate::feed::Feed;
use crate::function::{Chunks, Fault, Kernel, OpenInputs, Out};

/// A stage that is being computed. The first stage of a call reads stored values, every other stage the output of the
/// stage before it.
pub(crate) struct RunningStage {
    /// `None` until the call begins.
    pub(crate) kernel: Option<Box<dyn Kernel>>,
    pub(crate) feeds: SmallVec<[Feed; 1]>,
    /// Whether its input is the output of the stage before it.
    is_piped: bool,
    ended: SmallVec<[bool; 8]>,
    /// All inputs before this one have ended.
    first: usize,
    out: Out,
    /// Whether the kernel has more output for the same input.
    is_paused: bool,
    is_finishing: bool,
}

impl RunningStage {
    /// A stage that reads these inputs.
    pub(crate) fn reading(feeds: SmallVec<[Feed; 1]>) -> RunningStage {
        RunningStage {
            kernel: None,
            ended: SmallVec::from_elem(false, feeds.len()),
            feeds,
            is_piped: false,
            first: 0,
            out: Out::default(),
            is_paused: false,
            is_finishing: false,
        }
    }

    /// A stage that reads the output of the stage before it.
    pub(crate) fn piped() -> RunningStage {
        RunningStage { is_piped: true, ..RunningStage::reading(smallvec::smallvec![Feed::piped()]) }
    }

    /// The first input that has not ended, and those after it.
    pub(crate) fn open_feeds(&self) -> &[Feed] {
        &self.feeds[self.first..]
    }

    /// Whether its output must be taken before it can go on.
    pub(crate) fn must_hand_over(&self) -> bool {
        self.out.is_full() || self.out.is_paused()
    }

    /// Whether it has produced all of its output.
    pub(crate) fn is_over(&self) -> bool {
        self.is_finishing && !self.is_paused && !self.out.is_paused()
    }

    /// The output since the last call of this method.
    pub(crate) fn take_output(&mut self) -> Chunks {
        let (chunks, is_paused) = self.out.take();
        self.is_paused = is_paused;
        chunks
    }

    /// Hands its output to the stage after it.
    pub(crate) fn hand_over(&mut self, next: &mut RunningStage) {
        let chunks = self.take_output();
        if next.wants().is_some() {
            chunks.into_iter().for_each(|chunk| next.feeds[0].push(chunk));
        }
        if self.is_over() {
            next.feeds[0].end();
        }
    }

    /// Calls the kernel once. If an input must be read first, the result is that input, and nothing was called.
    pub(crate) fn step(&mut self, budget: &CallBudget, chunk_most: usize) -> Result<Option<usize>, Fault> {
        let wanted = if self.is_paused { None } else { self.wants() };
        let RunningStage { kernel, feeds, is_piped, ended, first, out, is_paused, is_finishing } = self;
        let kernel = kernel.as_mut().expect("the call has begun");
        if std::mem::take(is_paused) {
            budget.check()?;
            kernel.resume(out)?;
            return Ok(None);
        }
        let Some(input) = wanted else {
            // The stages before this one run to their ends, so that their faults are found.
            if *is_piped && !feeds[0].is_done() {
                return Ok(Some(0));
            }
            budget.check()?;
            *is_finishing = true;
            kernel.finish(out)?;
            return Ok(None);
        };
        assert!(!ended[input], "it wants more of input {input}, which has ended");
        let feed = &mut feeds[input];
        if let Some(chunk) = feed.pop(chunk_most) {
            budget.check()?;
            if !*is_piped && let Some(progress) = budget.progress() {
                progress.read(chunk.len());
            }
            kernel.push(input, chunk, out)?;
        } else if feed.is_done() {
            ended[input] = true;
            while ended.get(*first) == Some(&true) {
                *first += 1;
            }
            kernel.end(input, out)?;
        } else {
            return Ok(Some(input));
        }
        Ok(None)
    }

    /// The input that the kernel reads next; `None` if it needs no more.
    fn wants(&self) -> Option<usize> {
        let kernel = self.kernel.as_ref().expect("the call has begun");
        kernel.wants(&OpenInputs { ended: &self.ended, first: self.first })
    }
}
