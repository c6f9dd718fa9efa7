//! Functions that receive their inputs whole.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::budget::CallBudget;
use crate::function::{Call, Fault, Function, Kernel, Out};
use crate::signature::{Holds, MemoryNeed, Signature};

/// The work of such a function, once its inputs are complete.
pub(crate) type Body = Box<dyn FnOnce(Vec<Bytes>, &Arc<CallBudget>) -> Result<Bytes, Fault> + Send>;

/// A function of whole inputs. It checks its parameters when a call begins, before any input is read.
pub(crate) fn whole(
    mut signature: Signature,
    begin: impl Fn(&Call<'_>) -> Result<Body, Fault> + Send + Sync + 'static,
) -> impl Function {
    signature.holds = Holds::Everything;
    signature.memory.per_input_byte = MemoryNeed::WHOLE.per_input_byte;
    WholeInputFunction { signature, begin }
}

struct WholeInputFunction<B> {
    signature: Signature,
    begin: B,
}

impl<B: Fn(&Call<'_>) -> Result<Body, Fault> + Send + Sync + 'static> Function for WholeInputFunction<B> {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        let body = (self.begin)(call)?;
        let inputs = call.sizes.iter().map(|size| GatheredInput::of(*size)).collect();
        Ok(Box::new(GatheringKernel { inputs, body: Some(body), budget: Arc::clone(call.budget) }))
    }
}

/// Collects the inputs of a function of whole inputs.
struct GatheringKernel {
    inputs: Vec<GatheredInput>,
    body: Option<Body>,
    budget: Arc<CallBudget>,
}

impl Kernel for GatheringKernel {
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

/// One input, assembled from its chunks.
pub(crate) struct GatheredInput {
    size: u64,
    bytes: GatheredBytes,
}

enum GatheredBytes {
    /// At most one chunk, not copied.
    One(Bytes),
    Several(BytesMut),
}

impl GatheredInput {
    /// An input of `size` bytes; `u64::MAX` if the size is unknown.
    pub(crate) fn of(size: u64) -> GatheredInput {
        GatheredInput { size, bytes: GatheredBytes::One(Bytes::new()) }
    }

    /// Adds the next chunk. A single chunk is not copied.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        match &mut self.bytes {
            GatheredBytes::One(first) if first.is_empty() => *first = chunk,
            GatheredBytes::One(first) => {
                let known = if self.size == u64::MAX { 0 } else { self.size as usize };
                let mut bytes = BytesMut::with_capacity(known.max(first.len() + chunk.len()));
                bytes.extend_from_slice(first);
                bytes.extend_from_slice(&chunk);
                self.bytes = GatheredBytes::Several(bytes);
            }
            GatheredBytes::Several(bytes) => bytes.extend_from_slice(&chunk),
        }
    }

    /// The complete input.
    pub(crate) fn bytes(self) -> Bytes {
        match self.bytes {
            GatheredBytes::One(bytes) => bytes,
            GatheredBytes::Several(bytes) => bytes.freeze(),
        }
    }
}
