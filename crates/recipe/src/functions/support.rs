//! What functions are made of: signatures, parameters, and the kernels that most of them are.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::Value;
use crate::budget::CallBudget;
use crate::function::{
    Arity, BeginCost, Call, Fault, Function, Holds, Kernel, MemoryNeed, Open, Out, Param, Signature,
};
use crate::recipe::FunctionId;
use crate::registry::Functions;
pub(super) use crate::whole::{Body, whole};

/// The most bytes a function makes out of few, if the recipe does not say.
pub(super) const MOST_BYTES: u64 = 1 << 30;

/// What `max_bytes` is, for all functions that have it.
pub(super) const MAX_BYTES: &str = "the most bytes to give, more is an error; 1073741824 unless said";

/// The same, for those that hold their output in memory.
pub(super) const MAX_BYTES_HELD: &str =
    "the most bytes to give, 0 to 1073741824, more is an error; 1073741824 unless said";

/// The signature of a function of one input that streams; `id` is `name/version`.
pub(super) fn signature(id: &'static str, about: &'static str) -> Signature {
    let (name, version) = id.split_once('/').expect("the ids in this crate are `name/version`");
    Signature {
        id: FunctionId::new(name, version),
        about: about.into(),
        inputs: Arity::exactly(1),
        params: Vec::new(),
        other_params: false,
        holds: Holds::Chunks,
        nanos_per_kib: 100,
        begin: BeginCost::Trifling,
        memory: MemoryNeed::STREAMING,
    }
}

impl Signature {
    /// The same with other inputs.
    pub(super) fn inputs(mut self, inputs: Arity) -> Signature {
        self.inputs = inputs;
        self
    }

    /// The same with a parameter that a call must give.
    pub(super) fn needs(mut self, name: &'static str, about: &'static str) -> Signature {
        self.params.push(Param { name: name.into(), about: about.into(), needed: true });
        self
    }

    /// The same with a parameter that a call may leave out; `about` says what it then is.
    pub(super) fn may(mut self, name: &'static str, about: &'static str) -> Signature {
        self.params.push(Param { name: name.into(), about: about.into(), needed: false });
        self
    }

    /// The same, but beginning a call takes time.
    pub(super) fn compiles(mut self) -> Signature {
        self.begin = BeginCost::Compiles;
        self
    }

    /// The same with this much memory per call.
    pub(super) fn base_memory(mut self, bytes: u64) -> Signature {
        self.memory.base = bytes;
        self
    }

    /// The same with this much memory per input.
    pub(super) fn memory_per_input(mut self, bytes: u64) -> Signature {
        self.memory.per_input = bytes;
        self
    }

    /// The same with claims that are usual per byte of input.
    pub(super) fn claims(mut self, per_input_byte: u64) -> Signature {
        self.memory.claims_per_input_byte = per_input_byte;
        self
    }

    /// The same with another cost.
    pub(super) fn nanos_per_kib(mut self, nanos: u32) -> Signature {
        self.nanos_per_kib = nanos;
        self
    }
}

impl<'a> Call<'a> {
    /// A parameter that is text.
    pub(super) fn text(&self, name: &str) -> Result<&'a str, Fault> {
        match self.param(name)? {
            Value::Text(text) => Ok(text),
            other => Err(unlike(name, "text", other)),
        }
    }

    /// A parameter that is a whole number, as such or in decimal digits.
    pub(super) fn number(&self, name: &str, allowed: RangeInclusive<u64>) -> Result<u64, Fault> {
        let number = match self.param(name)? {
            Value::Int(number) => u64::try_from(*number).ok(),
            Value::Text(digits) => digits.parse().ok(),
            other => return Err(unlike(name, &range(&allowed), other)),
        };
        match number {
            Some(number) if allowed.contains(&number) => Ok(number),
            _ => Err(unlike(name, &range(&allowed), self.param(name)?)),
        }
    }

    /// The same, if it is there.
    pub(super) fn number_or(
        &self,
        name: &str,
        allowed: RangeInclusive<u64>,
        otherwise: u64,
    ) -> Result<u64, Fault> {
        match self.params.contains_key(name) {
            true => self.number(name, allowed),
            false => Ok(otherwise),
        }
    }

    /// A parameter that is bytes, as such or in hex digits of either case.
    pub(super) fn bytes(&self, name: &str) -> Result<Bytes, Fault> {
        match self.param(name)? {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            Value::Text(digits) => match data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()) {
                Ok(bytes) => Ok(bytes.into()),
                Err(_) => Err(unlike(name, "bytes, or text of hex digits", self.param(name)?)),
            },
            other => Err(unlike(name, "bytes, or text of hex digits", other)),
        }
    }

    /// A parameter that is so many bytes, as such or in hex digits.
    pub(super) fn array<const LEN: usize>(&self, name: &str) -> Result<[u8; LEN], Fault> {
        let bytes = self.bytes(name)?;
        bytes[..].try_into().map_err(|_| {
            Fault::param(name, format!("has {} bytes; {LEN} are {} hex digits", bytes.len(), LEN * 2))
        })
    }

    /// A parameter that is bytes, as such or as the characters of a text.
    pub(super) fn literal(&self, name: &str) -> Result<Bytes, Fault> {
        match self.param(name)? {
            Value::Bytes(bytes) => Ok(bytes.clone()),
            Value::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            other => Err(unlike(name, "text or bytes", other)),
        }
    }

    /// The parameter `max_bytes`.
    pub(super) fn max_bytes(&self) -> Result<u64, Fault> {
        self.number_or("max_bytes", 0..=u64::MAX, MOST_BYTES)
    }

    /// The same, of a function that holds its output in memory.
    pub(super) fn max_bytes_held(&self) -> Result<Most, Fault> {
        self.number_or("max_bytes", 0..=MOST_BYTES, MOST_BYTES).map(Most)
    }

    fn param(&self, name: &str) -> Result<&'a Value, Fault> {
        self.params.get(name).ok_or_else(|| Fault::param(name, "missing"))
    }
}

fn range(allowed: &RangeInclusive<u64>) -> String {
    match (*allowed.start(), *allowed.end()) {
        (0, u64::MAX) => "a whole number".to_owned(),
        (least, u64::MAX) => format!("a whole number, {least} or more"),
        (least, most) => format!("a whole number, {least} to {most}"),
    }
}

/// A parameter is not what it may be.
pub(super) fn unlike(name: &str, allowed: &str, got: &Value) -> Fault {
    let shown = match got {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(value) if value.len() <= 40 => format!("{value:?}"),
        Value::Text(value) => format!("text of {} bytes", value.len()),
        Value::Bytes(value) => format!("{} bytes", value.len()),
        Value::Address(_) => "an address".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    };
    Fault::param(name, format!("{shown} is not {allowed}"))
}

/// How a call of a function begins: its parameters are read here.
pub(super) type Begin = fn(&Call<'_>) -> Result<Box<dyn Kernel>, Fault>;

/// A function that is a signature and how it begins.
pub(super) struct Streamed(pub(super) Signature, pub(super) Begin);

impl Function for Streamed {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        (self.1)(call)
    }
}

/// A kernel that gives at most so many bytes in all: for one whose output can be many times its input.
pub(super) fn capped(kernel: Box<dyn Kernel>, most: u64) -> Box<dyn Kernel> {
    Box::new(Capped { kernel, given: 0, most })
}

struct Capped {
    kernel: Box<dyn Kernel>,
    given: u64,
    most: u64,
}

impl Capped {
    fn count(
        &mut self,
        out: &mut Out,
        body: impl FnOnce(&mut dyn Kernel, &mut Out) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let before = out.len();
        body(&mut *self.kernel, out)?;
        self.given += (out.len() - before) as u64;
        match self.given > self.most {
            true => Err(Fault::TooLarge { what: "the output", most: self.most }),
            false => Ok(()),
        }
    }
}

impl Kernel for Capped {
    fn wants(&self, open: &Open<'_>) -> Option<usize> {
        self.kernel.wants(open)
    }

    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.push(input, chunk, out))
    }

    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.end(input, out))
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.finish(out))
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.resume(out))
    }
}

/// The most bytes of an output that is held in memory.
#[derive(Clone, Copy)]
pub(super) struct Most(pub(super) u64);

impl Most {
    /// No bound besides the memory of the call.
    pub(super) const ANY: Most = Most(u64::MAX);

    /// Whether an output may have so many bytes.
    pub(super) fn allows(self, len: usize) -> Result<(), Fault> {
        match len as u64 > self.0 {
            true => Err(Fault::TooLarge { what: "the output", most: self.0 }),
            false => Ok(()),
        }
    }
}

/// An output that is held in memory: bounded, its memory claimed as it grows.
pub(super) struct Output {
    bytes: Vec<u8>,
    most: Most,
    budget: Arc<CallBudget>,
    /// The fault of a write that a serializer asked for.
    fault: Option<Fault>,
    /// Bytes since the last look at the budget's time.
    unchecked: usize,
}

impl Output {
    /// Bytes between two looks at the budget's time.
    const BETWEEN_CHECKS: usize = 64 << 10;

    pub(super) fn new(most: Most, budget: &Arc<CallBudget>) -> Output {
        Output { bytes: Vec::new(), most, budget: Arc::clone(budget), fault: None, unchecked: 0 }
    }

    /// Makes room for this many bytes more.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), Fault> {
        let (len, capacity) = (self.bytes.len().saturating_add(more), self.bytes.capacity());
        self.most.allows(len)?;
        if len > capacity {
            let larger = len.max(capacity.saturating_mul(2)).max(256);
            self.budget.claim(larger as u64)?;
            self.bytes.reserve_exact(larger - self.bytes.len());
            self.budget.release(capacity as u64);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        self.unchecked += bytes.len();
        if self.unchecked > Output::BETWEEN_CHECKS {
            self.unchecked = 0;
            self.budget.check()?;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The fault for which a serializer stopped.
    pub(super) fn fault(&mut self) -> Fault {
        self.fault.take().expect("a write failed")
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// For serializers: the fault of a failed write is in [`Output::fault`].
impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Output::write(self, bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(fault) => {
                self.fault = Some(fault);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds functions that are a signature and how they begin.
pub(super) fn add_streamed<const COUNT: usize>(functions: &mut Functions, rows: [(Signature, Begin); COUNT]) {
    rows.into_iter().for_each(|(signature, begin)| {
        functions.add(Streamed(signature, begin));
    });
}

/// The kernel that changes chunks in place.
pub(super) fn changed(change: impl FnMut(&mut [u8]) + Send + 'static) -> Box<dyn Kernel> {
    Box::new(Changed(change))
}

struct Changed<F>(F);

impl<F: FnMut(&mut [u8]) + Send> Kernel for Changed<F> {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        let mut own = chunk.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        (self.0)(&mut own);
        out.push(own.freeze());
        Ok(())
    }
}

/// The kernel that looks at all chunks, then gives what it made of them.
pub(super) fn summed<S: Send + 'static>(
    state: S,
    see: impl FnMut(&mut S, &[u8]) + Send + 'static,
    give: impl FnMut(&mut S, &mut Out) -> Result<(), Fault> + Send + 'static,
) -> Box<dyn Kernel> {
    Box::new(Summed { state, see, give })
}

struct Summed<S, See, Give> {
    state: S,
    see: See,
    give: Give,
}

impl<S, See, Give> Kernel for Summed<S, See, Give>
where
    S: Send,
    See: FnMut(&mut S, &[u8]) + Send,
    Give: FnMut(&mut S, &mut Out) -> Result<(), Fault> + Send,
{
    fn push(&mut self, _: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        (self.see)(&mut self.state, &chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        (self.give)(&mut self.state, out)
    }
}

/// The kernel that passes its input on and looks at it, then judges it, or adds something.
pub(super) fn passed<S: Send + 'static>(
    state: S,
    see: impl FnMut(&mut S, &[u8]) -> Result<(), Fault> + Send + 'static,
    judge: impl FnMut(&mut S, &mut Out) -> Result<(), Fault> + Send + 'static,
) -> Box<dyn Kernel> {
    Box::new(Passed { state, see, judge })
}

struct Passed<S, See, Judge> {
    state: S,
    see: See,
    judge: Judge,
}

impl<S, See, Judge> Kernel for Passed<S, See, Judge>
where
    S: Send,
    See: FnMut(&mut S, &[u8]) -> Result<(), Fault> + Send,
    Judge: FnMut(&mut S, &mut Out) -> Result<(), Fault> + Send,
{
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        (self.see)(&mut self.state, &chunk)?;
        out.push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        (self.judge)(&mut self.state, out)
    }
}
