//! Kernels shared by most functions: change chunks in place, compute a summary, or pass chunks on.

use bytes::{Bytes, BytesMut};

use super::differences;
use crate::function::{Call, Fault, Function, Kernel, Out};
use crate::recipe::FunctionId;
use crate::registry::Functions;
use crate::signature::Signature;

/// The signature of a streaming function with one input; `id` is `name/version`.
pub(super) fn signature(id: &'static str, about: &'static str) -> Signature {
    let (name, version) = id.split_once('/').expect("the ids in this crate are `name/version`");
    let mut signature = Signature::new(FunctionId::new(name, version), about);
    differences::note(&mut signature);
    signature
}

/// Begins a call of a function and reads its parameters.
pub(super) type Begin = fn(&Call<'_>) -> Result<Box<dyn Kernel>, Fault>;

/// A function defined by a signature and the start of its calls.
pub(super) struct StreamingFunction(pub(super) Signature, pub(super) Begin);

impl Function for StreamingFunction {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        (self.1)(call)
    }
}

/// Adds functions, each defined by a signature and the start of its calls.
pub(super) fn add_streamed<const COUNT: usize>(functions: &mut Functions, rows: [(Signature, Begin); COUNT]) {
    rows.into_iter().for_each(|(signature, begin)| {
        functions.add(StreamingFunction(signature, begin));
    });
}

/// A kernel that changes chunks in place.
pub(super) fn changed(change: impl FnMut(&mut [u8]) + Send + 'static) -> Box<dyn Kernel> {
    Box::new(InPlaceKernel(change))
}

struct InPlaceKernel<F>(F);

impl<F: FnMut(&mut [u8]) + Send> Kernel for InPlaceKernel<F> {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        let mut own = chunk.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        (self.0)(&mut own);
        out.push(own.freeze());
        Ok(())
    }
}

/// A kernel that reads all chunks, then writes its result.
pub(super) fn summed<S: Send + 'static>(
    state: S,
    see: impl FnMut(&mut S, &[u8]) + Send + 'static,
    give: impl FnMut(&mut S, &mut Out) -> Result<(), Fault> + Send + 'static,
) -> Box<dyn Kernel> {
    Box::new(SummaryKernel { state, see, give })
}

struct SummaryKernel<S, See, Give> {
    state: S,
    see: See,
    give: Give,
}

impl<S, See, Give> Kernel for SummaryKernel<S, See, Give>
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

/// A kernel that passes its input on while reading it, and at the end may fail or write more output.
pub(super) fn passed<S: Send + 'static>(
    state: S,
    see: impl FnMut(&mut S, &[u8]) -> Result<(), Fault> + Send + 'static,
    judge: impl FnMut(&mut S, &mut Out) -> Result<(), Fault> + Send + 'static,
) -> Box<dyn Kernel> {
    Box::new(PassThroughKernel { state, see, judge })
}

struct PassThroughKernel<S, See, Judge> {
    state: S,
    see: See,
    judge: Judge,
}

impl<S, See, Judge> Kernel for PassThroughKernel<S, See, Judge>
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
