//! The description of a function: its name, inputs, parameters, cost and memory.

use std::borrow::Cow;

use anabranch_content::Value;

use crate::param::{Param, ParamKind};
use crate::recipe::FunctionId;

/// The description of a function.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its name and version.
    pub id: FunctionId,
    /// Its output, in a sentence.
    pub about: Cow<'static, str>,
    /// How many inputs it takes.
    pub inputs: Arity,
    /// Its parameters.
    pub params: Vec<Param>,
    /// It takes parameters that are not listed, too.
    pub other_params: bool,
    /// How much of its inputs it holds.
    pub holds: Holds,
    /// The CPU time per KiB of input, in nanoseconds, about; [`Signature::OPAQUE`] if it depends on the call.
    pub nanos_per_kib: u32,
    /// The cost of beginning a call.
    pub begin: BeginCost,
    /// The memory of a call.
    pub memory: MemoryNeed,
    /// Where the answer of Deriva's function with this id is another one; empty if nowhere, or if Deriva has none.
    pub unlike_deriva: Cow<'static, str>,
}

/// The cost of [`Function::begin`](crate::Function::begin).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginCost {
    /// A few microseconds: a call may begin in place.
    Trifling,
    /// It compiles a pattern or a template, or builds tables: a call begins on the pool.
    Compiles,
}

/// The memory of a call besides the chunks of its inputs and output on their way. It is granted before the call begins;
/// whatever a function cannot tell beforehand, it claims from its [budget](crate::CallBudget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Bytes per call.
    pub base: u64,
    /// Bytes per input.
    pub per_input: u64,
    /// Bytes per byte of input.
    pub per_input_byte: u64,
    /// Bytes of claims that are usual per byte of input: a call that claims no more runs once.
    pub claims_per_input_byte: u64,
}

impl MemoryNeed {
    /// The need of a function that holds a few chunks.
    pub const STREAMING: MemoryNeed =
        MemoryNeed { base: 64 << 10, per_input: 0, per_input_byte: 0, claims_per_input_byte: 0 };

    /// The need of a function that holds its inputs, and an output that is no longer than they are.
    pub const WHOLE: MemoryNeed = MemoryNeed { per_input_byte: 2, ..MemoryNeed::STREAMING };
}

impl Signature {
    /// The cost of a function that may take any time: it is never called in place.
    pub const OPAQUE: u32 = u32::MAX;

    /// The signature of a function of one input that streams and has no parameters.
    pub fn new(id: FunctionId, about: impl Into<Cow<'static, str>>) -> Signature {
        Signature {
            id,
            about: about.into(),
            inputs: Arity::exactly(1),
            params: Vec::new(),
            other_params: false,
            holds: Holds::Chunks,
            nanos_per_kib: 100,
            begin: BeginCost::Trifling,
            memory: MemoryNeed::STREAMING,
            unlike_deriva: Cow::Borrowed(""),
        }
    }

    /// The same with other inputs.
    pub fn inputs(mut self, inputs: Arity) -> Signature {
        self.inputs = inputs;
        self
    }

    /// The same with one more parameter.
    pub fn param(mut self, param: Param) -> Signature {
        self.params.push(param);
        self
    }

    /// The same with a parameter that a call must give.
    pub fn needs(
        self,
        name: impl Into<Cow<'static, str>>,
        kind: ParamKind,
        about: impl Into<Cow<'static, str>>,
    ) -> Signature {
        self.param(Param::new(name, kind, about))
    }

    /// The same with a parameter that a call may leave out.
    pub fn may(
        self,
        name: impl Into<Cow<'static, str>>,
        kind: ParamKind,
        default: impl Into<Value>,
        about: impl Into<Cow<'static, str>>,
    ) -> Signature {
        self.param(Param::new(name, kind, about).or(default))
    }

    /// The same, but beginning a call takes time.
    pub fn compiles(mut self) -> Signature {
        self.begin = BeginCost::Compiles;
        self
    }

    /// The same with another cost.
    pub fn nanos_per_kib(mut self, nanos: u32) -> Signature {
        self.nanos_per_kib = nanos;
        self
    }

    /// The same with this much memory per call.
    pub fn base_memory(mut self, bytes: u64) -> Signature {
        self.memory.base = bytes;
        self
    }

    /// The same with this much memory per input.
    pub fn memory_per_input(mut self, bytes: u64) -> Signature {
        self.memory.per_input = bytes;
        self
    }

    /// What a call holds in memory, in words.
    pub fn memory_in_words(&self) -> &'static str {
        match self.holds {
            Holds::Chunks => "a few chunks",
            Holds::Everything => "all inputs",
        }
    }

    /// What a call costs, in words.
    pub fn cost_in_words(&self) -> String {
        match self.nanos_per_kib {
            Signature::OPAQUE => "depends on the call".to_owned(),
            nanos if nanos < 1000 => format!("{nanos} ns per KiB"),
            nanos => format!("{} µs per KiB", nanos / 1000),
        }
    }

    /// The same with a difference from Deriva's function.
    pub(crate) fn unlike_deriva(mut self, difference: &'static str) -> Signature {
        self.unlike_deriva = difference.into();
        self
    }

    /// The same with claims that are usual per byte of input.
    pub fn claims(mut self, per_input_byte: u64) -> Signature {
        self.memory.claims_per_input_byte = per_input_byte;
        self
    }
}

/// How many inputs a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// At least so many.
    pub least: usize,
    /// At most so many, or any number.
    pub most: Option<usize>,
}

impl Arity {
    /// Just so many.
    pub const fn exactly(count: usize) -> Arity {
        Arity { least: count, most: Some(count) }
    }

    /// So many or more.
    pub const fn at_least(least: usize) -> Arity {
        Arity { least, most: None }
    }

    /// Whether it takes so many.
    pub fn takes(&self, count: usize) -> bool {
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }
}

/// `1`, `2 or more`, `1 to 3`.
impl std::fmt::Display for Arity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.least, self.most) {
            (0, None) => out.write_str("any number of"),
            (least, None) => write!(out, "{least} or more"),
            (least, Some(most)) if least == most => write!(out, "{least}"),
            (least, Some(most)) => write!(out, "{least} to {most}"),
        }
    }
}

/// How much of its inputs a function holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A few chunks: it streams, and can be fused with others.
    Chunks,
    /// All of its inputs, and as much again for its output.
    Everything,
}
