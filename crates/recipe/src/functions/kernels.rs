//! The kernels that most functions are: change chunks in place, sum them up, pass them on.

use bytes::{Bytes, BytesMut};

use super::differences;
use crate::function::{Call, Fault, Function, Kernel, Out};
use crate::recipe::FunctionId;
use crate::registry::Functions;
use crate::signature::Signature;

/// The signature of a function of one input that streams; `id` is `name/version`.
pub(super) fn signature(id: &'static str, about: &'static str) -> Signature {
    let (name, version) = id.split_once('/').expect("the ids in this crate are `name/version`");
    let mut signature = Signature::new(FunctionId::new(name, version), about);
    differences::note(&mut signature);
    signature
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
