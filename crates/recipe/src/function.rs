//! The interface of a function: chunks in, chunks out, independent of how the data is split.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::Address;
use anabranch_text::{count, duration, size};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use crate::arguments::Arguments;
use crate::budget::CallBudget;
use crate::recipe::Params;
use crate::signature::{Arity, Signature};

/// A function that recipes can name. One instance serves all calls.
pub trait Function: Send + Sync + 'static {
    /// Its name, inputs, parameters, cost and memory.
    fn signature(&self) -> &Signature;

    /// Begins a call. The parameters and the number of inputs have been checked against the signature.
    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault>;
}

/// One call in progress. It never blocks: it receives chunks of its inputs and produces chunks of its output.
///
/// The output must not depend on how the inputs are split into chunks. A chunk is never empty.
pub trait Kernel: Send {
    /// The input to read next, of those that have not ended; `None` if no more input is needed and the call can finish.
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        open.first()
    }

    /// Processes the next bytes of an input.
    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault>;

    /// Processes the end of an input.
    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        let _ = (input, out);
        Ok(())
    }

    /// Writes the rest of the output. No more input follows.
    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let _ = out;
        Ok(())
    }

    /// Continues to write output after [`Out::pause`].
    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        let _ = out;
        Ok(())
    }
}

/// The inputs of a call that have not ended.
#[derive(Clone, Copy, Debug)]
pub struct OpenInputs<'a> {
    pub(crate) ended: &'a [bool],
    /// The first input that has not ended. All inputs before it have.
    pub(crate) first: usize,
}

impl OpenInputs<'_> {
    /// The first input that has not ended.
    pub fn first(&self) -> Option<usize> {
        (self.first < self.ended.len()).then_some(self.first)
    }

    /// Whether this input has not ended.
    pub fn has(&self, input: usize) -> bool {
        self.ended.get(input).is_some_and(|ended| !ended)
    }
}

/// Chunks in order. A single chunk needs no extra allocation.
pub type Chunks = SmallVec<[Bytes; 1]>;

/// The output of a kernel.
#[derive(Debug, Default)]
pub struct Out {
    chunks: Chunks,
    small: BytesMut,
    len: usize,
    paused: bool,
}

impl Out {
    /// The amount of pending output in bytes at which a kernel should [`pause`](Out::pause).
    pub const FULL: usize = 256 << 10;

    /// Smaller chunks are copied together, which costs less than handling each of them.
    const SMALL: usize = 16 << 10;

    /// The size up to which small chunks are copied together.
    const GATHERED: usize = 64 << 10;

    /// Writes a chunk. It is not copied, unless it is small and other output is pending.
    pub fn push(&mut self, chunk: Bytes) {
        // Readers of the output rely on non-empty chunks.
        if chunk.is_empty() {
            return;
        }
        if chunk.len() < Out::SMALL && self.len > 0 {
            return self.write(&chunk);
        }
        self.len += chunk.len();
        self.gather();
        self.chunks.push(chunk);
    }

    /// Writes a copy of some bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.small.extend_from_slice(bytes);
        if self.small.len() >= Out::GATHERED {
            self.gather();
        }
    }

    /// The number of pending bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no output is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a kernel with more output should pause now.
    pub fn is_full(&self) -> bool {
        self.len >= Out::FULL
    }

    /// Announces more output. [`Kernel::resume`] is called once the pending output has been taken.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    fn gather(&mut self) {
        if !self.small.is_empty() {
            self.chunks.push(self.small.split().freeze());
        }
    }

    /// Takes the pending output, in order. Also returns whether the kernel paused.
    pub fn take(&mut self) -> (Chunks, bool) {
        self.gather();
        self.len = 0;
        (std::mem::take(&mut self.chunks), std::mem::take(&mut self.paused))
    }
}

/// The parameters, budget and input addresses of a call. Parameters are read with the methods of [`Arguments`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The parameters.
    pub arguments: Arguments<'a>,
    /// The addresses of the inputs; empty for a stage of a fused run, which does not know them.
    pub inputs: &'a [Address],
    /// The sizes of the inputs in bytes; `u64::MAX` for a stage of a fused run, which does not know them.
    pub sizes: &'a [u64],
    /// The memory and time of the call.
    pub budget: &'a Arc<CallBudget>,
}

impl<'a> Call<'a> {
    /// A call of a function with this signature.
    pub fn new(
        signature: &'a Signature,
        params: &'a Params,
        sizes: &'a [u64],
        budget: &'a Arc<CallBudget>,
    ) -> Call<'a> {
        let arguments = Arguments::new(&signature.params, params).within(budget);
        Call { arguments, inputs: &[], sizes, budget }
    }

    /// The same call, with the addresses of its inputs.
    #[must_use]
    pub fn of(self, inputs: &'a [Address]) -> Call<'a> {
        Call { inputs, ..self }
    }
}

impl<'a> std::ops::Deref for Call<'a> {
    type Target = Arguments<'a>;

    fn deref(&self) -> &Arguments<'a> {
        &self.arguments
    }
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The number of inputs is wrong.
    #[error("it takes {takes} input{}, the recipe has {got}", if *takes == Arity::exactly(1) { "" } else { "s" })]
    Inputs {
        /// The number of inputs that it takes.
        takes: Arity,
        /// The number of inputs in the recipe.
        got: usize,
    },
    /// A parameter is missing, unknown or wrong.
    #[error("parameter `{name}`: {problem}")]
    Param {
        /// The name of the parameter.
        name: String,
        /// The problem with it.
        problem: String,
    },
    /// The function cannot work on the bytes of an input.
    #[error("input {}: {problem}", .input + 1)]
    Input {
        /// The index of the input, from 0.
        input: usize,
        /// The problem, and its position in the input.
        problem: String,
    },
    /// Something would exceed its maximum size.
    #[error("{what} would have more than {}", exact_size(*.most))]
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// The bound.
        most: u64,
    },
    /// The call claimed more memory than it was granted. The executor repeats it with a larger grant.
    #[error("it takes {} of memory; it was granted {}", size::format(*.needed), size::format(*.granted))]
    Memory {
        /// The total of its claims.
        needed: u64,
        /// The grant.
        granted: u64,
    },
    /// The call exceeded its time limit.
    #[error("the call exceeded its timeout of {}; split the input or raise `call_time`", duration::format(*.limit))]
    TooLong {
        /// The bound.
        limit: Duration,
    },
    /// The call was stopped, because no caller waits for it any more.
    #[error("the call was cancelled: no caller waits for its value")]
    Stopped,
    /// The call failed for a reason that may be temporary.
    #[error("{0}")]
    Transient(String),
}

/// A size in units of 1024 if that is exact, otherwise in bytes.
fn exact_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { size::format(bytes) } else { count(bytes, "byte") }
}

impl Fault {
    /// The fault of an invalid parameter.
    pub fn param(name: &str, problem: impl Into<String>) -> Fault {
        Fault::Param { name: name.to_owned(), problem: problem.into() }
    }

    /// The fault of an invalid input.
    pub fn input(input: usize, problem: impl Into<String>) -> Fault {
        Fault::Input { input, problem: problem.into() }
    }
}
