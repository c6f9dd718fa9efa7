//! Functions that see their inputs whole.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::budget::CallBudget;
use crate::function::{Call, Fault, Function, Kernel, Out};
use crate::signature::{Holds, MemoryNeed, Signature};

/// The work on whole inputs, once they are there.
pub(crate) type Body = Box<dyn FnOnce(Vec<Bytes>, &Arc<CallBudget>) -> Result<Bytes, Fault> + Send>;

/// A function of whole inputs. It begins with its parameters, so that wrong ones are known before an input is read.
pub(crate) fn whole(
    mut signature: Signature,
    begin: impl Fn(&Call<'_>) -> Result<Body, Fault> + Send + Sync + 'static,
) -> impl Function {
    signature.holds = Holds::Everything;
    signature.memory.per_input_byte = MemoryNeed::WHOLE.per_input_byte;
    Whole { signature, begin }
}

struct Whole<B> {
    signature: Signature,
    begin: B,
}

impl<B: Fn(&Call<'_>) -> Result<Body, Fault> + Send + Sync + 'static> Function for Whole<B> {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        let body = (self.begin)(call)?;
        let inputs = call.sizes.iter().map(|size| GatheredInput::of(*size)).collect();
        Ok(Box::new(Gathering { inputs, body: Some(body), budget: Arc::clone(call.budget) }))
    }
}

/// Inputs on their way to a function of whole ones.
struct Gathering {
    inputs: Vec<GatheredInput>,
    body: Option<Body>,
    budget: Arc<CallBudget>,
}

impl Kernel for Gathering {
    fn push(&mut self, input: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        self.inputs[input].push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let body = self.body.take().expect("a kernel is finished once");
        let inputs = self.inputs.drain(..).map(GatheredInput::bytes).collect();
        out.push(body(inputs, &self.budget)?);
        Ok(())
    }
}

/// One input that is put together from its chunks.
pub(crate) struct GatheredInput {
    size: u64,
    bytes: Gathered,
}

enum Gathered {
    /// At most one chunk, as it came.
    One(Bytes),
    Several(BytesMut),
}

impl GatheredInput {
    /// An input of this many bytes; `u64::MAX` if that is not known.
    pub(crate) fn of(size: u64) -> GatheredInput {
        GatheredInput { size, bytes: Gathered::One(Bytes::new()) }
    }

    /// Adds the next chunk. The first one is not copied if it is the only one.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        match &mut self.bytes {
            Gathered::One(first) if first.is_empty() => *first = chunk,
            Gathered::One(first) => {
                let known = if self.size == u64::MAX { 0 } else { self.size as usize };
                let mut bytes = BytesMut::with_capacity(known.max(first.len() + chunk.len()));
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(&chunk);
                self.bytes = Gathered::Several(bytes);
            }
            Gathered::Several(bytes) => bytes.extend_from_slice(&chunk),
        }
    }

    /// All of it.
    pub(crate) fn bytes(self) -> Bytes {
        match self.bytes {
            Gathered::One(bytes) => bytes,
            Gathered::Several(bytes) => bytes.freeze(),
        }
    }
}
