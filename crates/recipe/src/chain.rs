//! A chain of streaming functions, fused into one kernel.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::function::{Fault, Kernel, Open, Out};

/// A chain of kernels: the output of each is the input of the next, with only a short queue in between.
///
/// The last stage with pending work runs first, so a queue never holds more than the output of one call.
pub(crate) struct Chain {
    stages: Vec<Stage>,
    /// The number of finished stages, from the first.
    finished: usize,
    /// Whether the first stage needs no more input.
    closing: bool,
    /// The index of the stage that ran last.
    at: usize,
}

struct Stage {
    kernel: Box<dyn Kernel>,
    out: Out,
    /// The next chunks of its input.
    queue: VecDeque<Bytes>,
    paused: bool,
    /// Whether it needs no more input.
    satisfied: bool,
    /// Whether it has been notified that its input ended.
    told: bool,
}

/// The inputs of every stage after the first: a single one, still open.
const ONE_OPEN: Open<'static> = Open { ended: &[false], first: 0 };

impl Chain {
    pub(crate) fn new(kernels: Vec<Box<dyn Kernel>>) -> Chain {
        let stage = |kernel| Stage {
            kernel,
            out: Out::default(),
            queue: VecDeque::new(),
            paused: false,
            satisfied: false,
            told: false,
        };
        Chain { stages: kernels.into_iter().map(stage).collect(), finished: 0, closing: false, at: 0 }
    }

    /// The stage that ran last; after a fault, the stage that failed.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Moves the output of a stage to the next stage, or to `out` if it is the last one.
    fn hand_over(&mut self, place: usize, out: &mut Out) {
        let (chunks, paused) = self.stages[place].out.take();
        self.stages[place].paused = paused;
        match self.stages.get_mut(place + 1) {
            Some(next) if !next.satisfied => next.queue.extend(chunks),
            Some(_) => {}
            None => chunks.into_iter().for_each(|chunk| out.push(chunk)),
        }
    }

    /// Runs the last stage that has pending work, for one step. Returns false if no stage has any.
    fn step(&mut self, out: &mut Out) -> Result<bool, Fault> {
        let busy = |stage: &Stage| stage.paused || !stage.queue.is_empty();
        if let Some(place) = self.stages.iter().rposition(busy) {
            self.at = place;
            let Stage { kernel, out: own, queue, paused, satisfied, .. } = &mut self.stages[place];
            if std::mem::take(paused) {
                kernel.resume(own)?;
            } else if let Some(chunk) = queue.pop_front() {
                *satisfied = kernel.wants(&ONE_OPEN).is_none();
                match satisfied {
                    true => queue.clear(),
                    false => kernel.push(0, chunk, own)?,
                }
            }
            self.hand_over(place, out);
            return Ok(true);
        }
        if !self.closing || self.finished == self.stages.len() {
            return Ok(false);
        }
        let place = self.finished;
        self.at = place;
        let Stage { kernel, out: own, told, satisfied, .. } = &mut self.stages[place];
        // The first stage has been notified of the end of each input already.
        if !std::mem::replace(told, true) && place > 0 {
            if !*satisfied && kernel.wants(&ONE_OPEN).is_some() {
                kernel.end(0, own)?;
            }
        } else {
            kernel.finish(own)?;
            self.finished += 1;
        }
        self.hand_over(place, out);
        Ok(true)
    }

    fn pump(&mut self, out: &mut Out) -> Result<(), Fault> {
        while self.step(out)? {
            if out.is_full() {
                out.pause();
                break;
            }
        }
        Ok(())
    }
}

impl Kernel for Chain {
    fn wants(&self, open: &Open<'_>) -> Option<usize> {
        self.stages[0].kernel.wants(open)
    }

    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.at = 0;
        let Stage { kernel, out: own, .. } = &mut self.stages[0];
        kernel.push(input, chunk, own)?;
        self.hand_over(0, out);
        self.pump(out)
    }

    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        self.at = 0;
        let Stage { kernel, out: own, .. } = &mut self.stages[0];
        kernel.end(input, own)?;
        self.hand_over(0, out);
        self.pump(out)
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.closing = true;
        self.pump(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.pump(out)
    }
}
