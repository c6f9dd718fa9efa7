//! Streaming functions in a row, fused into one kernel.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::function::{Fault, Kernel, Open, Out};

/// Kernels in a row: what one gives, the next is given, with nothing in between but a short queue.
///
/// The last one with something to do goes first, so the queues stay as short as what one call gives.
pub(crate) struct Chain {
    stages: Vec<Stage>,
    /// Stages before this one are finished.
    finished: usize,
    /// The first stage has all of its inputs that it wants.
    closing: bool,
    /// The stage at work.
    at: usize,
}

struct Stage {
    kernel: Box<dyn Kernel>,
    out: Out,
    /// What it is to be given next.
    queue: VecDeque<Bytes>,
    paused: bool,
    /// It wants no more.
    satisfied: bool,
    /// It knows that its input has ended.
    told: bool,
}

/// Every stage behind the first has one input, still open.
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

    /// The stage at work: after a fault, the one whose fault it is.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Takes away what a stage gave, for the next one or for good.
    fn hand_over(&mut self, place: usize, out: &mut Out) {
        let (chunks, paused) = self.stages[place].out.take();
        self.stages[place].paused = paused;
        match self.stages.get_mut(place + 1) {
            Some(next) if !next.satisfied => next.queue.extend(chunks),
            Some(_) => {}
            None => chunks.into_iter().for_each(|chunk| out.push(chunk)),
        }
    }

    /// Does one thing, at the last stage that has something to do; says whether there was any.
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
        // The first was told of its inputs one by one.
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
