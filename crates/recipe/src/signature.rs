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
    /// A sentence that describes its output.
    pub about: Cow<'static, str>,
    /// The number of inputs that it takes.
    pub inputs: Arity,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Whether it also accepts parameters that are not listed.
    pub other_params: bool,
    /// The amount of its inputs that it holds in memory.
    pub holds: Holds,
    /// Whether its value is its only input, unchanged. A call with a large input is then not run, unless it is fused
    /// with others.
    pub passes_input: bool,
    /// The approximate CPU time per KiB of input, in nanoseconds; [`Signature::OPAQUE`] if it depends on the call.
    pub nanos_per_kib: u32,
    /// The cost of beginning a call.
    pub begin: BeginCost,
    /// The memory of a call.
    pub memory: MemoryNeed,
    /// The difference from Deriva's function with this id; empty if there is none, or if Deriva has no such function.
    pub unlike_deriva: Cow<'static, str>,
}

/// The cost of [`Function::begin`](crate::Function::begin).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginCost {
    /// A few microseconds. A call may begin in place.
    Trifling,
    /// It builds tables, in less than a millisecond. The call runs on the pool, and its time follows from the length of
    /// its input.
    Tables,
    /// It compiles a pattern or a template, or builds tables, and the time of a call does not follow from the length of
    /// its input. All of the call runs on the pool.
    Compiles,
}

/// The memory of a call, in addition to the chunks of its inputs and output in transit. It is granted before the call
/// begins. A function claims memory that it cannot predict from its [budget](crate::CallBudget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Bytes per call.
    pub base: u64,
    /// Bytes per input.
    pub per_input: u64,
    /// Bytes per byte of input.
    pub per_input_byte: u64,
    /// Bytes per byte of parameters: the parameters themselves, copies of them, and output that they are part of.
    pub per_param_byte: u64,
    /// The usual number of claimed bytes per byte of input. A call that claims no more runs only once.
    pub claims_per_input_byte: u64,
}

impl MemoryNeed {
    /// The need of a function that holds a few chunks.
    pub const STREAMING: MemoryNeed = MemoryNeed {
        base: 64 << 10,
        per_input: 0,
        per_input_byte: 0,
        per_param_byte: 4,
        claims_per_input_byte: 0,
    };

    /// The need of a function that holds its inputs, and an output that is at most as long.
    pub const WHOLE: MemoryNeed = MemoryNeed { per_input_byte: 2, ..MemoryNeed::STREAMING };
}

impl Signature {
    /// The cost of a function whose duration is unknown. It is never called in place.
    pub const OPAQUE: u32 = u32::MAX;

    /// The signature of a streaming function with one input and no parameters.
    pub fn new(id: FunctionId, about: impl Into<Cow<'static, str>>) -> Signature {
        Signature {
            id,
            about: about.into(),
            inputs: Arity::exactly(1),
            params: Vec::new(),
            other_params: false,
            holds: Holds::Chunks,
            passes_input: false,
            nanos_per_kib: 100,
            begin: BeginCost::Trifling,
            memory: MemoryNeed::STREAMING,
            unlike_deriva: Cow::Borrowed(""),
        }
    }

    /// Sets the number of inputs.
    pub fn inputs(mut self, inputs: Arity) -> Signature {
        self.inputs = inputs;
        self
    }

    /// Adds a parameter.
    pub fn param(mut self, param: Param) -> Signature {
        self.params.push(param);
        self
    }

    /// Adds a required parameter.
    pub fn needs(
        self,
        name: impl Into<Cow<'static, str>>,
        kind: ParamKind,
        about: impl Into<Cow<'static, str>>,
    ) -> Signature {
        self.param(Param::new(name, kind, about))
    }

    /// Adds an optional parameter.
    pub fn may(
        self,
        name: impl Into<Cow<'static, str>>,
        kind: ParamKind,
        default: impl Into<Value>,
        about: impl Into<Cow<'static, str>>,
    ) -> Signature {
        self.param(Param::new(name, kind, about).or(default))
    }

    /// Declares that a call begins with building tables.
    pub fn builds_tables(mut self) -> Signature {
        self.begin = BeginCost::Tables;
        self
    }

    /// Declares that beginning a call takes time.
    pub fn compiles(mut self) -> Signature {
        self.begin = BeginCost::Compiles;
        self
    }

    /// Sets the CPU time per KiB of input.
    pub fn nanos_per_kib(mut self, nanos: u32) -> Signature {
        self.nanos_per_kib = nanos;
        self
    }

    /// Sets the memory per call.
    pub fn base_memory(mut self, bytes: u64) -> Signature {
        self.memory.base = bytes;
        self
    }

    /// Sets the memory per input.
    pub fn memory_per_input(mut self, bytes: u64) -> Signature {
        self.memory.per_input = bytes;
        self
    }

    /// The memory of a call, in words.
    pub fn memory_in_words(&self) -> &'static str {
        match self.holds {
            Holds::Chunks => "a few chunks",
            Holds::Everything => "all inputs",
        }
    }

    /// The CPU cost of a call, in words.
    pub fn cost_in_words(&self) -> String {
        match self.nanos_per_kib {
            Signature::OPAQUE => "depends on the call".to_owned(),
            nanos if nanos < 1000 => format!("{nanos} ns per KiB"),
            nanos => format!("{} µs per KiB", nanos / 1000),
        }
    }

    /// Sets the difference from Deriva's function.
    pub(crate) fn unlike_deriva(mut self, difference: &'static str) -> Signature {
        self.unlike_deriva = difference.into();
        self
    }

    /// Sets the usual number of claimed bytes per byte of input.
    pub fn claims(mut self, per_input_byte: u64) -> Signature {
        self.memory.claims_per_input_byte = per_input_byte;
        self
    }
}

/// The number of inputs that a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// The minimum.
    pub least: usize,
    /// The maximum; `None` for any number.
    pub most: Option<usize>,
}

impl Arity {
    /// Exactly `count` inputs.
    pub const fn exactly(count: usize) -> Arity {
        Arity { least: count, most: Some(count) }
    }

    /// `least` inputs or more.
    pub const fn at_least(least: usize) -> Arity {
        Arity { least, most: None }
    }

    /// Whether this number of inputs is allowed.
    pub fn takes(&self, count: usize) -> bool {
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }
}

/// For example `1`, `2 or more` or `1 to 3`.
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

/// The amount of its inputs that a function holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A few chunks: it streams, and can be fused with others.
    Chunks,
    /// All of its inputs, and as much again for its output.
    Everything,
}
