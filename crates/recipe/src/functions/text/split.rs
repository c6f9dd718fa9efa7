//! Splits chunks of any size into lines.

use bytes::Bytes;
use memchr::memchr;

use crate::budget::Claim;
use crate::function::{Call, Fault, Kernel, OpenInputs, Out};

/// The maximum length of a line in bytes. A line is held in memory as a whole.
pub(in crate::functions) const LINE_MOST: usize = 16 << 20;

/// The lines of one input, split as its chunks arrive.
pub(in crate::functions) struct Lines {
    input: usize,
    /// The beginning of a line whose end has not arrived, or the line returned last.
    held: Vec<u8>,
    /// Whether `held` has already been returned.
    given: bool,
    chunk: Bytes,
    /// The position up to which the chunk was read.
    at: usize,
    ended: bool,
    /// The number of lines returned, and the offset of the last one.
    count: u64,
    offset: u64,
    /// The length of the line returned last, in bytes.
    last: u64,
    /// The memory claimed for a long line.
    claim: Claim,
}

/// The memory of a held line as a multiple of its length: it grows by doubling, and kernels keep copies.
const HELD_FACTOR: u64 = 5;

/// The memory of lines up to this length is not claimed.
const SHORT_LINE: usize = 8 << 10;

impl Lines {
    pub(in crate::functions) fn of(call: &Call<'_>, input: usize) -> Lines {
        let (held, chunk, claim) = (Vec::new(), Bytes::new(), Claim::new(call.budget));
        Lines { input, held, given: false, chunk, at: 0, ended: false, count: 0, offset: 0, last: 0, claim }
    }

    /// Adds the next bytes. All lines of the previous chunk must have been returned.
    pub(in crate::functions) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.at == self.chunk.len(), "a chunk is read before the next one comes");
        (self.chunk, self.at) = (chunk, 0);
    }

    /// Marks the end of the input. The remaining bytes become the last line.
    pub(in crate::functions) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether [`Lines::end`] was called.
    pub(in crate::functions) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The number of the line returned last, from 1.
    pub(in crate::functions) fn number(&self) -> u64 {
        self.count
    }

    /// The next line with its line end; `None` if its end has not arrived or there are no more lines.
    pub(in crate::functions) fn next_raw(&mut self) -> Result<Option<&[u8]>, Fault> {
        if std::mem::take(&mut self.given) {
            self.held.clear();
        }
        let from = self.at;
        match memchr(b'\n', &self.chunk[from..]) {
            Some(len) => {
                self.at += len + 1;
                self.bound(len + 1)?;
                self.tally(len + 1);
                if self.held.is_empty() {
                    return Ok(Some(&self.chunk[from..self.at]));
                }
                self.held.extend_from_slice(&self.chunk[from..self.at]);
            }
            None => {
                self.bound(self.chunk.len() - from)?;
                self.held.extend_from_slice(&self.chunk[from..]);
                (self.chunk, self.at) = (Bytes::new(), 0);
                if !self.ended || self.held.is_empty() {
                    return Ok(None);
                }
                self.tally(0);
            }
        }
        self.given = true;
        Ok(Some(&self.held))
    }

    /// The next line as text, without its line end (LF or CR LF).
    pub(in crate::functions) fn next_line(&mut self) -> Result<Option<&str>, Fault> {
        let (input, number, offset) = (self.input, self.count + 1, self.offset + self.last);
        let Some(line) = self.next_raw()? else { return Ok(None) };
        let line = match line {
            [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] | line => line,
        };
        std::str::from_utf8(line).map(Some).map_err(|error| {
            let byte = offset + error.valid_up_to() as u64;
            Fault::input(input, format!("line {number} is not UTF-8, at byte {byte} of the input"))
        })
    }

    /// Checks that the line may grow by `more` bytes, and claims its memory.
    fn bound(&mut self, more: usize) -> Result<(), Fault> {
        match self.held.len() + more {
            len if len > LINE_MOST => Err(Fault::TooLarge { what: "a line", most: LINE_MOST as u64 }),
            len if len > SHORT_LINE => self.claim.grow_to(len as u64 * HELD_FACTOR),
            _ => Ok(()),
        }
    }

    fn tally(&mut self, more: usize) {
        self.count += 1;
        self.offset += self.last;
        self.last = (self.held.len() + more) as u64;
    }
}

/// An operation on each line of one input.
pub(in crate::functions) trait LineVisitor: Send + 'static {
    /// Processes the next line; `number` counts from 1.
    fn line(&mut self, number: u64, line: &str, out: &mut Out) -> Result<(), Fault>;

    /// Whether it needs no further lines.
    fn is_done(&self) -> bool {
        false
    }

    /// Writes the remaining output.
    fn finish(&mut self, lines: u64, out: &mut Out) -> Result<(), Fault> {
        let _ = (lines, out);
        Ok(())
    }
}

impl<F: FnMut(u64, &str, &mut Out) -> Result<(), Fault> + Send + 'static> LineVisitor for F {
    fn line(&mut self, number: u64, line: &str, out: &mut Out) -> Result<(), Fault> {
        self(number, line, out)
    }
}

/// A kernel that applies `each` to every line.
pub(in crate::functions) fn of_lines(call: &Call<'_>, each: impl LineVisitor) -> Box<dyn Kernel> {
    Box::new(LinesKernel { lines: Lines::of(call, 0), each })
}

struct LinesKernel<T> {
    lines: Lines,
    each: T,
}

impl<T: LineVisitor> Kernel for LinesKernel<T> {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        open.first().filter(|_| !self.each.is_done())
    }

    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.lines.push(chunk);
        self.resume(out)
    }

    fn end(&mut self, _: usize, out: &mut Out) -> Result<(), Fault> {
        self.lines.end();
        self.resume(out)
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.each.finish(self.lines.number(), out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        while !self.each.is_done() {
            if out.is_full() {
                out.pause();
                break;
            }
            let number = self.lines.number() + 1;
            match self.lines.next_line()? {
                Some(line) => self.each.line(number, line, out)?,
                None => break,
            }
        }
        Ok(())
    }
}

/// Writes line feeds between lines, and none after the last line.
#[derive(Default)]
pub(super) struct Gap {
    begun: bool,
}

impl Gap {
    /// Writes a line feed, unless this is the first line.
    pub(super) fn before(&mut self, out: &mut Out) {
        if std::mem::replace(&mut self.begun, true) {
            out.write(b"\n");
        }
    }
}

/// Text in quotes, shortened for a message.
pub(in crate::functions) fn shown(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
