//! Functions that combine the lines of several inputs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;

use super::lines::lined;
use super::split::{Gap, Lines};
use crate::function::{Call, Fault, Kernel, OpenInputs, Out};
use crate::functions::kernels::{StreamingFunction, signature};
use crate::functions::output::capped;
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Arity;

/// The memory of each open input: its reader, and a chunk read ahead.
const OPEN_INPUT: u64 = 768 << 10;

pub(super) fn add(functions: &mut Functions) {
    functions.add(StreamingFunction(
        lined(signature(
            "zip/1.0.0",
            "Each line of the first input, then the separator, then the line of the second input with the \
             same number. The output has as many lines as the shorter input.",
        ))
        .inputs(Arity::exactly(2))
        .memory_per_input(OPEN_INPUT)
        .needs("separator", ParamKind::Text, "the text between two lines")
        .bounds_output()
        .nanos_per_kib(1000),
        |call| {
            let sides = [Lines::of(call, 0), Lines::of(call, 1)];
            let separator = call.text("separator")?.to_owned();
            let zip = Zip { sides, left: None, spare: String::new(), separator, gap: Gap::default() };
            Ok(capped(Box::new(zip), call.max_bytes()?))
        },
    ));
    functions.add(StreamingFunction(
        lined(signature(
            "merge_sorted/1.0.0",
            "The lines of all inputs in byte order. Each input must be sorted; of equal lines, those of \
             earlier inputs come first. The function keeps one chunk per input in memory.",
        ))
        .inputs(Arity::at_least(1))
        .memory_per_input(OPEN_INPUT)
        .nanos_per_kib(2500),
        |call| Ok(Box::new(Merge::of(call))),
    ));
}

struct Zip {
    sides: [Lines; 2],
    /// The line of the first input that waits for the matching line of the second.
    left: Option<String>,
    spare: String,
    separator: String,
    gap: Gap,
}

impl Kernel for Zip {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        let side = usize::from(self.left.is_some());
        open.has(side).then_some(side)
    }

    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.sides[input].push(chunk);
        self.resume(out)
    }

    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        self.sides[input].end();
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        while !out.is_full() {
            if self.left.is_none() {
                let Some(line) = self.sides[0].next_line()? else { return Ok(()) };
                self.spare.clear();
                self.spare.push_str(line);
                self.left = Some(std::mem::take(&mut self.spare));
            }
            let Some(right) = self.sides[1].next_line()? else { return Ok(()) };
            self.spare = self.left.take().expect("it was just there");
            self.gap.before(out);
            for part in [&self.spare, &*self.separator, right] {
                out.write(part.as_bytes());
            }
        }
        out.pause();
        Ok(())
    }
}

struct Merge {
    inputs: Vec<Lines>,
    /// The previous line of each waiting input.
    last: Vec<String>,
    /// The next line of each input that has one and is not waiting.
    heads: BinaryHeap<Reverse<(String, usize)>>,
    /// Inputs whose next line has not arrived. The next input to read is last.
    waiting: Vec<usize>,
    gap: Gap,
}

impl Merge {
    fn of(call: &Call<'_>) -> Merge {
        let count = call.sizes.len();
        Merge {
            inputs: (0..count).map(|input| Lines::of(call, input)).collect(),
            last: vec![String::new(); count],
            heads: BinaryHeap::with_capacity(count),
            waiting: (0..count).rev().collect(),
            gap: Gap::default(),
        }
    }

    /// Moves the next line of an input to the heads, reusing the buffer `room` of its previous line. Returns whether
    /// there was one.
    fn advance(&mut self, input: usize, mut room: String) -> Result<bool, Fault> {
        let lines = &mut self.inputs[input];
        let number = lines.number() + 1;
        let Some(line) = lines.next_line()? else {
            self.last[input] = room;
            return Ok(false);
        };
        if *line < *room {
            let problem = format!("line {number} is out of byte order; sort the input first");
            return Err(Fault::input(input, problem));
        }
        room.clear();
        room.push_str(line);
        self.heads.push(Reverse((room, input)));
        Ok(true)
    }
}

impl Kernel for Merge {
    fn wants(&self, _: &OpenInputs<'_>) -> Option<usize> {
        self.waiting.last().copied()
    }

    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.inputs[input].push(chunk);
        let last = std::mem::take(&mut self.last[input]);
        if self.advance(input, last)? {
            self.waiting.pop();
        }
        self.resume(out)
    }

    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        self.inputs[input].end();
        let last = std::mem::take(&mut self.last[input]);
        self.advance(input, last)?;
        self.waiting.pop();
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        while self.waiting.is_empty() {
            if out.is_full() {
                out.pause();
                break;
            }
            let Some(Reverse((line, input))) = self.heads.pop() else { break };
            self.gap.before(out);
            out.write(line.as_bytes());
            if !self.advance(input, line)? && !self.inputs[input].has_ended() {
                self.waiting.push(input);
            }
        }
        Ok(())
    }
}
