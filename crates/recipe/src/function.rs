//! The interface of a function: chunks in, chunks out, no matter where they are cut.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::Address;
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use crate::arguments::Arguments;
use crate::budget::CallBudget;
use crate::recipe::Params;
use crate::signature::{Arity, Signature};

/// A function that recipes can name. One value serves all calls.
pub trait Function: Send + Sync + 'static {
    /// Its name, inputs, parameters, cost and memory.
    fn signature(&self) -> &Signature;

    /// Begins a call. Parameters were checked against the signature, and so was the number of inputs.
    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault>;
}

/// One call under way. It never blocks: it is given chunks of its inputs and gives chunks of its output.
///
/// The bytes of its output must not depend on where its inputs are cut into chunks. A chunk is never empty.
pub trait Kernel: Send {
    /// The input it wants to go on with, of those that have not ended; nothing: it needs no more, and is finished.
    fn wants(&self, open: &Open<'_>) -> Option<usize> {
        open.first()
    }

    /// Takes the next bytes of an input.
    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault>;

    /// Learns that an input has no more bytes.
    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        let _ = (input, out);
        Ok(())
    }

    /// Gives the rest of the output: all inputs have ended.
    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let _ = out;
        Ok(())
    }

    /// Goes on giving, after it said [`Out::pause`].
    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        let _ = out;
        Ok(())
    }
}

/// Which inputs of a call have not ended.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    pub(crate) ended: &'a [bool],
    /// All before have ended.
    pub(crate) first: usize,
}

impl Open<'_> {
    /// The first that has not ended.
    pub fn first(&self) -> Option<usize> {
        (self.first < self.ended.len()).then_some(self.first)
    }

    /// Whether this one has not ended.
    pub fn has(&self, input: usize) -> bool {
        self.ended.get(input).is_some_and(|ended| !ended)
    }
}

/// Chunks in order; a single one takes no memory of its own.
pub type Chunks = SmallVec<[Bytes; 1]>;

/// Where a kernel's output goes.
#[derive(Debug, Default)]
pub struct Out {
    chunks: Chunks,
    small: BytesMut,
    len: usize,
    paused: bool,
}

impl Out {
    /// Enough to give at once: a kernel that can give more should [`pause`](Out::pause).
    pub const FULL: usize = 256 << 10;

    /// Chunks below this are copied together, which costs less than to carry each on its own.
    const SMALL: usize = 16 << 10;

    /// Small pieces are gathered up to this size.
    const GATHERED: usize = 64 << 10;

    /// Gives a chunk, as it is unless it is a small one behind others.
    pub fn push(&mut self, chunk: Bytes) {
        // Readers of the output rely on chunks that have bytes.
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

    /// Gives a copy of some bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.small.extend_from_slice(bytes);
        if self.small.len() >= Out::GATHERED {
            self.gather();
        }
    }

    /// How many bytes wait to be taken away.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// So much waits that a kernel with more to give should pause.
    pub fn is_full(&self) -> bool {
        self.len >= Out::FULL
    }

    /// There is more to give: once this is taken away, [`Kernel::resume`] is called.
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

    /// What was given since the last time, in order; and whether the kernel paused.
    pub fn take(&mut self) -> (Chunks, bool) {
        self.gather();
        self.len = 0;
        (std::mem::take(&mut self.chunks), std::mem::take(&mut self.paused))
    }
}

/// What a call is given before its inputs. Its parameters are read with the methods of [`Arguments`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Its parameters.
    pub arguments: Arguments<'a>,
    /// The addresses of the inputs' bytes; a stage of a fused run does not know them, and has none.
    pub inputs: &'a [Address],
    /// How many bytes each input has; a stage of a fused run does not know (`u64::MAX`).
    pub sizes: &'a [u64],
    /// Its memory and time.
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
        Call { arguments: Arguments::new(&signature.params, params), inputs: &[], sizes, budget }
    }

    /// The same call, of inputs with these addresses.
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

/// Why a call did not come to a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The number of inputs is wrong.
    #[error("it takes {takes} input{}, the recipe has {got}", if *takes == Arity::exactly(1) { "" } else { "s" })]
    Inputs {
        /// How many it takes.
        takes: Arity,
        /// How many it got.
        got: usize,
    },
    /// A parameter is missing, unknown or wrong.
    #[error("parameter `{name}`: {problem}")]
    Param {
        /// Which one.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The bytes of an input are none that it can work on.
    #[error("input {}: {problem}", .input + 1)]
    Input {
        /// Which input, from 0.
        input: usize,
        /// What is wrong with it, and where.
        problem: String,
    },
    /// Something would be larger than it may.
    #[error("{what} would have more than {most} bytes")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The bound.
        most: u64,
    },
    /// It claimed more memory than it was granted. The executor calls it again with a larger grant.
    #[error("it takes {needed} bytes of memory; it was granted {granted}")]
    Memory {
        /// All that it claimed.
        needed: u64,
        /// The grant.
        granted: u64,
    },
    /// It took longer than a call may.
    #[error("it took longer than {} s, which is the most for one call; give it less to do", .limit.as_secs())]
    TooLong {
        /// The bound.
        limit: Duration,
    },
    /// Nobody waits for it any more.
    #[error("it was stopped: nobody waits for it any more")]
    Stopped,
    /// It failed for a reason that may pass.
    #[error("{0}")]
    Passing(String),
}

impl Fault {
    /// A parameter is wrong.
    pub fn param(name: &str, problem: impl Into<String>) -> Fault {
        Fault::Param { name: name.to_owned(), problem: problem.into() }
    }

    /// An input is wrong.
    pub fn input(input: usize, problem: impl Into<String>) -> Fault {
        Fault::Input { input, problem: problem.into() }
    }
}
