//! Functions that see their inputs whole.

use bytes::Bytes;

use crate::function::{Call, Chunks, Fault, Function, Holds, Kernel, Out, Signature};
use crate::registry::join;

/// What is done with whole inputs, once they are there.
pub(crate) type Body = Box<dyn FnOnce(Vec<Bytes>) -> Result<Bytes, Fault> + Send>;

/// A function of whole inputs. It begins with its parameters, so that wrong ones are known before an input is read.
pub(crate) fn whole(
    mut signature: Signature,
    begin: impl Fn(&Call<'_>) -> Result<Body, Fault> + Send + Sync + 'static,
) -> impl Function {
    signature.holds = Holds::Everything;
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
        let inputs = call.sizes.iter().map(|_| Chunks::new()).collect();
        Ok(Box::new(Gathered { inputs, body: Some(body) }))
    }
}

/// Inputs on their way to a function of whole ones.
struct Gathered {
    inputs: Vec<Chunks>,
    body: Option<Body>,
}

impl Kernel for Gathered {
    fn push(&mut self, input: usize, chunk: Bytes, _: &mut Out) -> Result<(), Fault> {
        self.inputs[input].push(chunk);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        let body = self.body.take().expect("a kernel is finished once");
        out.push(body(self.inputs.drain(..).map(join).collect())?);
        Ok(())
    }
}
