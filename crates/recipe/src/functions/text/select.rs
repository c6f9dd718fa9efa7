//! Selects lines by number, unchanged.

use bytes::Bytes;

use super::split::Lines;
use crate::function::{Call, Fault, Kernel, OpenInputs, Out};
use crate::functions::kernels::{StreamingFunction, signature};
use crate::functions::text::shown;
use crate::param::ParamKind;
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    functions.add(StreamingFunction(
        signature(
            "lines_select/1",
            "The lines with these numbers, including line ends. Numbers beyond the last line are ignored. \
             The input is read up to the largest number. Lines end at LF, and have at most 16 MiB.",
        )
        .needs("lines", ParamKind::Text, "numbers and ranges from 1, in ascending order: `1,3-5,9-`")
        .nanos_per_kib(600),
        |call| Ok(Box::new(Select { lines: Lines::of(call, 0), ranges: ranges(call)?, at: 0 })),
    ));
}

/// The steps of work to read a range.
const RANGE_STEPS: u64 = 16;

struct Select {
    lines: Lines,
    /// The first and the last line number of each range.
    ranges: Vec<(u64, u64)>,
    /// The index of the current range.
    at: usize,
}

impl Kernel for Select {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        open.first().filter(|_| self.at < self.ranges.len())
    }

    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.lines.push(chunk);
        self.go_on(out)
    }

    fn end(&mut self, _: usize, out: &mut Out) -> Result<(), Fault> {
        self.lines.end();
        self.go_on(out)
    }
}

impl Select {
    fn go_on(&mut self, out: &mut Out) -> Result<(), Fault> {
        while let Some((first, last)) = self.ranges.get(self.at) {
            let number = self.lines.number() + 1;
            let Some(line) = self.lines.next_raw()? else { break };
            if number >= *first {
                out.write(line);
            }
            if number == *last {
                self.at += 1;
            }
        }
        Ok(())
    }
}

fn ranges(call: &Call<'_>) -> Result<Vec<(u64, u64)>, Fault> {
    let text = call.text("lines")?;
    let count = memchr::memchr_iter(b',', text.as_bytes()).count() + 1;
    call.budget.claim((count * size_of::<(u64, u64)>()) as u64)?;
    let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(count);
    for part in text.split(',').map(str::trim) {
        call.budget.work(RANGE_STEPS + part.len() as u64)?;
        let range = range(part).ok_or_else(|| {
            Fault::param(
                "lines",
                format!("{} is not a number from 1, or a range as `3-5` or `9-`", shown(part)),
            )
        })?;
        if let Some((_, last)) = ranges.last().filter(|(_, last)| range.0 <= *last) {
            return Err(Fault::param(
                "lines",
                format!("{} is not after line {last}; write the numbers in ascending order", shown(part)),
            ));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

fn range(text: &str) -> Option<(u64, u64)> {
    let number =
        |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, "")) => (number(first)?, u64::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    (1 <= first && first <= last).then_some((first, last))
}
